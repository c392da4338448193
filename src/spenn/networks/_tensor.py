"""The global tensor of the Poisson operator: the same for all states."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._activation import product


class AbstractTensor(eqx.Module):
    """A tensor `B` (d, d, d), known by what it does: one per realisation would fill the memory."""

    @abc.abstractmethod
    def __call__(self, vector: Float[Array, " d"]) -> Float[Array, "d d"]:
        """Matrix `Q` with the rows `(B_i - B_i^T) vector`, so that `Q vector = 0`."""


class Tensor(AbstractTensor):
    """A tensor, or several along leading axes that the result then has too."""

    entries: Float[Array, "*leading d d d"]

    def __call__(self, vector):
        """Matrix `Q` with the rows `(B_i - B_i^T) vector`, so that `Q vector = 0`."""
        skew = self.entries - jnp.swapaxes(self.entries, -1, -2)
        return product(skew.reshape(-1, vector.size), vector).reshape(skew.shape[:-1])
