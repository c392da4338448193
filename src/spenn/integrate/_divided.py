"""Several steps of an integrator in place of one."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..generic import Rates
from ._adaptive import Adaptive
from ._integrator import AbstractIntegrator, Between, Step

# Times that were divided and rounded do not ask for one step more.
SLACK = 1e-3
MOST = 1_000_000


def divided(
    integrator: AbstractIntegrator, times: Float[np.ndarray, " time"], longest: float | None
) -> AbstractIntegrator:
    """An integrator that takes no step longer than `longest` from one time to the next.

    Times in scaled units. Where no step is longer anyway, and where an integrator finds its steps
    itself, it stays as it is.
    """
    if longest is None or isinstance(integrator, Adaptive):
        return integrator
    most = float(np.max(np.diff(times))) / longest
    if most > MOST:
        raise ValueError(
            f"from one time to the next the model would take {most:.3g} steps, and {MOST} is most: "
            "forecast at times that lie closer together, or with an integrator that finds its "
            "steps itself, adaptive or stiff."
        )
    if most <= 1 + SLACK:
        return integrator
    return Divided(integrator, jnp.asarray(longest, float))


class Divided(AbstractIntegrator):
    """Equal steps of another integrator, as many as it takes for none to be longer than `longest`.

    In scaled time. The laws are looked at where each of them begins; reported are the sweeps of the
    one that took most. Gradients go through in forward mode only, as the number is not known when
    it is compiled.
    """

    integrator: AbstractIntegrator
    longest: Float[Array, ""]

    def begin(self, field, x):
        """What the other integrator keeps."""
        return self.integrator.begin(field, x)

    def step(self, field, x, rates, dt, motion, memory):
        """The first step has its rates already."""
        number = jnp.maximum(jnp.ceil(dt / self.longest - SLACK), 1)

        def part(i, before, rates):
            told = None if motion is None else motion.during(i / number, (i + 1) / number)
            made = self.integrator.step(field, before.x, rates, dt / number, told, before.memory)
            sweeps = jnp.maximum(made.sweeps, before.sweeps)
            return Step(made.x, before.work + made.work, sweeps, made.memory)

        def go_on(i, reached):
            before, seen = reached
            rates = field.rates(before.x)
            return part(i, before, rates), _looked(seen, rates, before.work)

        nothing = Step(x, jnp.zeros((), x.dtype), jnp.zeros((), int), memory)
        endless = jnp.asarray(jnp.inf, x.dtype)
        start = Between(rates.energy, rates.energy, endless, rates.entropies)
        reached = part(0, nothing, rates), start
        made, seen = lax.fori_loop(1, number.astype(int), go_on, reached)
        return made._replace(between=seen)


def _looked(seen: Between, rates: Rates, work: Float[Array, ""]) -> Between:
    """What is seen so far, and at the beginning of one more part."""
    kept = rates.energy - work
    return Between(
        jnp.minimum(seen.energy_low, kept),
        jnp.maximum(seen.energy_high, kept),
        jnp.minimum(seen.entropy_step, jnp.min(rates.entropies - seen.entropies)),
        rates.entropies,
    )
