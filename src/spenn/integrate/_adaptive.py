"""Any solver of Diffrax, adaptive or stiff, for any realisation."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from ._integrator import AbstractIntegrator, Step

MOST = 4096
"""Steps of the solver within one step of the rollout."""


class Adaptive(AbstractIntegrator):
    """From one time to the next by a solver of Diffrax, in as many steps as its tolerances ask for.

    Needs `pip install spenn[diffrax]`. Tolerances are in scaled coordinates, where motion is of
    order one. What the solver counts as steps is reported as sweeps.
    """

    solver: Any
    rtol: float = eqx.field(default=1e-6, static=True)
    atol: float = eqx.field(default=1e-6, static=True)

    def begin(self, field, x):
        """Nothing to keep."""
        del field, x
        return ()

    def step(self, field, x, rates, dt, motion, memory):
        """Solve from 0 to 1 with the time step as a factor, so that it may be zero."""
        import diffrax

        def velocity(t, joint, _):
            rates = field.rates(joint[:-1])
            if motion is None:
                return dt * jnp.append(rates.velocity, 0)
            driven = field.driven(rates.velocity, rates.energy_slope, motion.at(t))
            return dt * jnp.append(*driven)

        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(velocity),
            self.solver,
            0.0,
            1.0,
            None,
            jnp.append(x, 0),
            stepsize_controller=diffrax.PIDController(self.rtol, self.atol),
            max_steps=MOST,
            throw=False,
        )
        joint = jnp.asarray(solution.ys)[-1]
        solved = solution.result == diffrax.RESULTS.successful
        new = jnp.where(solved, joint[:-1], jnp.nan)
        return Step(new, joint[-1], solution.stats["num_steps"], memory)
