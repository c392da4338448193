"""The two inverse problems of the paper: equations, references, data with the same layout."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.integrate
import scipy.io
from jaxtyping import Float

from ._problem import Measurements, Parameter, Problem, derivatives
from ._setting import InverseConfig

LARGEST_FILE = 64 * 2**20


class Curve(NamedTuple):
    """A part of the solution that is shown and scored: one component along a line."""

    name: str
    axis: str
    at: Float[np.ndarray, " point"]
    points: Float[np.ndarray, "point d"]
    component: int
    truth: Float[np.ndarray, " point"]


@dataclass(frozen=True)
class Benchmark:
    """A problem with a known answer, and what the paper found for it."""

    name: str
    state: Callable[[Measurements, Measurements], Problem]
    generate: Callable[[np.random.Generator], tuple[Measurements, Measurements]]
    arrays: tuple[str, ...]
    from_arrays: Callable[[dict[str, np.ndarray]], tuple[Measurements, Measurements]]
    curves: tuple[Curve, ...]
    near: float
    """Measurements this close to a curve, across it, are shown with it."""
    truth: dict[str, float]
    config: InverseConfig
    samples: int
    paper: dict

    def problem(self, seed: int = 0, data: Path | None = None) -> Problem:
        """The problem, with measurements from a published file or made with a seed."""
        if data is None:
            return self.state(*self.generate(np.random.default_rng(seed)))
        arrays = read_arrays(data, self.arrays)
        try:
            return self.state(*self.from_arrays(arrays))
        except ValueError as error:
            raise ValueError(f"{data} is no file of the problem {self.name}: {error}") from None


def read_arrays(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Tables of numbers by name from a MATLAB file; sizes are looked at before anything is read."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}.") from None
    if size > LARGEST_FILE:
        raise ValueError(f"{path} is larger than 64 MiB: that is no file of measurements.")
    listed = {name: shape for name, shape, _ in _matlab(path, scipy.io.whosmat)}
    for name in names:
        if name not in listed:
            raise ValueError(f"{path} has no array {name!r}; it needs {', '.join(names)}.")
        if len(listed[name]) != 2 or not 0 < np.prod(listed[name]) <= 10**6:
            raise ValueError(f"{name} of {path} must be a table; its shape is {listed[name]}.")
    found = _matlab(path, partial(scipy.io.loadmat, variable_names=list(names)))
    for name in names:
        if not np.issubdtype(found[name].dtype, np.number):
            raise ValueError(f"{name} of {path} must hold numbers.")
    return {name: np.asarray(found[name], np.float64) for name in names}


def _matlab(path: Path, read: Callable):
    """What a reader of SciPy makes of a file, or one sentence."""
    try:
        with path.open("rb") as file:
            return read(file)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}.") from None
    except NotImplementedError:
        raise ValueError(f"{path} was saved as MATLAB 7.3; save it again with -v7.") from None
    except Exception:  # damaged files lead to errors of many kinds
        raise ValueError(f"cannot read {path} as a MATLAB file: it is damaged or none.") from None


# Kraichnan-Orszag: three modes of shear waves.
MODES = ("x1", "x2", "x3")


def kraichnan_orszag_residual(u, parameters):
    """`x' - (a x2 x3, b x1 x3, -(a + b) x1 x2)`."""
    a, b = parameters["a"], parameters["b"]

    def at(t):
        x, slope = derivatives(u, t, [1.0], 1)
        return slope - jnp.array([a * x[1] * x[2], b * x[0] * x[2], -(a + b) * x[0] * x[1]])

    return at


def kraichnan_orszag_solution(
    times: Float[np.ndarray, " time"], a: float = 1.0, b: float = 1.0
) -> Float[np.ndarray, "time 3"]:
    """The solution from (1, 0.8, 0.5), to a relative tolerance of 1e-11."""

    def velocity(_, x):
        return [a * x[1] * x[2], b * x[0] * x[2], -(a + b) * x[0] * x[1]]

    return scipy.integrate.solve_ivp(
        velocity, (0, 10), (1, 0.8, 0.5), "DOP853", times, rtol=1e-11, atol=1e-12
    ).y.T


def _kraichnan_orszag_data(rng: np.random.Generator) -> tuple[Measurements, Measurements]:
    """All modes at 11 times, the second at the first 7 of them; the source, zero, at 14."""
    times, source_times = np.linspace(0, 10, 11), np.linspace(0, 10, 14)
    values = kraichnan_orszag_solution(times) + rng.normal(0, 0.05, (11, 3))
    values[7:, 1] = np.nan
    source = rng.normal(0, 0.05, (14, 3))
    return (
        Measurements(times[:, None], values, 0.05),
        Measurements(source_times[:, None], source, 0.05),
    )


def _kraichnan_orszag_arrays(arrays) -> tuple[Measurements, Measurements]:
    values = arrays["u_train"].copy()
    if values.shape[1] != len(MODES):
        raise ValueError(f"u_train must have 3 columns, one per mode; it has {values.shape[1]}.")
    values[7:, 1] = np.nan
    field = Measurements(arrays["t_u_train"], values, 0.05)
    return field, Measurements(arrays["t_f_train"], arrays["f_train"], 0.05)


def _kraichnan_orszag_curves() -> tuple[Curve, ...]:
    times = np.linspace(0, 10, 201)
    solution = kraichnan_orszag_solution(times)
    return tuple(
        Curve(name, "t", times, times[:, None], i, solution[:, i]) for i, name in enumerate(MODES)
    )


def kraichnan_orszag() -> Benchmark:
    """Both rates of the Kraichnan-Orszag system, from few noisy values."""

    def state(field, source):
        unknown = Parameter(start=0.5)
        return Problem(
            kraichnan_orszag_residual,
            field,
            {"a": unknown, "b": unknown},
            (0.0,),
            (10.0,),
            source,
            tolerance=0.01,
            names=MODES,
        )

    return Benchmark(
        "kraichnan-orszag",
        state,
        _kraichnan_orszag_data,
        ("t_u_train", "u_train", "t_f_train", "f_train"),
        _kraichnan_orszag_arrays,
        _kraichnan_orszag_curves(),
        np.inf,
        {"a": 1.0, "b": 1.0},
        InverseConfig(),
        1000,
        {
            "epinet": _paper((3.93e-2, 7.39e-2, 6.69e-2), MODES, a=(0.98, 0.07), b=(1.01, 0.06)),
            "hmc": _paper((7.29e-2, 6.30e-2, 8.10e-2), MODES, a=(0.86, 0.06), b=(1.06, 0.03)),
        },
    )


# Korteweg-de Vries: two solitons that meet.
SLICES = (-1.5, 0.4)


def kdv_residual(u, parameters):
    """`u_t - kappa1 u u_x - kappa2 u_xxx`, of points (x, t)."""

    def at(s):
        value, slope, _, third = derivatives(u, s, [1.0, 0.0], 3)
        _, rate = derivatives(u, s, [0.0, 1.0], 1)
        return rate - parameters["kappa1"] * value * slope - parameters["kappa2"] * third

    return at


def kdv_solution(
    x: Float[np.ndarray, "*shape"], t: Float[np.ndarray, "*shape"]
) -> Float[np.ndarray, "*shape"]:
    """Two solitons: `2 d2/dx2 log` of a sum of four exponentials.

    That is twice the variance of their rates, with the exponentials as weights.
    """
    x, t = np.broadcast_arrays(np.asarray(x, float), np.asarray(t, float))
    first, second = x + t + np.log(3) / 2, 2 * x + 8 * t + np.log(3) / 2
    powers = np.stack([-first - second, first - second, second - first, first + second - np.log(9)])
    rates = np.array([-3.0, -1.0, 1.0, 3.0]).reshape(4, *(1,) * x.ndim)
    weights = np.exp(powers - powers.max(0))
    weights /= weights.sum(0)
    mean = np.sum(weights * rates, 0)
    return 2 * np.sum(weights * (rates - mean) ** 2, 0)


def _kdv_data(rng: np.random.Generator) -> tuple[Measurements, Measurements]:
    """The field at 200 random points and the source, zero, at 100."""

    def points(n):
        return rng.uniform((-10, -1.5), (10, 1.5), (n, 2))

    at, source_at = points(200), points(100)
    values = kdv_solution(*at.T) + rng.normal(0, 0.1, 200)
    source = Measurements(source_at, rng.normal(0, 0.1, (100, 1)), 0.1)
    return Measurements(at, values[:, None], 0.1), source


def _kdv_arrays(arrays) -> tuple[Measurements, Measurements]:
    def table(kind):
        points = np.hstack([arrays[f"x_{kind}_train"], arrays[f"t_{kind}_train"]])
        return Measurements(points, arrays[f"{kind}_train"], 0.1)

    return table("u"), table("f")


def _kdv_curves() -> tuple[Curve, ...]:
    x = np.linspace(-10, 10, 201)

    def curve(time):
        points = np.stack([x, np.full_like(x, time)], 1)
        return Curve(f"t = {time:g}", "x", x, points, 0, kdv_solution(x, time))

    return tuple(map(curve, SLICES))


def kdv() -> Benchmark:
    """Both coefficients of the Korteweg-de Vries equation, from scattered noisy values."""

    def state(field, source):
        unknown = Parameter(positive=True, prior=1.0)
        return Problem(
            kdv_residual,
            field,
            {"kappa1": unknown, "kappa2": unknown},
            (-10.0, -1.5),
            (10.0, 1.5),
            source,
            names=("u",),
        )

    names = tuple(curve.name for curve in _kdv_curves())
    return Benchmark(
        "kdv",
        state,
        _kdv_data,
        ("x_u_train", "t_u_train", "u_train", "x_f_train", "t_f_train", "f_train"),
        _kdv_arrays,
        _kdv_curves(),
        0.05,
        {"kappa1": 1.5, "kappa2": 0.25},
        replace(InverseConfig(), steps=10_000),
        500,
        {
            "epinet": _paper((1.23e-1, 5.37e-2), names, kappa1=(1.50, 0.05), kappa2=(0.37, 0.02)),
            "hmc": _paper((2.41e-1, 4.82e-2), names, kappa1=(1.39, 0.03), kappa2=(0.26, 0.01)),
        },
    )


def _paper(errors, names, **parameters) -> dict:
    return {
        "rl2e": dict(zip(names, errors, strict=True)),
        "parameters": {n: {"mean": mean, "std": std} for n, (mean, std) in parameters.items()},
    }


BENCHMARKS = {"kraichnan-orszag": kraichnan_orszag, "kdv": kdv}
