"""The global tensor of the Poisson operator: the same for all states."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._activation import product


class AbstractTensor(eqx.Module):
    """A tensor `B` (d, d, d), known by what it does: one per realisation would fill the memory."""

    @abc.abstractmethod
    def contract(self, matrix: Float[Array, "d d"]) -> Float[Array, " d"]:
        """`sum_jk B_ijk matrix_jk`."""

    @abc.abstractmethod
    def expand(self, matrix: Float[Array, "d d"]) -> Float[Array, " d"]:
        """`sum_ik (B_ijk - B_ikj) matrix_ik`."""


class Tensor(AbstractTensor):
    """A tensor, or several along leading axes that all results then have too."""

    entries: Float[Array, "*leading d d d"]

    def contract(self, matrix):
        """`sum_jk B_ijk matrix_jk`."""
        return self._apply(self.entries, matrix)

    def expand(self, matrix):
        """`sum_ik (B_ijk - B_ikj) matrix_ik`."""
        skew = self.entries - jnp.swapaxes(self.entries, -1, -2)
        return self._apply(jnp.swapaxes(skew, -2, -3), matrix)

    def _apply(self, entries, matrix):
        flat = product(entries.reshape(-1, matrix.size), matrix.ravel())
        return flat.reshape(self.entries.shape[:-2])
