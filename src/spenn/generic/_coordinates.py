"""Scaled coordinates: order one inside, the user's units outside.

An affine change of state and a change of time unit keep the whole structure. With `x = offset +
scale * xi` and `t = time_unit * tau`, the blocks in the new coordinates are

    E'(xi) = E(x),  S'(xi) = S(x),  L'(xi) = time_unit * L(x) / (scale scale^T),
    Xi'(xi, y) = time_unit * Xi(x, y / scale).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float


class Coordinates(eqx.Module):
    """Affine map between the user's state and the model's."""

    offset: Float[Array, " d"]
    scale: Float[Array, " d"]
    time_unit: Float[Array, ""]

    @classmethod
    def from_data(
        cls, states: Float[ArrayLike, "n d"], derivatives: Float[ArrayLike, "n d"]
    ) -> "Coordinates":
        """Standardise every variable and set the time unit so that velocities are of order one."""
        states, derivatives = np.asarray(states), np.asarray(derivatives)
        scale = states.std(0)
        scale = np.where(scale > 0, scale, 1.0)
        rate = np.sqrt(np.mean((derivatives / scale) ** 2))
        return cls.of(states.mean(0), scale, 1 / rate if rate > 0 else 1.0)

    @classmethod
    def of(cls, offset: ArrayLike, scale: ArrayLike, time_unit: ArrayLike) -> "Coordinates":
        """Coordinates from numbers, in the default floating type."""
        return cls(*(jnp.asarray(a, jnp.result_type(float)) for a in (offset, scale, time_unit)))

    @classmethod
    def identity(cls, size: int) -> "Coordinates":
        """The user's units themselves."""
        return cls.of(np.zeros(size), np.ones(size), 1.0)

    def on_host(self) -> "Coordinates":
        """The same map for NumPy arrays, in double precision: nothing is rounded before scaling."""
        return jax.tree.map(lambda a: np.asarray(a, np.float64), self)

    def scaled(self, x: Float[Any, "*n d"]) -> Float[Any, "*n d"]:
        """User's state to model's state."""
        return (x - self.offset) / self.scale

    def unscaled(self, xi: Float[Any, "*n d"]) -> Float[Any, "*n d"]:
        """Model's state to user's state."""
        return self.offset + self.scale * xi

    def scaled_velocity(self, velocity: Float[Any, "*n d"]) -> Float[Any, "*n d"]:
        """User's velocity to model's velocity."""
        return velocity * (self.time_unit / self.scale)

    def unscaled_velocity(self, velocity: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """Model's velocity to user's velocity."""
        return velocity * (self.scale / self.time_unit)
