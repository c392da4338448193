"""The law audit of a model: both laws at many random pairs of a state and an index.

It is done in double precision, where a broken law is told from rounding at once, and on the values
of the energy too, not on its slope alone: a slope that is not that of the energy would pass.
"""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .generic import AbstractMethod

ROUNDING = 1e-9
"""Rates of a law beyond this share of the slope times the velocity are a violation."""
CHUNK = 10_000
WIDE = 2.0
"""Random states spread so many times as far as the data do."""
STEP = 1e-4


@dataclass(frozen=True)
class LawCheck:
    """What the audit found. Rates are shares of the norms of slope and velocity."""

    pairs: int
    energy_rate: float
    """Largest `|DE . dx/dt|`."""
    energy_change: float
    """Largest change of the energy itself along the velocity, by central differences."""
    entropy_rate: float
    """Smallest `DS . dx/dt`."""
    violations: int

    @property
    def sentence(self) -> str:
        """The audit in words."""
        verdict = f"{self.violations} violations" if self.violations else "no violation"
        return (
            f"Both laws at {self.pairs:,} random pairs of a state and an index: {verdict}. Largest "
            f"energy rate {self.energy_rate:.1e} (by values {self.energy_change:.1e}), smallest "
            f"entropy rate {self.entropy_rate:.1e}, as shares of slope times velocity."
        )


def check_laws(
    method: AbstractMethod,
    states: Float[np.ndarray, "n d"] | int,
    pairs: int,
    seed: int = 0,
    report: Callable[[int], None] = lambda pairs: None,
) -> LawCheck:
    """Audit a method at scaled `states`, taken in turn, or at random ones of so many entries."""
    if pairs < 1:
        raise ValueError(f"the number of pairs must be at least 1; it is {pairs}.")
    size = min(CHUNK // method.domain.cells + 1, pairs)
    found = []
    with jax.enable_x64(True):
        method = in_double(method)
        for number in range(-(-pairs // size)):
            key = jax.random.fold_in(jax.random.key(seed), number)
            found.append(np.asarray(_chunk(method, _states(states, size, number, key), key)))
            report(min(size, pairs - number * size))
    energy, change, entropy = np.concatenate(found, 1)[:, :pairs]
    # What is not a number obeys no law.
    kept = (energy <= ROUNDING) & (change <= STEP**1.5) & (entropy >= -ROUNDING)
    return LawCheck(
        pairs, float(energy.max()), float(change.max()), float(entropy.min()), int((~kept).sum())
    )


def in_double(tree):
    """The same weights in double precision, where that is enabled."""
    return jax.tree.map(
        lambda leaf: jnp.asarray(leaf, jnp.float64) if eqx.is_inexact_array(leaf) else leaf, tree
    )


def _states(states, size, number, key):
    if isinstance(states, int):
        return WIDE * jax.random.normal(jax.random.fold_in(key, 1), (size, states))
    return jnp.asarray(np.take(states, np.arange(size) + number * size, 0, mode="wrap"))


@eqx.filter_jit
def _chunk(method, states, key):
    indices = method.draw(len(states), key=key)
    return jax.vmap(lambda x, z: _rates(method.realise(z), x), out_axes=1)(states, indices)


def _rates(field, x):
    """Rate of the energy by slope and by values, and of the entropy, as shares of their factors."""
    rates = field.rates(x)
    entropy_slope = jax.grad(field.entropy)(x)
    speed = _norm(rates.velocity)
    direction = rates.velocity / jnp.where(speed > 0, speed, 1)
    ahead, behind = (field.energy(x + h * direction) for h in (STEP, -STEP))
    energy, entropy = _norm(rates.energy_slope), _norm(entropy_slope)
    return jnp.stack(
        [
            jnp.abs(rates.energy_rate) / _positive(energy * speed),
            jnp.abs(ahead - behind) / _positive(2 * STEP * energy),
            jnp.sum(rates.entropy_rates) / _positive(entropy * speed),
        ]
    )


def _norm(vector):
    return jnp.sqrt(jnp.sum(vector**2))


def _positive(scale):
    return jnp.where(scale > 0, scale, 1)
