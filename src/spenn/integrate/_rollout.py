"""Many steps of one vector field, from one state."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from ..generic import Generic, Rates
from ._integrator import RK4, AbstractIntegrator, Between, Motion, Step
from ._steppers import State, Velocity


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
    sweeps: Int[Any, " time"]
    """Sweeps that the step after each state took; 0 for explicit ones."""
    between: Between | None = None
    """What is seen between the parts of the step after each state, where steps are divided."""


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

    def motion(self) -> Motion:
        """Rates during every step, and during one of length zero at the end."""
        last = self.rates[-1:]
        end = jnp.concatenate([self.rates[1:], last])
        return Motion(self.rates, jnp.concatenate([self.halfway, last]), end)


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
    field: Generic,
    x: State,
    steps: Float[Array, " steps"],
    drive: Drive | None = None,
    integrator: AbstractIntegrator = RK4,
) -> tuple[Float[Array, "steps+1 d"], Laws]:
    """Rollout of a realisation, with energy, entropy and their rates at every state.

    Where a domain has prescribed entries, `drive` says how they move.
    """
    where = field.blocks.domain.prescribed
    if where and drive is None:
        raise ValueError(
            "this domain has prescribed entries: a rollout needs to know their motion."
        )
    if not where:
        drive = None
    # A last step of length zero audits the final state too.
    steps = jnp.append(steps, 0)
    motion = None if drive is None else (drive.values, drive.motion())

    def advance(carry, inputs):
        (x, work, memory), (dt, told) = carry, inputs
        if told is not None:
            x, told = x.at[jnp.array(where)].set(told[0]), told[1]
        rates = field.rates(x)
        new = integrator.step(field, x, rates, dt, told, memory)
        return (new.x, work + new.work, new.memory), (x, _laws(rates, work, new))

    first = x if drive is None else x.at[jnp.array(where)].set(drive.values[0])
    start = (first, jnp.zeros((), x.dtype), integrator.begin(field, first))
    _, (states, laws) = lax.scan(advance, start, (steps, motion))
    return states, laws


def _laws(rates: Rates, work: Float[Array, ""], new: Step) -> Laws:
    return Laws(
        rates.energy,
        work,
        rates.entropies,
        rates.energy_rate,
        jnp.min(rates.entropy_rates),
        new.sweeps,
        new.between,
    )
