"""What a user states: an equation with unknown constants, and measurements with their noise."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Field = Callable[[Float[Array, " d"]], Float[Array, " k"]]
Residual = Callable[[Field, dict[str, Float[Array, ""]]], Field]


@dataclass(frozen=True)
class Measurements:
    """Values (measurement, component) at points (measurement, coordinate), and their noise.

    The noise is a standard deviation, the same for all. NaN stands for what was not measured.
    """

    points: Float[np.ndarray, "n d"]
    values: Float[np.ndarray, "n k"]
    noise: float

    def __post_init__(self):
        """Refuse what cannot be fitted, with a sentence."""
        for name in ("points", "values"):
            array = np.asarray(getattr(self, name), np.float64)
            if array.ndim != 2:
                raise ValueError(
                    f"{name} of measurements must be a table, one row each; the shape is "
                    f"{array.shape}."
                )
            object.__setattr__(self, name, array)
        if len(self.points) != len(self.values):
            raise ValueError(
                f"there are {len(self.points)} points, but values at {len(self.values)} of them."
            )
        if not np.all(np.isfinite(self.points)) or np.any(np.isinf(self.values)):
            raise ValueError("points must be finite, and values finite or NaN (not measured).")
        if not self.noise > 0:
            raise ValueError(f"the noise must be a positive number; it is {self.noise}.")

    @property
    def known(self) -> np.ndarray:
        """Which entries were measured."""
        return ~np.isnan(self.values)


@dataclass(frozen=True)
class Parameter:
    """An unknown constant, of any sign or kept positive.

    A normal prior of standard deviation `prior` around zero is on the constant itself or, where it
    is positive, on its logarithm. Learning begins at `start`.
    """

    positive: bool = False
    prior: float = 2.0
    start: float = 1.0

    def __post_init__(self):
        """Refuse what cannot be inferred, with a sentence."""
        if not self.prior > 0:
            raise ValueError(f"the prior of a parameter must be positive; it is {self.prior}.")
        if self.positive and not self.start > 0:
            raise ValueError(f"a positive parameter cannot start at {self.start}.")

    def value(self, raw: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The constant, from the number that is learned."""
        return jnp.exp(raw) if self.positive else raw

    @property
    def raw_start(self) -> float:
        """The number that learning starts from."""
        return float(np.log(self.start)) if self.positive else self.start


@dataclass(frozen=True)
class Problem:
    """`residual(u, parameters)(s) = source(s)` for all `s` in a box, with `u` measured at points.

    `residual` takes a field `u` (a function of one point `s`) and the parameters by name, and
    returns a function of one point; `derivatives` helps to write it. Without measurements of it the
    source is zero. The equation is held to `tolerance`, at as many points as `collocation` says;
    `lengths` are those over which the field varies, by coordinate. What is left out of these is
    chosen from the noise and the box.
    """

    residual: Residual
    field: Measurements
    parameters: Mapping[str, Parameter]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    source: Measurements | None = None
    tolerance: float = 0.0
    collocation: int = 0
    lengths: tuple[float, ...] = ()
    names: tuple[str, ...] = ()

    def __post_init__(self):
        """Refuse contradictions; fill in what was left to choose."""
        ends = np.atleast_1d(self.lower), np.atleast_1d(self.upper)
        if ends[0].shape != ends[1].shape or not np.all(ends[1] > ends[0]):
            raise ValueError("every upper end of the box must lie above its lower end.")
        for name, end in zip(("lower", "upper"), ends, strict=True):
            object.__setattr__(self, name, tuple(end.tolist()))
        if not self.parameters:
            raise ValueError("an inverse problem needs at least one unknown parameter.")
        for what, data in (("field", self.field), ("source", self.source)):
            if data is not None:
                _check_points(what, data.points, *ends)
        extent = ends[1] - ends[0]
        defaults: dict[str, Any] = {
            "tolerance": self.source.noise / 2
            if self.source
            else 2 * self.field.noise / float(extent.max()),
            "collocation": 50 if extent.size == 1 else 300,
            "lengths": tuple((extent / 4).tolist()),
            "names": tuple(f"u{i + 1}" for i in range(self.field.values.shape[1])),
        }
        for name, value in defaults.items():
            if not np.size(getattr(self, name)) or not np.any(getattr(self, name)):
                object.__setattr__(self, name, value)
        self._check_sizes()

    def _check_sizes(self):
        size, (_, count) = len(self.lower), self.field.values.shape
        if len(self.names) != count:
            raise ValueError(f"{count} components are measured, but {len(self.names)} are named.")
        if len(self.lengths) != size or min(self.lengths) <= 0:
            raise ValueError(f"lengths must be {size} positive numbers, one per coordinate.")
        if self.tolerance < 0 or self.collocation < 0:
            raise ValueError("tolerance and number of collocation points must be positive.")
        point, values = (
            jnp.zeros(size),
            constants(self.parameters.items(), jnp.ones(len(self.parameters))),
        )
        try:
            left = jax.eval_shape(self.residual(lambda s: jnp.zeros(count) * s[0], values), point)
        except KeyError as error:
            raise ValueError(
                f"the residual asks for a parameter {error} that is not given."
            ) from None
        if self.source and self.source.values.shape[1] != int(np.prod(left.shape)):
            raise ValueError(
                f"the residual has {int(np.prod(left.shape))} components, but "
                f"{self.source.values.shape[1]} of the source are measured."
            )

    @property
    def units(self) -> tuple[float, ...]:
        """Size of each component of the field: the root of its mean square."""
        sizes = np.sqrt(np.nanmean(self.field.values**2, 0))
        return tuple(np.maximum(sizes, self.field.noise).tolist())

    def constants(self, raw: Float[Array, "*n p"]) -> dict[str, Float[Array, "*n"]]:
        """Parameters by name, from the numbers that are learned."""
        return constants(self.parameters.items(), raw)


def constants(
    parameters: Iterable[tuple[str, Parameter]], raw: Float[Array, "*n p"]
) -> dict[str, Float[Array, "*n"]]:
    """Parameters by name, from the numbers that are learned."""
    return {name: parameter.value(raw[..., i]) for i, (name, parameter) in enumerate(parameters)}


def _check_points(what: str, points: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
    if points.shape[1] != lower.size:
        raise ValueError(
            f"points of the {what} have {points.shape[1]} coordinates, the box {lower.size}."
        )
    if np.any(points < lower) or np.any(points > upper):
        raise ValueError(f"some points of the {what} lie outside the box; make the box larger.")


def derivatives(
    u: Field, s: Float[Array, " d"], direction: Float[Any, " d"], order: int
) -> tuple[Float[Array, " k"], ...]:
    """`u` at a point and its derivatives along a direction, up to an order.

    Forward over forward, which is cheaper than nested reverse mode; every lower order comes with
    the highest. Meant for the orders of physics, up to three or four. A mixed derivative is the
    derivative of a derivative: nest two calls.
    """
    along = jnp.asarray(direction, s.dtype)

    def raised(lower):
        def function(s):
            values, slopes = jax.jvp(lower, (s,), (along,))
            return (*values, slopes[-1])

        return function

    function = lambda s: (u(s),)  # noqa: E731
    for _ in range(order):
        function = raised(function)
    return function(s)
