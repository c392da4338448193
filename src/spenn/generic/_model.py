"""One admissible vector field, built from four blocks."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from . import _assembly as assembly
from ._blocks import Blocks, State


class Rates(NamedTuple):
    """Velocity at one state, with what the two laws say about it."""

    velocity: Float[Array, " d"]
    energy: Float[Array, ""]
    entropy: Float[Array, ""]
    energy_rate: Float[Array, ""]
    entropy_rate: Float[Array, ""]


class Generic(eqx.Module):
    """`dx/dt = L DE + D Xi(x, DS)` from four blocks: one realisation of any method.

    All functions take one state in the coordinates of the blocks; `vmap` them over many.
    """

    blocks: Blocks

    def energy(self, x: State) -> Float[Array, ""]:
        """Energy of one state."""
        return sum((part(x) for part in self.blocks.energy), jnp.zeros((), x.dtype))

    def entropy(self, x: State) -> Float[Array, ""]:
        """Entropy of one state."""
        return sum((part(x) for part in self.blocks.entropy), jnp.zeros((), x.dtype))

    def poisson(self, x: State, entropy_slope: State, vector: State) -> State:
        """Action of the Poisson operator on one vector."""
        actions = (part(x, entropy_slope, vector) for part in self.blocks.poisson)
        return sum(actions, jnp.zeros_like(x))

    def dissipation_slope(self, x: State, y: State) -> State:
        """Slope of the raw dissipation potential in its second argument."""

        def raw(y):
            return sum((part(x, y) for part in self.blocks.dissipation), jnp.zeros((), x.dtype))

        return jax.grad(raw)(y)

    def assemble(self, x: State, energy_slope: State, entropy_slope: State) -> State:
        """Velocity from given slopes, with the operator and the potential at `x`."""
        return assembly.velocity(
            energy_slope,
            entropy_slope,
            lambda vector: self.poisson(x, entropy_slope, vector),
            lambda y: self.dissipation_slope(x, y),
        )

    def velocity(self, x: State) -> State:
        """Velocity of one state."""
        return self.assemble(x, jax.grad(self.energy)(x), jax.grad(self.entropy)(x))

    def rates(self, x: State) -> Rates:
        """Velocity of one state together with energy, entropy and their rates along it."""
        energy, energy_slope = jax.value_and_grad(self.energy)(x)
        entropy, entropy_slope = jax.value_and_grad(self.entropy)(x)
        velocity = self.assemble(x, energy_slope, entropy_slope)
        return Rates(
            velocity,
            energy,
            entropy,
            jnp.sum(energy_slope * velocity),
            jnp.sum(entropy_slope * velocity),
        )
