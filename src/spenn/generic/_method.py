"""The one interface of all methods: draw an index, get an admissible vector field."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ._blocks import Blocks
from ._domain import AbstractDomain, Point
from ._model import Generic


class AbstractMethod(eqx.Module):
    """A family of vector fields in scaled coordinates.

    Roll realisations out as `vmap(lambda z: rollout(method.realise(z), ...))(indices)` within one
    compiled function: what does not depend on the index then stays shared by all of them.
    """

    @property
    def domain(self) -> AbstractDomain:
        """What a state is made of; a point unless a method says otherwise."""
        return Point()

    @abc.abstractmethod
    def draw(self, n: int, *, key: PRNGKeyArray) -> Float[Array, "n k"]:
        """Indices of `n` realisations."""

    @abc.abstractmethod
    def realise(self, index: Float[Array, " k"]) -> Generic:
        """The vector field of one index."""


class Deterministic(AbstractMethod):
    """A single vector field (N-GENN): every realisation is the same, its index is empty."""

    base: Blocks

    @property
    def domain(self):
        """The domain of the blocks."""
        return self.base.domain

    def draw(self, n, *, key):
        """Empty indices."""
        del key
        return jnp.zeros((n, 0))

    def realise(self, index):
        """The vector field itself."""
        del index
        return Generic(self.base)
