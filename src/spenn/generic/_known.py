"""Known parts: a user's functions, in the user's units, as parts in scaled coordinates.

Their matrix products are done in full precision, as all others are: see `networks.product`.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..networks import product
from ._assembly import restricted_operator
from ._blocks import AbstractDissipation, AbstractPoisson, AbstractPotential
from ._coordinates import Coordinates


class KnownPotential(AbstractPotential):
    """A user's energy or entropy, `function(x) -> ()`, in a unit of its own."""

    function: Callable = eqx.field(static=True)
    coordinates: Coordinates
    unit: Float[Array, ""] = eqx.field(default=1.0, converter=jnp.asarray)

    def __call__(self, x):
        """Value at one state."""
        return _precisely(self.function, self.coordinates.unscaled(x)) / self.unit


class KnownPoisson(AbstractPoisson):
    """A user's Poisson operator, `function(x) -> (d, d)` skew, in the directions that move."""

    function: Callable = eqx.field(static=True)
    coordinates: Coordinates
    directions: Float[Array, "d moving"] | None = None

    def operator(self, x, entropy_slope):
        """Matrix at one state."""
        scale, time_unit = self.coordinates.scale, self.coordinates.time_unit
        given = _precisely(self.function, self.coordinates.unscaled(x))
        operator = given * (time_unit / (scale[:, None] * scale))
        if self.directions is not None:
            operator = product(self.directions.T, product(operator, self.directions))
        return restricted_operator(operator, entropy_slope)


class KnownDissipation(AbstractDissipation):
    """A user's dissipation potential, `function(x, y) -> ()` convex in `y`."""

    function: Callable = eqx.field(static=True)
    coordinates: Coordinates
    directions: Float[Array, "d moving"] | None = None

    def __call__(self, x, y):
        """Value at one state and one conjugate variable."""
        y = y if self.directions is None else product(self.directions, y)
        # On a bar the conjugate variable has no entry for the strain, which comes first.
        scale = self.coordinates.scale[-y.size :]
        given = _precisely(self.function, self.coordinates.unscaled(x), y / scale)
        return self.coordinates.time_unit * given


def _precisely(function: Callable, *arguments: Array) -> Array:
    with jax.default_matmul_precision("highest"):
        return function(*arguments)
