"""Many steps of one vector field, from one state."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..generic import Generic
from ._steppers import State, Velocity, rk4


class Laws(NamedTuple):
    """What the two laws speak about, along one rollout.

    Work is what prescribed entries have done; energy less work is constant. Entropy is that of
    every local state, and the entropy rate the smallest of theirs.
    """

    energy: Float[Any, " time"]
    work: Float[Any, " time"]
    entropy: Float[Any, "time cell"]
    energy_rate: Float[Any, " time"]
    entropy_rate: Float[Any, " time"]


class Drive(NamedTuple):
    """Prescribed entries along a rollout: values and rates at every record, and rates halfway."""

    values: Float[Any, "steps+1 prescribed"]
    rates: Float[Any, "steps+1 prescribed"]
    halfway: Float[Any, "steps prescribed"]

    @classmethod
    def from_records(cls, steps, values, rates) -> "Drive":
        """Drive through recorded values and rates (time, prescribed).

        The rates halfway are those with which a Runge-Kutta step lands on the recorded values.
        """
        change = np.diff(values, axis=-2) / np.asarray(steps)[:, None]
        return cls(values, rates, (6 * change - rates[..., :-1, :] - rates[..., 1:, :]) / 4)


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
    field: Generic, x: State, steps: Float[Array, " steps"], drive: Drive | None = None
) -> tuple[Float[Array, "steps+1 d"], Laws]:
    """RK4 rollout of a realisation, with energy, entropy and their rates at every state.

    The rates come with the first stage of each step and cost next to nothing. Where a domain has
    prescribed entries, `drive` says how they move.
    """
    # A last step of length zero audits the final state too.
    steps = jnp.append(steps, 0)
    if not field.blocks.domain.prescribed:
        _, (states, laws) = lax.scan(lambda x, dt: _free_step(field, x, dt), x, steps)
        return states, laws
    if drive is None:
        raise ValueError(
            "this domain has prescribed entries: a rollout needs to know their motion."
        )
    last = lambda a: jnp.concatenate([a, a[-1:]])  # noqa: E731
    inputs = (steps, drive.values, drive.rates, last(drive.halfway), last(drive.rates[1:]))
    start = (x, jnp.zeros((), x.dtype))
    _, (states, laws) = lax.scan(lambda s, i: _driven_step(field, s, i), start, inputs)
    return states, laws


def _free_step(field: Generic, x, dt):
    rates = field.rates(x)
    new = rk4(field.velocity, x, dt, rates.velocity)
    return new, (x, _laws(rates, jnp.zeros_like(rates.energy)))


def _driven_step(field: Generic, start, inputs):
    """One step of the state and of the work done on it, which energy must account for."""
    (x, work), (dt, values, *imposed) = start, inputs
    x = x.at[jnp.array(field.blocks.domain.prescribed)].set(values)

    def joined(rates, imposed):
        return jnp.append(*field.driven(rates, imposed))

    def velocity(imposed):
        return lambda joint: joined(field.rates(joint[:-1]), imposed)

    rates = field.rates(x)
    now, middle, end = imposed
    joint = rk4(
        velocity(now),
        jnp.append(x, work),
        dt,
        joined(rates, now),
        middle=velocity(middle),
        end=velocity(end),
    )
    return (joint[:-1], joint[-1]), (x, _laws(rates, work))


def _laws(rates, work) -> Laws:
    return Laws(
        rates.energy, work, rates.entropies, rates.energy_rate, jnp.min(rates.entropy_rates)
    )
