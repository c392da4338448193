"""Harmonic oscillator in a heat bath: a mass on a spring, damped into a bath of fixed temperature.

State `(q, p, eps)`: position, momentum, internal energy of the bath.

    E = p^2 / 2m + k q^2 / 2 + eps,   S = eps / T,   L = canonical in (q, p),
    Xi = (gamma T / 2) (p* - (p / m) eps*)^2

and so  dq/dt = p/m,  dp/dt = -k q - gamma p/m,  d(eps)/dt = gamma (p/m)^2.
"""

import jax.numpy as jnp
import numpy as np

from ._system import System, paper_figures

MASS, STIFFNESS, DAMPING, TEMPERATURE = 1.0, 1.2, 0.4, 1.0


def energy(x):
    """Kinetic, elastic and internal energy."""
    q, p, eps = x
    return p**2 / (2 * MASS) + STIFFNESS * q**2 / 2 + eps


def entropy(x):
    """Entropy of the bath."""
    return x[2] / TEMPERATURE


def poisson(x):
    """Canonical in position and momentum; the bath takes no part."""
    return jnp.array([[0, 1, 0], [-1, 0, 0], [0, 0, 0]], x.dtype)


def dissipation(x, y):
    """Friction: quadratic in the force that does not exchange energy with the whole."""
    return DAMPING * TEMPERATURE / 2 * (y[1] - x[1] / MASS * y[2]) ** 2


def _draw(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.concatenate([rng.uniform(-1, 1, (n, 2)), np.zeros((n, 1))], 1)


def _draw_outside(rng: np.random.Generator, n: int) -> np.ndarray:
    size = rng.uniform(1.5, 2, (n, 2)) * rng.choice([-1, 1], (n, 2))
    return np.concatenate([size, np.zeros((n, 1))], 1)


NAMES = ("q", "p", "eps")
OSCILLATOR = System(
    name="oscillator",
    title="Harmonic oscillator in a heat bath",
    names=NAMES,
    labels=("position q", "momentum p", "bath energy ε"),
    energy=energy,
    entropy=entropy,
    poisson=poisson,
    dissipation=dissipation,
    draw=_draw,
    draw_outside=_draw_outside,
    dt=0.015,
    records=1000,
    split=(60, 50, 40),
    paper=paper_figures(
        NAMES,
        {
            "deep-ensemble": (9.1e3, 6.8e-2, 1.1e-3, 9.3e-4, 5.1e-4),
            "mc-dropout": (2.3e2, 7.0e-1, 1.2e-2, 1.3e-2, 4.5e-3),
            "spenn-half-normal": (1.2e2, 2.4e-1, 4.1e-3, 3.8e-3, 3.0e-3),
            "spenn-uniform": (1.3e2, 4.9e-1, 7.4e-3, 7.4e-3, 7.8e-3),
            "spenn-exponential": (1.3e2, 3.2e-1, 4.2e-3, 4.3e-3, 5.9e-3),
        },
    ),
)
