"""One admissible vector field, built from four blocks."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._blocks import Blocks, Moving, State


class Rates(NamedTuple):
    """Velocity at one state, with what the two laws say about it.

    Entropy and its rate are those of every local state: the second law holds in each.
    """

    velocity: Float[Array, " d"]
    energy: Float[Array, ""]
    energy_slope: Float[Array, " d"]
    entropies: Float[Array, " cell"]
    energy_rate: Float[Array, ""]
    entropy_rates: Float[Array, " cell"]


class Generic(eqx.Module):
    """`dx/dt = L DE + D Xi(x, DS)` from four blocks: one realisation of any method.

    All functions take one state in the coordinates of the blocks; `vmap` them over many.
    """

    blocks: Blocks

    def energy(self, x: State) -> Float[Array, ""]:
        """Energy of one state."""
        return self.blocks.domain.energy(self.energy_density, x)

    def entropy(self, x: State) -> Float[Array, ""]:
        """Entropy of one state."""
        return jnp.sum(self.entropies(x))

    def entropies(self, x: State) -> Float[Array, " cell"]:
        """Entropy of every local state."""
        return self.blocks.domain.entropies(self.entropy_density, x)

    def energy_density(self, local: Float[Array, " local"]) -> Float[Array, ""]:
        """Energy of one local state."""
        return sum((part(local) for part in self.blocks.energy), jnp.zeros((), local.dtype))

    def entropy_density(self, local: Float[Array, " local"]) -> Float[Array, ""]:
        """Entropy of one local state."""
        return sum((part(local) for part in self.blocks.entropy), jnp.zeros((), local.dtype))

    def poisson(self, x: State, entropy_slope: Moving, vector: Moving) -> Moving:
        """Action of the Poisson operator on one vector, among the directions that move."""
        actions = (part(x, entropy_slope, vector) for part in self.blocks.poisson)
        return sum(actions, jnp.zeros_like(vector))

    def dissipation_slope(self, local: Float[Array, " local"], y: Float[Array, " force"]):
        """Slope of the raw dissipation potential of one local state in its second argument."""

        def raw(y):
            return sum((part(local, y) for part in self.blocks.dissipation), jnp.zeros((), y.dtype))

        return jax.grad(raw)(y)

    def assemble(self, x: State, energy_slope: State, entropy_slope: State) -> State:
        """Velocity from given slopes, with the operator and the potential at `x`."""
        return self.blocks.domain.velocity(
            x,
            energy_slope,
            entropy_slope,
            lambda slope, vector: self.poisson(x, slope, vector),
            self.dissipation_slope,
        )

    def velocity(self, x: State) -> State:
        """Velocity of one state."""
        return self.assemble(x, jax.grad(self.energy)(x), jax.grad(self.entropy)(x))

    @eqx.filter_jit  # traced once, however often a step asks for it
    def rates(self, x: State) -> Rates:
        """Velocity of one state together with energy, entropy and their rates along it."""
        energy, energy_slope = jax.value_and_grad(self.energy)(x)
        entropy_slope, entropies = jax.grad(
            lambda x: _sum_and_terms(self.entropies(x)), has_aux=True
        )(x)
        velocity = self.assemble(x, energy_slope, entropy_slope)
        return Rates(
            velocity,
            energy,
            energy_slope,
            entropies,
            jnp.sum(energy_slope * velocity),
            self.blocks.domain.productions(entropy_slope, velocity),
        )

    def driven(self, velocity: State, energy_slope: State, imposed: Float[Array, " prescribed"]):
        """Velocity with imposed rates of the prescribed entries, and the power that this takes."""
        where = jnp.array(self.blocks.domain.prescribed)
        power = jnp.sum(energy_slope[where] * (imposed - velocity[where]))
        return velocity.at[where].set(imposed), power


def _sum_and_terms(terms):
    return jnp.sum(terms), terms
