"""Several steps of an integrator in place of one."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ._integrator import AbstractIntegrator, Step

# Times that were divided and rounded do not ask for one step more.
SLACK = 1e-3
MOST = 1_000_000


def needs_division(times: Float[np.ndarray, " time"], longest: float) -> bool:
    """Whether any step from one time to the next is longer than it may be."""
    most = float(np.max(np.diff(times))) / longest
    if most > MOST:
        raise ValueError(
            f"from one time to the next there are {most:.3g} steps of the longest kind that the "
            f"model takes, {longest:g}; {MOST} is most."
        )
    return most > 1 + SLACK


class Divided(AbstractIntegrator):
    """Equal steps of another integrator, as many as it takes for none to be longer than `longest`.

    In scaled time. The laws are looked at where the last of them ends; reported are the sweeps of
    the one that took most. Gradients go through in forward mode only, as the number is not known
    when it is compiled.
    """

    whole: AbstractIntegrator
    longest: Float[Array, ""]

    def begin(self, field, x):
        """What the other integrator keeps."""
        return self.whole.begin(field, x)

    def step(self, field, x, rates, dt, motion, memory):
        """The first step has its rates already."""
        number = jnp.maximum(jnp.ceil(dt / self.longest - SLACK), 1)

        def part(i, before, rates):
            told = None if motion is None else motion.during(i / number, (i + 1) / number)
            made = self.whole.step(field, before.x, rates, dt / number, told, before.memory)
            sweeps = jnp.maximum(made.sweeps, before.sweeps)
            return Step(made.x, before.work + made.work, sweeps, made.memory)

        nothing = Step(x, jnp.zeros((), x.dtype), jnp.zeros((), int), memory)
        first = part(0, nothing, rates)
        return lax.fori_loop(
            1, number.astype(int), lambda i, before: part(i, before, field.rates(before.x)), first
        )
