"""Viscoplastic bar: an elastic bar that yields by Perzyna's law and heats up, pulled at one end.

State `(u, p, eps_vp, theta)`: displacement and momentum at nodes, viscoplastic strain and
temperature in cells. With the strain `eps = du/dx` and the stress `sigma = C (eps - eps_vp)`, the
densities are

    e  = c theta + C (eps - eps_vp)^2 / 2   (and p^2 / 2 rho),
    s  = c log(theta),
    xi = theta / (2 eta) <|eps_vp* + theta* sigma / c| - sigma_y / theta>^2,   <a> = max(a, 0).

The left end is held. The right end moves by a smooth ramp to a target strain, then stays.
"""

import jax
import jax.numpy as jnp
import numpy as np

from ..generic import Bar
from ..integrate import Drive, audited_rollout
from ._system import SUBSTEPS, System, paper_figures

DENSITY, MODULUS, VISCOSITY, YIELD, HEAT = 7800.0, 210e9, 8e9, 250e6, 1000.0
LENGTH, CELLS, TEMPERATURE = 0.2, 29, 298.0
RAMP, END = 1.6e-4, 2.0e-4
DT = 0.5 * (LENGTH / CELLS) / (MODULUS / DENSITY) ** 0.5  # half the elastic wave's limit
RECORDS = int(END / DT) + 1


def energy(local):
    """Thermal and elastic energy of a cell."""
    strain, viscoplastic, theta = local
    return HEAT * theta + MODULUS / 2 * (strain - viscoplastic) ** 2


def entropy(inner):
    """Entropy of a cell."""
    return HEAT * jnp.log(inner[1])


def dissipation(local, y):
    """Perzyna's law: nothing below the yield stress, quadratic in the excess above."""
    strain, viscoplastic, theta = local
    stress = MODULUS * (strain - viscoplastic)
    excess = jnp.abs(y[0] + y[1] * stress / HEAT) - YIELD / theta
    return theta / (2 * VISCOSITY) * jnp.maximum(excess, 0) ** 2


def ramp(target, times):
    """Displacement of the moving end, its rate and its second rate, at all times."""
    s = jnp.minimum(times / RAMP, 1)
    reach = target * LENGTH
    moving = times < RAMP
    return (
        reach * (3 * s**2 - 2 * s**3),
        reach * jnp.where(moving, 6 * s * (1 - s) / RAMP, 0),
        reach * jnp.where(moving, 6 * (1 - 2 * s) / RAMP**2, 0),
    )


def ends(target, times):
    """Values and rates of the prescribed entries `u[0], u[-1], p[0], p[-1]` (time, 4)."""
    u, rate, second = ramp(target, times)
    still = jnp.zeros_like(u)
    values = jnp.stack([still, u, still, DENSITY * rate], -1)
    rates = jnp.stack([still, rate, still, DENSITY * second], -1)
    return values, rates


def _domain():
    return Bar.of(CELLS, LENGTH, DENSITY)


def _at_rest():
    cell = jnp.ones(CELLS)
    return jnp.concatenate([jnp.zeros(2 * (CELLS + 1)), 0 * cell, TEMPERATURE * cell])


def _integrate(system: System, targets, reference):
    """States and derivatives (trajectory, time, entry) of loads, given as target strains."""
    field, where = system.exact(), jnp.array(_domain().prescribed)
    times = jnp.asarray(system.times)

    @jax.jit
    def run(target):
        states = (_verlet if reference == "paper" else _converged)(field, target, times)
        values, rates = ends(target, times)
        derivatives = jax.vmap(field.velocity)(states)
        return states.at[:, where].set(values), derivatives.at[:, where].set(rates)

    return jax.lax.map(run, jnp.asarray(targets[:, 0]), batch_size=16)


def _converged(field, target, times):
    fine = jnp.linspace(times[0], times[-1], (times.size - 1) * SUBSTEPS + 1)
    steps = jnp.diff(fine)
    values, rates = ends(target, fine)
    # The exact rates halfway, where they are known: the ramp has a kink that records do not show.
    drive = Drive(values, rates, ends(target, fine[:-1] + steps / 2)[1])
    states, _ = audited_rollout(field, _at_rest(), steps, drive)
    return states[::SUBSTEPS]


def _verlet(field, target, times):
    """Velocity Verlet for the nodes, forward Euler for the cells."""
    values, _ = ends(target, times)
    nodes, where = CELLS + 1, jnp.array(_domain().prescribed)

    def advance(x, inputs):
        dt, imposed = inputs
        rates = field.velocity(x)
        p = x[nodes : 2 * nodes] + dt / 2 * rates[nodes : 2 * nodes]
        u = x[:nodes] + dt * p / DENSITY
        cells = x[2 * nodes :] + dt * rates[2 * nodes :]
        new = jnp.concatenate([u, p, cells]).at[where].set(imposed)
        kick = dt / 2 * field.velocity(new)[nodes : 2 * nodes]
        new = new.at[nodes : 2 * nodes].add(kick).at[where].set(imposed)
        return new, new

    start = _at_rest()
    _, states = jax.lax.scan(advance, start, (jnp.diff(times), values[1:]))
    return jnp.concatenate([start[None], states])


def _draw(rng: np.random.Generator, n: int) -> np.ndarray:
    """Evenly spaced target strains, in random order."""
    return rng.permutation(np.linspace(0.01, 0.02, n))[:, None]


def _draw_outside(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(0.022, 0.026, (n, 1))


NAMES = ("u", "p", "eps_vp", "theta")


VISCOPLASTIC = System(
    name="viscoplastic",
    title="Viscoplastic bar",
    names=NAMES,
    labels=(
        "displacement u (m)",
        "momentum p (kg/m²s)",
        "viscoplastic strain",
        "temperature θ (K)",
    ),
    energy=energy,
    entropy=entropy,
    poisson=None,
    dissipation=dissipation,
    draw=_draw,
    draw_outside=_draw_outside,
    dt=DT,
    records=RECORDS,
    split=(70, 50, 30),
    time_label="time t (s)",
    domain=_domain,
    integrate=_integrate,
    paper=paper_figures(
        NAMES,
        {
            "deep-ensemble": (7.5e4, 1.0e5, 1.1e-6, 9.0e2, 7.5e-9, 1.9e-2),
            "mc-dropout": (2.3e3, 3.0e5, 3.3e-6, 2.4e3, 1.2e-7, 3.6e-1),
            "spenn-half-normal": (1.0e3, 6.6e4, 7.4e-7, 5.7e2, 3.8e-8, 7.1e-2),
            "spenn-uniform": (1.0e3, 4.8e4, 4.8e-7, 3.9e2, 8.5e-8, 2.2e-1),
            "spenn-exponential": (1.0e3, 4.8e4, 2.4e-7, 3.8e2, 3.8e-8, 1.1e-1),
        },
    ),
)
