"""The training loop: many compiled steps per call, nothing in Python per step."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from ..devices import collect, over_devices, share_out
from ._checkpoint import NOTHING, Checkpoint
from ._soap import SoapState, scale_by_soap

CHUNK = 100
WARM_UP = 100


class Samples(NamedTuple):
    """Records, in scaled coordinates: states, velocities, loss weights, and whose they are."""

    states: Float[Array, "n d"]
    velocities: Float[Array, "n d"]
    weights: Float[Array, "n d"]
    trajectories: Int[Array, " n"]


class Progress(NamedTuple):
    """Where a run of the optimiser stands: all that is needed to go on.

    Every array of `trainable` has a leading axis of *members*: models of one shape, trained side by
    side on the same batches. One model is one member.
    """

    trainable: PyTree
    optimiser: SoapState
    step: Int[Array, ""]


Loss = Callable[[PyTree, Any, PRNGKeyArray], Float[Array, ""]]
Report = Callable[[int, float], None]


@eqx.filter_jit  # one program instead of one per shape
def begin(members: PyTree) -> Progress:
    """State of the optimiser before the first step, for weights with a leading axis of members."""
    state: SoapState = jax.vmap(scale_by_soap().init)(members)  # pyright: ignore
    start = jnp.zeros((), jnp.int32)
    return Progress(members, state._replace(step=start), start)


def stack(members: Sequence[PyTree]) -> PyTree:
    """Trees of one structure as one tree, their arrays along a new leading axis."""
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *members)


def member(members: PyTree, which: int) -> PyTree:
    """One of several members."""
    return jax.tree.map(lambda a: a[which], members)


def keep(progress: Progress, which: Int[np.ndarray, " chosen"]) -> Progress:
    """The progress of some members, to go on with alone."""
    return over_members(lambda a: a[which], progress)


def join(heats: Sequence[Progress]) -> Progress:
    """All members of several runs that stand at the same step."""
    return over_members(lambda *arrays: jnp.concatenate(arrays), *heats)


def over_members(function: Callable[..., Array], *runs: Progress) -> Progress:
    """A function of every array that has an axis of members, in one run or in several alike."""
    members = [(run.trainable, run.optimiser._replace(step=None)) for run in runs]
    trainable, optimiser = jax.tree.map(function, *members)
    first = runs[0]
    return Progress(trainable, optimiser._replace(step=first.optimiser.step), first.step)


def advance(
    loss: Loss,
    progress: Progress,
    fixed: PyTree,
    samples: PyTree[Array] | None,
    *,
    until: int,
    total: int,
    batch: int = 0,
    learning_rate: float,
    key: PRNGKeyArray,
    report: Report,
    masks: PyTree | None = None,
    checkpoint: Checkpoint = NOTHING,
    name: str = "progress",
) -> tuple[Progress, Float[np.ndarray, " member"]]:
    """Run the optimiser up to step `until` of `total`; returns its state and recent mean losses.

    The rate rises over the first steps and falls to zero as a cosine at step `total`. Batches and
    indices are a function of the key and the step alone, so a run can be cut anywhere. Without
    samples the loss is given none. Weights where `masks`, a tree like the members', is zero stay as
    they are. What the checkpoint has under its `name` is not done again. Members are shared out
    over all processes and devices.
    """
    number, members = jnp.result_type(float), _count(progress)
    progress, masks = over_members(_own, progress), jax.tree.map(_own, masks)
    last = np.full(_count(progress), np.nan, number)
    if (found := checkpoint.get(name, (progress, last))) is not None:
        before = int(progress.step)
        progress, last = found
        report(int(progress.step) - before, float(np.min(last)))
    reached, kept = (progress, last), int(progress.step)
    # As arrays, so that another length or rate is not another compilation.
    schedule = (jnp.asarray(total, float), jnp.asarray(learning_rate, float))
    try:
        while (step := int(reached[0].step)) < until:
            steps = min(CHUNK, until - step)
            ahead, losses = _chunk(
                loss, reached[0], fixed, samples, steps, batch, *schedule, key, masks
            )
            # At once: whatever interrupts must not part weights from their losses.
            reached = (ahead, np.asarray(np.mean(losses, 0), number))
            if checkpoint.due:
                checkpoint.put(name, reached)
                kept = int(ahead.step)
            report(steps, float(np.min(reached[1])))
    finally:
        if int(reached[0].step) > kept:
            checkpoint.put(name, reached)
    return _collected(*reached, members)


def _own(array: Array) -> Array:
    return over_devices(share_out(array))


def _collected(progress, losses, members):
    """Progress and losses of all members, off the devices that they were shared out over."""
    here = jax.tree.map(np.asarray, progress)
    shares = (here.trainable, here.optimiser._replace(step=None), losses)
    trainable, optimiser, losses = collect(shares, members)
    optimiser = optimiser._replace(step=here.optimiser.step)
    return jax.tree.map(jnp.asarray, Progress(trainable, optimiser, here.step)), losses


def _count(progress: Progress) -> int:
    return len(jax.tree.leaves(progress.trainable)[0])


@eqx.filter_jit
def _chunk(loss, progress, fixed, samples, steps, batch, total, learning_rate, key, masks):
    optimiser = scale_by_soap()
    rate = _cosine(learning_rate, total)
    # On a CPU products of small matrices run at less than half the speed in a batch, also in one of
    # one member. Members on several devices are batched: they could not be taken in turn.
    one_cpu = jax.default_backend() == "cpu" and jax.local_device_count() == 1
    every = _one_by_one if one_cpu or _count(progress) == 1 else jax.vmap

    def step(progress, _):
        members, state, count = progress
        batch_key, loss_key = jax.random.split(jax.random.fold_in(key, count))
        chosen = None if samples is None else _batch(samples, batch, batch_key)
        size = rate(count)

        # Members share the count of steps: a refresh of the bases stays one branch for all.
        def advanced(member, matrices, vectors, mask):
            value, gradient = jax.value_and_grad(
                lambda t: loss(eqx.combine(t, fixed), chosen, loss_key)
            )(member)
            own = SoapState(state.step, matrices, vectors)
            direction, own = optimiser.update(_masked(gradient, mask), own)
            direction = _masked(direction, mask)
            moved = jax.tree.map(lambda p, d: p - size * d, member, direction)
            return moved, own.matrices, own.vectors, value  # pyright: ignore

        members, *own, values = every(advanced)(members, state.matrices, state.vectors, masks)
        return Progress(members, SoapState(state.step + 1, *own), count + 1), values

    return lax.scan(step, progress, None, length=steps)


def _one_by_one(function: Callable) -> Callable:
    """As `jax.vmap` of a function, but without batches."""
    return lambda *rows: lax.map(lambda row: function(*row), rows)


def _batch(samples, size, key):
    rows = jax.random.randint(key, (size,), 0, len(jax.tree.leaves(samples)[0]))
    return jax.tree.map(lambda a: a[rows], samples)


def _masked(tree, masks):
    return tree if masks is None else jax.tree.map(jnp.multiply, tree, masks)


def _cosine(peak, total):
    def rate(count):
        rise = jnp.minimum(1.0, (count + 1) / WARM_UP)
        return peak * rise * (1 + jnp.cos(jnp.pi * count / total)) / 2

    return rate
