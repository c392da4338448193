"""Monte Carlo dropout that keeps the laws.

A realisation drops hidden units and scales up the others, the same ones for the whole of its
rollout, so it is one vector field with an energy and an entropy of its own. Multiplying units of a
convex path by numbers that are not negative keeps it convex; energy, entropy and raw operator may
be anything. Hence every mask gives an admissible model.
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
from ..networks import MLP, PICNN, ConvexFeatures, softplus

Mask = Float[Array, "layer width"]


class MaskedMLP(eqx.Module):
    """An MLP with its hidden units multiplied by a mask."""

    network: MLP
    mask: Mask

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        """Apply the masked network to one input."""
        for layer, mask in zip(self.network.layers, self.mask, strict=True):
            x = softplus(layer(x)) * mask
        return self.network.readout(x)


class MaskedPICNN(eqx.Module):
    """A PICNN with the units of both paths multiplied by a mask >= 0: again convex in `y`."""

    network: PICNN
    mask: Mask

    def __call__(self, x: Float[Array, " in"], y: Float[Array, " convex"]) -> Float[Array, " 1"]:
        """Apply the masked network to one state and one conjugate variable."""
        network, depth = self.network, len(self.network.layers)
        convex, free = self.mask[:depth], self.mask[depth:]
        u, c = x, network.layers[0](x, y, None) * convex[0]
        for i, (condition, layer) in enumerate(
            zip(network.condition, network.layers[1:], strict=True)
        ):
            u = softplus(condition(u)) * free[i]
            c = layer(u, y, c) * convex[i + 1]
        return network.readout(ConvexFeatures(u, c))


class MCDropout(AbstractMethod):
    """Admissible models that differ in which hidden units are dropped.

    An index holds one number per hidden unit, uniform in [0, 1]: a unit whose number is below
    `rate` is dropped.
    """

    base: Blocks
    rate: float = eqx.field(static=True)

    @property
    def domain(self):
        """The domain of the base."""
        return self.base.domain

    def draw(self, n: int, *, key: PRNGKeyArray) -> Float[Array, "n units"]:
        """Indices of `n` realisations."""
        units = sum(r * c for _, (r, c) in self._masks())
        return jax.random.uniform(key, (n, units))

    def realise(self, index: Float[Array, " units"]) -> Generic:
        """The vector field that is left when some units are dropped."""
        keep = jnp.where(index < self.rate, 0.0, 1 / (1 - self.rate)).astype(index.dtype)
        masks, used = {}, 0
        for part, (rows, columns) in self._masks():
            masks[id(part)] = keep[used : used + rows * columns].reshape(rows, columns)
            used += rows * columns

        def masked(part) -> Any:
            match part:
                case LearnedPotential(network=network):
                    return LearnedPotential(MaskedMLP(network, masks[id(part)]))
                case LearnedPoisson(network=network, tensor=tensor):
                    return LearnedPoisson(MaskedMLP(network, masks[id(part)]), tensor)
                case LearnedDissipation(network=network):
                    return LearnedDissipation(MaskedPICNN(network, masks[id(part)]))
            return part

        blocks = {name: tuple(map(masked, getattr(self.base, name))) for name in BLOCKS}
        return Generic(Blocks(**blocks, domain=self.base.domain))

    def _masks(self) -> list[tuple[Any, tuple[int, int]]]:
        """Learned parts, with the number of layers that units are dropped in and their width."""
        found = []
        for part in (part for name in BLOCKS for part in getattr(self.base, name)):
            match part:
                case (
                    LearnedPotential(network=MLP() as network)
                    | LearnedPoisson(network=MLP() as network)
                ):
                    found.append((part, (len(network.layers), network.readout.weight.shape[1])))
                case LearnedDissipation(network=PICNN() as network):
                    layers = len(network.layers) + len(network.condition)
                    found.append((part, (layers, network.mix.root.shape[1])))
        return found
