"""What a benchmark system states about itself, and the data that follow from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from ..data import Trajectories
from ..generic import (
    Blocks,
    Coordinates,
    Generic,
    KnownDissipation,
    KnownPoisson,
    KnownPotential,
)
from ..integrate import implicit_midpoint, rk4, rollout


@dataclass(frozen=True)
class System:
    """A system in the user's units: its four GENERIC blocks, its protocol, the paper's figures."""

    name: str
    title: str
    names: tuple[str, ...]
    labels: tuple[str, ...]
    energy: Callable
    entropy: Callable
    poisson: Callable
    dissipation: Callable
    draw: Callable[[np.random.Generator, int], np.ndarray]
    draw_outside: Callable[[np.random.Generator, int], np.ndarray]
    dt: float
    records: int
    split: tuple[int, int, int]
    paper: Mapping[str, Mapping]

    @property
    def times(self) -> np.ndarray:
        """Times of all records."""
        return self.dt * np.arange(self.records)

    def exact(self) -> Generic:
        """The exact physics as a realisation, in the user's units."""
        units = Coordinates.identity(len(self.names))
        return Generic(
            Blocks(
                (KnownPotential(self.energy, units),),
                (KnownPotential(self.entropy, units),),
                (KnownPoisson(self.poisson, units),),
                (KnownDissipation(self.dissipation, units),),
            )
        )


REFERENCES = ("paper", "converged")


def simulate(system: System, initial: np.ndarray, reference: str = "paper") -> Trajectories:
    """Reference trajectories from initial states (trajectory, variable), in float64 on the CPU.

    `paper` is the paper's integrator at its own step, implicit midpoint; `converged` is RK4 with
    eight steps per record, whose error is below 1e-9 of the state.
    """
    if reference not in REFERENCES:
        raise ValueError(f"there is no reference {reference!r}; choose from {REFERENCES}.")
    with jax.enable_x64(True), jax.default_device(jax.local_devices(backend="cpu")[0]):
        field = system.exact()
        step, substeps = (implicit_midpoint, 1) if reference == "paper" else (rk4, 8)
        steps = jnp.full((system.records - 1) * substeps, system.dt / substeps)

        @jax.jit
        def run(initial):
            states = jax.vmap(lambda x: rollout(step, field.velocity, x, steps))(initial)
            states = states[:, ::substeps]
            return states, jax.vmap(jax.vmap(field.velocity))(states)

        states, derivatives = (np.asarray(a) for a in run(jnp.asarray(initial, jnp.float64)))
    return Trajectories(system.times, states, derivatives, system.names)
