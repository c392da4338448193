"""Idealized chemical motor: a piston on a spring, driven by a reacting van der Waals mixture.

State `(q, p, eps, n1, n2, n3)`: piston position and momentum, internal energy of the mixture, moles
of the species of `X1 + X2 <-> X3`. With the volume `V = A q`, moles `n = sum n_i`, and `R = h = N_A
= 1`,

    E  = p^2 / 2m + k (q - q0)^2 / 2 + eps,
    S  = sum_i n_i (5/2 + log((V - n.b) / n_i (4 pi m_i / 3n (eps + n.a.n / V))^(3/2))),
    L  = canonical in (q, p), and the force F = (dS/dq) / (dS/d eps) between p and eps,
    Xi = alpha sqrt(n1 n2 n3) (cosh((n1* + n2* - n3*) / 2) - 1),

so that the piston exchanges work with the mixture and the reaction obeys mass action.
"""

import jax
import jax.numpy as jnp
import numpy as np

from ._system import System, paper_figures

MASS, AREA, REST, STIFFNESS, RATE = 0.8, 1.0, 2.0, 31.6, 2.0
ATTRACTION = np.array([[0.1, 0.1, 0.1], [0.1, 0.1, 0.1], [0.1, 0.1, 20.0]])
EXCLUDED = np.array([0.05, 0.05, 0.05])
MOLECULAR_MASS = np.array([1.0, 1.2, 2.2])


def energy(x):
    """Kinetic and elastic energy of the piston, internal energy of the mixture."""
    q, p, eps = x[:3]
    return p**2 / (2 * MASS) + STIFFNESS * (q - REST) ** 2 / 2 + eps


def entropy(x):
    """Van der Waals entropy of the mixture."""
    eps, moles = x[2], x[3:]
    volume = AREA * x[0]
    free = volume - moles @ EXCLUDED.astype(x.dtype)
    thermal = eps + moles @ ATTRACTION.astype(x.dtype) @ moles / volume
    heat = 4 * jnp.pi * MOLECULAR_MASS.astype(x.dtype) / (3 * jnp.sum(moles)) * thermal
    return jnp.sum(moles * (2.5 + jnp.log(free / moles) + 1.5 * jnp.log(heat)))


def poisson(x):
    """Canonical in position and momentum; the gas pushes the piston and cools by the work."""
    slope = jax.grad(entropy)(x)
    force = slope[0] / slope[2]
    upper = jnp.zeros((6, 6), x.dtype).at[0, 1].set(1).at[1, 2].set(force)
    return upper - upper.T


def dissipation(x, y):
    """Mass action: a potential that is not quadratic."""
    affinity = (y[3] + y[4] - y[5]) / 2
    return RATE * jnp.sqrt(jnp.prod(x[3:])) * (jnp.cosh(affinity) - 1)


def _states(rng: np.random.Generator, position: np.ndarray, low: float, high: float) -> np.ndarray:
    """Pistons at rest, at given positions, with temperatures in a range."""
    count = len(position)
    temperature = rng.uniform(low, high, count)
    moles = rng.uniform([0.8, 1.2, 0.002], [1.3, 2.4, 0.003], (count, 3))
    internal = 1.5 * moles.sum(1) * temperature
    return np.column_stack([position, np.zeros(count), internal, moles])


def _draw(rng: np.random.Generator, n: int) -> np.ndarray:
    return _states(rng, rng.uniform(1.2, 2.8, n), 0.8, 1.2)


def _draw_outside(rng: np.random.Generator, n: int) -> np.ndarray:
    side = rng.choice([-1, 1], n)
    return _states(rng, REST + side * rng.uniform(0.9, 1.1, n), 1.3, 1.5)


NAMES = ("q", "p", "eps", "n1", "n2", "n3")
CHEMICAL_MOTOR = System(
    name="chemical-motor",
    title="Idealized chemical motor",
    names=NAMES,
    labels=(
        "position q",
        "momentum p",
        "internal energy ε",
        "moles n₁",
        "moles n₂",
        "moles n₃",
    ),
    energy=energy,
    entropy=entropy,
    poisson=poisson,
    dissipation=dissipation,
    draw=_draw,
    draw_outside=_draw_outside,
    dt=0.01,
    records=1000,
    split=(140, 50, 30),
    paper=paper_figures(
        NAMES,
        {
            "deep-ensemble": (1.5e4, 8.2e-1, 3.5e-3, 1.8e-2, 8.1e-3, 6.0e-4, 6.3e-4, 6.8e-4),
            "mc-dropout": (4.4e2, 1.6e1, 7.4e-2, 3.7e-1, 8.7e-2, 6.4e-3, 4.7e-3, 1.3e-2),
            "spenn-half-normal": (3.2e2, 2.0, 7.5e-3, 3.8e-2, 2.5e-2, 2.0e-3, 1.6e-3, 1.8e-3),
            "spenn-uniform": (2.7e2, 6.0, 2.1e-2, 1.0e-1, 8.6e-2, 5.7e-3, 5.6e-3, 7.1e-3),
            "spenn-exponential": (3.1e2, 2.7, 1.1e-2, 5.4e-2, 3.1e-2, 2.3e-3, 2.0e-3, 2.2e-3),
        },
    ),
)
