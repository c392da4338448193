"""The training loop: many compiled steps per call, nothing in Python per step."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from ._soap import scale_by_soap

CHUNK = 100
WARM_UP = 100


class Samples(NamedTuple):
    """States, velocities and loss weights (sample, variable), in scaled coordinates."""

    states: Float[Array, "n d"]
    velocities: Float[Array, "n d"]
    weights: Float[Array, "n d"]


class Progress(NamedTuple):
    """Where a run of the optimiser stands: all that is needed to go on."""

    trainable: PyTree
    optimiser: optax.OptState
    step: Int[Array, ""]


Loss = Callable[[PyTree, Samples, PRNGKeyArray], Float[Array, ""]]
Report = Callable[[int, float], None]


@eqx.filter_jit  # one program instead of one per shape
def begin(trainable: PyTree) -> Progress:
    """State of the optimiser before the first step."""
    return Progress(trainable, scale_by_soap().init(trainable), jnp.zeros((), jnp.int32))


def advance(
    loss: Loss,
    progress: Progress,
    fixed: PyTree,
    samples: Samples,
    *,
    until: int,
    total: int,
    batch: int,
    learning_rate: float,
    key: PRNGKeyArray,
    report: Report,
) -> tuple[Progress, float]:
    """Run the optimiser up to step `until` of `total`; returns its state and the last losses' mean.

    The rate rises over the first steps and falls to zero as a cosine at step `total`. Batches and
    indices are a function of the key and the step alone, so a run can be cut anywhere.
    """
    last = jnp.nan
    # As arrays, so that another length or rate is not another compilation.
    schedule = (jnp.asarray(total, float), jnp.asarray(learning_rate, float))
    while int(progress.step) < until:
        steps = min(CHUNK, until - int(progress.step))
        progress, losses = _chunk(loss, progress, fixed, samples, steps, batch, *schedule, key)
        last = float(np.mean(losses))
        report(steps, last)
    return progress, last


@eqx.filter_jit
def _chunk(loss, progress, fixed, samples, steps, batch, total, learning_rate, key):
    optimiser = scale_by_soap()
    rate = _cosine(learning_rate, total)

    def step(progress, _):
        trainable, state, count = progress
        batch_key, loss_key = jax.random.split(jax.random.fold_in(key, count))
        rows = jax.random.randint(batch_key, (batch,), 0, len(samples.states))
        chosen = Samples(*(a[rows] for a in samples))
        value, gradient = jax.value_and_grad(
            lambda t: loss(eqx.combine(t, fixed), chosen, loss_key)
        )(trainable)
        direction, state = optimiser.update(gradient, state)
        size = rate(count)
        trainable = jax.tree.map(lambda p, d: p - size * d, trainable, direction)
        return Progress(trainable, state, count + 1), value

    return lax.scan(step, progress, None, length=steps)


def _cosine(peak, total):
    def rate(count):
        rise = jnp.minimum(1.0, (count + 1) / WARM_UP)
        return peak * rise * (1 + jnp.cos(jnp.pi * count / total)) / 2

    return rate
