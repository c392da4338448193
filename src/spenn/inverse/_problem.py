"""What a user states: an equation with unknown constants, and measurements with their noise."""

from collections.abc import Callable, Mapping
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
        size = len(self.lower)
        if not self.parameters:
            raise ValueError("an inverse problem needs at least one unknown parameter.")
        if len(self.upper) != size or not np.all(np.greater(self.upper, self.lower)):
            raise ValueError("every upper end of the box must lie above its lower end.")
        for what, data in (("field", self.field), ("source", self.source)):
            if data is not None and data.points.shape[1] != size:
                raise ValueError(
                    f"points of the {what} have {data.points.shape[1]} coordinates, the box {size}."
                )
        count = self.field.values.shape[1]
        extent = np.subtract(self.upper, self.lower)
        defaults: dict[str, Any] = {
            "tolerance": self.source.noise / 2
            if self.source
            else 2 * self.field.noise / float(extent.max()),
            "collocation": 50 if size == 1 else 300,
            "lengths": tuple((extent / 4).tolist()),
            "names": tuple(f"u{i + 1}" for i in range(count)),
        }
        for name, value in defaults.items():
            if not getattr(self, name):
                object.__setattr__(self, name, value)
        if len(self.names) != count:
            raise ValueError(f"{count} components are measured, but {len(self.names)} are named.")

    def constants(self, raw: Float[Array, "*n p"]) -> dict[str, Float[Array, "*n"]]:
        """Parameters by name, from the numbers that are learned."""
        pairs = enumerate(self.parameters.items())
        return {name: parameter.value(raw[..., i]) for i, (name, parameter) in pairs}


def derivatives(
    u: Field, s: Float[Array, " d"], direction: Float[Any, " d"], order: int
) -> tuple[Float[Array, " k"], ...]:
    """`u` at a point and its derivatives along a direction, up to an order.

    Forward over forward: the cost grows with the order, not exponentially with it as it would for
    nested reverse mode, and every lower order comes with the highest.
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
