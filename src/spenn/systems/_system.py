"""What a benchmark system states about itself, and the data that follow from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from ..data import Trajectories
from ..generic import (
    AbstractDomain,
    Blocks,
    Coordinates,
    Generic,
    KnownDissipation,
    KnownPoisson,
    KnownPotential,
    Point,
)
from ..integrate import implicit_midpoint, rk4, rollout

REFERENCES = ("paper", "converged")
SUBSTEPS = 8  # of the converged reference, per record


@dataclass(frozen=True)
class System:
    """A system in the user's units: its four GENERIC blocks, its protocol, the paper's figures.

    `names` and `labels` are those of the variables; `draw` and `draw_outside` give cases, which
    `integrate` turns into states and derivatives (trajectory, time, entry).
    """

    name: str
    title: str
    names: tuple[str, ...]
    labels: tuple[str, ...]
    energy: Callable
    entropy: Callable
    poisson: Callable | None
    dissipation: Callable
    draw: Callable[[np.random.Generator, int], np.ndarray]
    draw_outside: Callable[[np.random.Generator, int], np.ndarray]
    dt: float
    records: int
    split: tuple[int, int, int]
    paper: Mapping[str, Mapping]
    time_label: str = "time t"
    domain: Callable[[], AbstractDomain] = Point
    integrate: Callable[["System", np.ndarray, str], tuple] | None = None

    @property
    def times(self) -> np.ndarray:
        """Times of all records."""
        return self.dt * np.arange(self.records)

    def exact(self) -> Generic:
        """The exact physics as a realisation, in the user's units."""
        domain = self.domain()
        sizes = domain.sizes(domain.size(len(self.names)))
        local, inner = (Coordinates.identity(n) for n in (sizes.energy, sizes.entropy))
        poisson = () if self.poisson is None else (KnownPoisson(self.poisson, local),)
        return Generic(
            Blocks(
                (KnownPotential(self.energy, local),),
                (KnownPotential(self.entropy, inner),),
                poisson,
                (KnownDissipation(self.dissipation, local),),
                domain,
            )
        )


def paper_figures(names: tuple[str, ...], rows: Mapping[str, tuple[float, ...]]) -> dict:
    """The paper's table in the layout of our results: method to seconds, energy score, CRPS."""
    return {
        method: {
            "seconds": {"total": seconds},
            "energy_score": energy_score,
            "crps": dict(zip(names, crps, strict=True)),
        }
        for method, (seconds, energy_score, *crps) in rows.items()
    }


def simulate(system: System, cases: np.ndarray, reference: str = "paper") -> Trajectories:
    """Reference trajectories of cases (trajectory, number), in float64 on the CPU.

    A case is an initial state or, for the bar, a load. `paper` is the paper's integrator at its own
    step; `converged` is RK4 with eight steps per record.
    """
    if reference not in REFERENCES:
        raise ValueError(f"there is no reference {reference!r}; choose from {REFERENCES}.")
    with jax.enable_x64(True), jax.default_device(jax.local_devices(backend="cpu")[0]):
        integrate = system.integrate or _from_initial_states
        states, derivatives = integrate(system, np.asarray(cases, np.float64), reference)
    names = entry_names(system.names, system.domain().variables(states.shape[-1]))
    return Trajectories(system.times, np.asarray(states), np.asarray(derivatives), names)


def entry_names(names: tuple[str, ...], variables: np.ndarray) -> tuple[str, ...]:
    """Names of all entries: `q` for a variable with one, `u[0]`, `u[1]`, ... for a field."""
    counts = np.bincount(variables)
    places = (range(count) for count in counts)
    return tuple(
        name if count == 1 else f"{name}[{i}]"
        for name, count, where in zip(names, counts, places, strict=True)
        for i in where
    )


def _from_initial_states(system: System, initial, reference):
    """Implicit midpoint for the paper's reference, else RK4, whose error is below 1e-9."""
    field = system.exact()
    step, substeps = (implicit_midpoint, 1) if reference == "paper" else (rk4, SUBSTEPS)
    steps = jnp.full((system.records - 1) * substeps, system.dt / substeps)

    @jax.jit
    def run(initial):
        states = jax.vmap(lambda x: rollout(step, field.velocity, x, steps))(initial)
        states = states[:, ::substeps]
        return states, jax.vmap(jax.vmap(field.velocity))(states)

    return run(jnp.asarray(initial))
