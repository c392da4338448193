"""Orders of the integrators, measured: on the exact physics of every system, and on trained models.

    python benchmarks/order.py [oscillator=runs/demo/model.spenn ...]

From one state over 64 records, in steps of one, a half and a quarter of a record, in float64. The
error is that of the last state in scaled coordinates, against RK4 in steps of a sixteenth. The bar
is also pulled so little that it does not yield: its law has a kink where it does. Points also start
later: at first the motor has hardly any of its third species, and the entropy's slope is steep.
"""

import sys
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import spenn
from integrators import thinned
from spenn.data import Trajectories
from spenn.forecast import driving
from spenn.generic import Generic
from spenn.integrate import RK4, Collocation, audited_rollout, integrator
from spenn.laws import in_double
from spenn.physics import Physics
from spenn.systems import SYSTEMS, System, simulate

FINEST, RECORDS = 16, 64
STEPS = np.array([16, 8, 4])
ELASTIC = 0.0008  # a target strain below that of yield
LATER = 20  # records
CHOSEN = {
    "rk4": RK4,
    "midpoint": integrator("midpoint"),
    "discrete gradient, 1 stage": Collocation(1),
    "discrete-gradient": integrator("discrete-gradient"),
}


def main() -> None:
    """Print one line of a table for every system and model."""
    jax.config.update("jax_enable_x64", True)
    models = dict(word.split("=", 1) for word in sys.argv[1:])
    print("| system | " + " | ".join(CHOSEN) + " |\n|" + "---|" * (len(CHOSEN) + 1), flush=True)
    for name, system in SYSTEMS.items():
        cases = system.draw(np.random.default_rng(1), 20)
        line(f"{name}, exact", exact(system, cases), data_of(system, cases[:1]))
        if system.domain().prescribed:
            gentle = np.full((1, 1), ELASTIC)
            line(f"{name}, exact, elastic", exact(system, cases), data_of(system, gentle))
        else:
            later = simulate(system, cases[:1], "converged").states[:, LATER]
            what = f"{name}, exact, from record {LATER}"
            line(what, exact(system, cases), data_of(system, later))
        if name in models:
            line(f"{name}, learned", learned(models[name]), data_of(system, cases[:1]))


def data_of(system: System, cases: np.ndarray) -> Trajectories:
    """Trajectories with many records per record."""
    dense = replace(system, dt=system.dt / FINEST, records=RECORDS * FINEST + 1)
    return simulate(dense, cases, "converged")


def exact(system: System, cases: np.ndarray):
    """The exact physics in the scaled coordinates of some data."""
    data, domain = simulate(system, cases), system.domain()
    known = Physics(
        system.energy, system.entropy, system.poisson, system.dissipation, (), domain=domain
    )
    coordinates = domain.coordinates(*data.records())
    size = data.states.shape[-1]
    return Generic(known.blocks(coordinates, size, 1, 1, key=jax.random.key(0))), coordinates


def learned(path: str):
    """One realisation of a model."""
    model = spenn.load(path)
    method, coordinates = in_double((model.method, model.coordinates))
    return method.realise(method.draw(1, key=jax.random.key(0))[0]), coordinates


def line(what: str, field, data: Trajectories) -> None:
    """Orders, and the errors in the longest steps."""
    finest = end(field, data, 1, RK4)
    cells = []
    for chosen in CHOSEN.values():
        errors = [np.max(np.abs(end(field, data, n, chosen) - finest)) for n in STEPS]
        order = np.polyfit(np.log(STEPS), np.log(errors), 1)[0]
        cells.append(f"{order:.2f} ({errors[0]:.1e})")
    print(f"| {what} | " + " | ".join(cells) + " |", flush=True)


def end(field, data: Trajectories, every: int, chosen) -> np.ndarray:
    """The last state, in steps of so many of the dense records."""
    generic, coordinates = field
    coarse = thinned(data, every)
    exact = coordinates.on_host()
    drive = driving(generic.blocks.domain, coordinates, coarse)
    drive = None if drive is None else jax.tree.map(lambda a: jnp.asarray(a[0]), drive)
    steps = jnp.asarray(np.diff(coarse.times) / exact.time_unit)
    start = jnp.asarray(exact.scaled(coarse.states[0, 0]))
    states, _ = eqx.filter_jit(audited_rollout)(generic, start, steps, drive, chosen)
    return np.asarray(states[-1])


if __name__ == "__main__":
    main()
