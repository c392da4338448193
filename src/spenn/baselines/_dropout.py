"""Monte Carlo dropout that keeps the laws.

A realisation drops units of the last hidden layer of every network and scales up the others, the
same ones for the whole of its rollout, so it is one vector field with an energy and an entropy of
its own. Multiplying the ends of a convex path by numbers that are not negative keeps it convex;
energy, entropy and raw operator may be anything. Hence every mask gives an admissible model. What
reads the last hidden layer is linear, so the mean of a network over masks is the network itself;
dropping units of earlier layers as well costs accuracy (docs/ablation.md).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..generic import (
    BLOCKS,
    AbstractMethod,
    Blocks,
    Generic,
    LearnedDissipation,
    LearnedPoisson,
    LearnedPotential,
)
from ..networks import MLP, PICNN, ConvexFeatures

Mask = Float[Array, " width"]


class MaskedMLP(eqx.Module):
    """An MLP with the units of its last hidden layer multiplied by a mask."""

    network: MLP
    mask: Mask

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        """Apply the masked network to one input."""
        return self.network.readout(self.network.hidden(x) * self.mask)


class MaskedPICNN(eqx.Module):
    """A PICNN with the ends of its convex path multiplied by a mask >= 0: again convex in `y`."""

    network: PICNN
    mask: Mask

    def __call__(self, x: Float[Array, " in"], y: Float[Array, " convex"]) -> Float[Array, " 1"]:
        """Apply the masked network to one state and one conjugate variable."""
        condition, convex = self.network.features(x, y)
        return self.network.readout(ConvexFeatures(condition, convex * self.mask))


class MCDropout(AbstractMethod):
    """Admissible models that differ in which hidden units are dropped.

    An index holds one number per unit that may be dropped, uniform in [0, 1]: a unit whose number
    is below `rate` is dropped.
    """

    base: Blocks
    rate: float = eqx.field(static=True)

    @property
    def domain(self):
        """The domain of the base."""
        return self.base.domain

    def draw(self, n: int, *, key: PRNGKeyArray) -> Float[Array, "n units"]:
        """Indices of `n` realisations."""
        units = sum(width for _, width in self._masks())
        return jax.random.uniform(key, (n, units))

    def realise(self, index: Float[Array, " units"]) -> Generic:
        """The vector field that is left when some units are dropped."""
        keep = jnp.where(index < self.rate, 0.0, 1 / (1 - self.rate)).astype(index.dtype)
        masks, used = {}, 0
        for part, width in self._masks():
            masks[id(part)] = keep[used : used + width]
            used += width

        def masked(part) -> Any:
            match part:
                case LearnedPotential(network=network, reads=reads):
                    return LearnedPotential(MaskedMLP(network, masks[id(part)]), reads)
                case LearnedPoisson(network=network, tensor=tensor):
                    return LearnedPoisson(MaskedMLP(network, masks[id(part)]), tensor)
                case LearnedDissipation(network=network):
                    return LearnedDissipation(MaskedPICNN(network, masks[id(part)]))
            return part

        blocks = {name: tuple(map(masked, getattr(self.base, name))) for name in BLOCKS}
        return Generic(Blocks(**blocks, domain=self.base.domain))

    def _masks(self) -> list[tuple[Any, int]]:
        """Learned parts, with the number of units that may be dropped."""
        found = []
        for part in (part for name in BLOCKS for part in getattr(self.base, name)):
            match part:
                case (
                    LearnedPotential(network=MLP() as network)
                    | LearnedPoisson(network=MLP() as network)
                ):
                    found.append((part, network.readout.weight.shape[1]))
                case LearnedDissipation(network=PICNN() as network):
                    found.append((part, network.mix.root.shape[1]))
        return found
