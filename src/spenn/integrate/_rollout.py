"""Many steps of one vector field, from one state."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ..generic import Generic
from ._steppers import State, Velocity, rk4


class Laws(NamedTuple):
    """What the two laws speak about, along one rollout."""

    energy: Float[Any, " time"]
    entropy: Float[Any, " time"]
    energy_rate: Float[Any, " time"]
    entropy_rate: Float[Any, " time"]


def rollout(
    step: Callable[[Velocity, State, Float[Array, ""]], State],
    velocity: Velocity,
    x: State,
    steps: Float[Any, " steps"],
) -> Float[Array, "steps+1 d"]:
    """States at the start and after each of the given time steps."""

    def advance(x, dt):
        new = step(velocity, x, dt)
        return new, new

    _, states = lax.scan(advance, x, steps)
    return jnp.concatenate([x[None], states])


def audited_rollout(
    field: Generic, x: State, steps: Float[Array, " steps"]
) -> tuple[Float[Array, "steps+1 d"], Laws]:
    """RK4 rollout of a realisation, with energy, entropy and their rates at every state.

    The rates come with the first stage of each step and cost next to nothing.
    """

    def advance(x, dt):
        velocity, *laws = field.rates(x)
        return rk4(field.velocity, x, dt, velocity), (x, Laws(*laws))

    # A last step of length zero audits the final state too.
    _, (states, laws) = lax.scan(advance, x, jnp.append(steps, 0))
    return states, laws
