"""The one interface of all integrators: a step of a realisation, with the work done during it."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..generic import Generic, Rates
from ._steppers import State, rk4


class Motion(NamedTuple):
    """Rates of prescribed entries at the start, halfway and at the end of a step."""

    start: Float[Array, " prescribed"]
    halfway: Float[Array, " prescribed"]
    end: Float[Array, " prescribed"]

    def at(self, share: Float[Array, ""]) -> Float[Array, " prescribed"]:
        """Rates after a share of the step, on the parabola through all three."""
        slope = 4 * self.halfway - 3 * self.start - self.end
        return self.start + share * (slope + share * 2 * (self.start + self.end - 2 * self.halfway))

    def during(self, start: Float[Array, ""], end: Float[Array, ""]) -> "Motion":
        """Rates during a part of the step, from one share of it to another."""
        return Motion(self.at(start), self.at((start + end) / 2), self.at(end))


class Between(NamedTuple):
    """What the laws speak about where the parts of one step begin.

    Energy less the work done since the step began, at most and at least; the smallest change of any
    local entropy in a part; entropies at the beginning of the last one, whose change is still open.
    """

    energy_low: Float[Any, ""]
    energy_high: Float[Any, ""]
    entropy_step: Float[Any, ""]
    entropies: Float[Any, " cell"]


class Step(NamedTuple):
    """Where a step ends, the work that prescribed entries did, and how many sweeps it took.

    A step that could not be solved ends nowhere: its state is not a number. One that was taken in
    parts tells what is seen `between` them.
    """

    x: State
    work: Float[Array, ""]
    sweeps: Int[Array, ""]
    memory: Any
    between: Between | None = None


class AbstractIntegrator(eqx.Module):
    """One step of one realisation after another; `memory` is what it keeps between them."""

    @abc.abstractmethod
    def begin(self, field: Generic, x: State) -> Any:
        """Memory at the first state."""

    @abc.abstractmethod
    def step(
        self,
        field: Generic,
        x: State,
        rates: Rates,
        dt: Float[Array, ""],
        motion: Motion | None,
        memory: Any,
    ) -> Step:
        """One step from `x`, where the field has these rates."""


class RungeKutta(AbstractIntegrator):
    """The classical method of order 4: explicit, and keeps the laws to its own error."""

    def begin(self, field, x):
        """Nothing to keep."""
        del field, x
        return ()

    def step(self, field, x, rates, dt, motion, memory):
        """Four velocities; with prescribed entries, of the state and the work together."""
        if motion is None:
            new = rk4(lambda x: field.rates(x).velocity, x, dt, rates.velocity)
            return Step(new, jnp.zeros((), x.dtype), jnp.zeros((), int), memory)

        def joined(rates, imposed):
            return jnp.append(*field.driven(rates.velocity, rates.energy_slope, imposed))

        def velocity(imposed):
            return lambda joint: joined(field.rates(joint[:-1]), imposed)

        joint = rk4(
            velocity(motion.start),
            jnp.append(x, 0),
            dt,
            joined(rates, motion.start),
            middle=velocity(motion.halfway),
            end=velocity(motion.end),
        )
        return Step(joint[:-1], joint[-1], jnp.zeros((), int), memory)


RK4 = RungeKutta()
