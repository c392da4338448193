"""What is kept of an ensemble: statistics, scores and the law audit of each trajectory."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..calibrate import crps, energy_score, rank_histogram, raw_coverage
from ..data import Trajectories
from ..generic import AbstractMethod, Coordinates
from ..integrate import Laws
from ._ensemble import ensemble

LEVELS = tuple(round(0.05 * i, 2) for i in range(1, 20)) + (0.99,)
RANK_BINS = 20


class Audit(NamedTuple):
    """Extremes over all samples of one trajectory; rates by time, the rest over the rollout."""

    energy_rate: Float[Array, " time"]
    entropy_rate: Float[Array, " time"]
    energy_drift: Float[Array, ""]
    entropy_step: Float[Array, ""]
    energy_low: Float[Array, ""]
    energy_high: Float[Array, ""]


class Summary(NamedTuple):
    """One trajectory, or many along a leading axis. The prescribed first record is left out."""

    mean: Float[Array, "time variable"]
    std: Float[Array, "time variable"]
    crps: Float[Array, " variable"]
    crps_fair: Float[Array, " variable"]
    energy_score: Float[Array, ""]
    energy_score_fair: Float[Array, ""]
    inside: Float[Array, "level variable"]
    width: Float[Array, "level variable"]
    ranks: Float[Array, "variable bin"]
    audit: Audit


class Diverged(NamedTuple):
    """A sample that left the finite numbers, and the first record where it had."""

    trajectory: int
    sample: int
    step: int


class Evaluation(NamedTuple):
    """Summaries of all trajectories, diverged samples, and one ensemble kept whole."""

    summary: Summary
    diverged: tuple[Diverged, ...]
    states: Float[np.ndarray, "sample time variable"]
    laws: Laws


def evaluate(
    method: AbstractMethod,
    coordinates: Coordinates,
    data: Trajectories,
    indices: Float[Array, "sample k"],
    *,
    keep: int = 0,
    report: Callable[[int], None] = lambda trajectories: None,
) -> Evaluation:
    """Forecast every trajectory of the data from its first state and score it.

    Only summaries are kept, and the samples of the one trajectory numbered `keep`. Samples that
    diverge are left out of the summaries and listed.
    """
    summaries, diverged, kept = [], [], None
    levels = jnp.asarray(LEVELS)
    for chosen, states, laws in ensemble(
        method, coordinates, data.states[:, 0], data.times, indices
    ):
        truth = jnp.asarray(data.states[chosen.start : chosen.stop], float)
        bad = find_diverged(states, chosen)
        if bad:
            diverged += bad
            summaries += [
                summarise(*_without(states[i], laws, i, bad, trajectory), truth[i], levels)
                for i, trajectory in enumerate(chosen)
            ]
        else:
            summaries.append(summarise_many(states, laws, truth, levels))
        if keep in chosen:
            one = jax.tree.map(lambda a: np.asarray(a[keep - chosen.start]), (states, laws))
            kept = one
        report(len(chosen))
    return Evaluation(_concatenate(summaries), tuple(diverged), *kept)


def find_diverged(states: Float[Array, "trajectory sample time d"], chosen: range):
    """Samples with a value that is not finite."""
    finite = np.asarray(jnp.all(jnp.isfinite(states), -1))
    return [
        Diverged(chosen[i], int(j), int(np.argmin(finite[i, j])))
        for i, j in np.argwhere(~finite.all(-1))
    ]


def _without(states, laws, i, bad, trajectory):
    lost = [d.sample for d in bad if d.trajectory == trajectory]
    keep = np.setdiff1d(np.arange(len(states)), lost)
    if keep.size == 0:
        raise ValueError(
            f"every sample of trajectory {trajectory} diverged, the first at record "
            f"{min(d.step for d in bad if d.trajectory == trajectory)}: there is no forecast."
        )
    return states[keep], jax.tree.map(lambda a: a[i][keep], laws)


@jax.jit
def summarise(states, laws: Laws, truth, levels) -> Summary:
    """Summary of one trajectory from its samples (sample, time, variable)."""
    samples, truth = states[:, 1:], truth[1:]
    score, vector_score = crps(samples, truth), energy_score(samples, truth)
    covered = raw_coverage(samples, truth, levels)
    return Summary(
        mean=jnp.mean(samples, 0),
        std=_deviation(samples),
        crps=jnp.mean(score.plain, 0),
        crps_fair=jnp.mean(score.fair, 0),
        energy_score=vector_score.plain,
        energy_score_fair=vector_score.fair,
        inside=covered.inside,
        width=covered.width,
        ranks=rank_histogram(samples, truth, RANK_BINS),
        audit=_audit(laws),
    )


@jax.jit
def summarise_many(states, laws, truth, levels) -> Summary:
    """Summaries of several trajectories, one after another to bound memory."""
    return jax.lax.map(lambda a: summarise(*a, levels), (states, laws, truth))


def _deviation(samples):
    # Centred on one sample first: the spread may be 1e-4 of the value.
    return jnp.std(samples - samples[:1], 0)


def _audit(laws: Laws) -> Audit:
    return Audit(
        energy_rate=jnp.max(jnp.abs(laws.energy_rate), 0),
        entropy_rate=jnp.min(laws.entropy_rate, 0),
        energy_drift=jnp.max(jnp.abs(laws.energy - laws.energy[:, :1])),
        entropy_step=jnp.min(jnp.diff(laws.entropy, axis=1)),
        energy_low=jnp.min(laws.energy),
        energy_high=jnp.max(laws.energy),
    )


def _concatenate(summaries: list[Summary]) -> Summary:
    """NumPy arrays with one leading trajectory axis, from a mix of single and many."""
    many = [jax.tree.map(lambda a: a[None], s) if s.mean.ndim == 2 else s for s in summaries]
    return jax.tree.map(lambda *parts: np.concatenate([np.asarray(p) for p in parts]), *many)
