"""What is kept of an ensemble: statistics, scores and the law audit of each trajectory."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..calibrate import crps, energy_score, rank_histogram, raw_coverage
from ..data import Trajectories
from ..generic import AbstractDomain, AbstractMethod, Coordinates
from ..integrate import Laws
from ._ensemble import Chunk, compile_ensemble, driving, ensemble

LEVELS = (*(round(0.05 * i, 2) for i in range(1, 20)), 0.99)
RANK_BINS = 20
FAR = 10.0
NOBODY = -1


class Audit(NamedTuple):
    """Extremes over all samples of one trajectory; rates by time, the rest over the rollout."""

    energy_rate: Float[Any, " time"]
    entropy_rate: Float[Any, " time"]
    energy_drift: Float[Any, ""]
    entropy_step: Float[Any, ""]
    energy_low: Float[Any, ""]
    energy_high: Float[Any, ""]
    entropy_low: Float[Any, ""]
    entropy_high: Float[Any, ""]


class Summary(NamedTuple):
    """One trajectory, or many along a leading axis.

    What is prescribed is left out: the first record, and the entries that a domain prescribes.
    After the end of a shorter trajectory mean and spread are NaN.
    """

    mean: Float[Any, "time variable"]
    std: Float[Any, "time variable"]
    crps: Float[Any, " variable"]
    crps_fair: Float[Any, " variable"]
    energy_score: Float[Any, ""]
    energy_score_fair: Float[Any, ""]
    inside: Float[Any, "level variable"]
    width: Float[Any, "level variable"]
    ranks: Float[Any, "variable bin"]
    audit: Audit


class Diverged(NamedTuple):
    """A sample that was lost, infinite or far from all data, and the first record where it was."""

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
    indices: Float[Any, "sample k"],
    *,
    keep: int = 0,
    required: int | None = None,
    report: Callable[[int], None] = lambda trajectories: None,
) -> Evaluation:
    """Forecast every trajectory of the data, on one time grid, from its first state and score it.

    Only summaries are kept, and the samples of the one trajectory numbered `keep`. Samples that
    diverge are listed, and in the summaries others of the same trajectory stand in for them; a
    trajectory without any other is an error or, if it is not among the first so many that are
    `required`, has a summary of NaN.
    """
    required = len(data) if required is None else required
    summaries, diverged, kept = [], [], None
    levels, free = jnp.asarray(LEVELS), method.domain.free(data.states.shape[-1])
    drive = driving(method.domain, coordinates, data)
    reach = _reach(method.domain, data.states)
    start, lengths = data.states[:, 0], data.lengths
    for chunk in ensemble(method, coordinates, start, data.times, indices, drive, lengths):
        chosen, states, laws = chunk
        truth = jnp.asarray(data.states[chosen.start : chosen.stop], float)
        bad = find_diverged(chunk, reach)
        diverged += bad
        sound = _replaced(states, laws, _rows(chunk, bad, required)) if bad else (states, laws)
        summaries.append(summarise_many(*sound, truth, levels, free))
        if keep in chosen:
            row = keep - chosen.start
            kept = jax.tree.map(np.asarray, _row((states, laws), row))
        report(len(chosen))
    if kept is None:
        raise ValueError(f"there is no trajectory {keep} among {len(data)}.")
    return Evaluation(_concatenate(summaries), tuple(diverged), *kept)


def rehearse(
    method: AbstractMethod,
    coordinates: Coordinates,
    data: Trajectories,
    indices: Float[Array, "sample k"],
) -> None:
    """Compile what `evaluate` will need for the same shapes; nothing is run."""
    drive = driving(method.domain, coordinates, data)
    chosen, states, laws = compile_ensemble(
        method, coordinates, data.states[:, 0], data.times, indices, drive
    )
    truth = jnp.asarray(data.states[chosen.start : chosen.stop], float)
    free = method.domain.free(data.states.shape[-1])
    summarise_many.lower(states, laws, truth, jnp.asarray(LEVELS), free).compile()


def find_diverged(chunk: Chunk, reach: Float[Any, " d"] | float = np.inf) -> list[Diverged]:
    """Samples of a chunk that left the finite numbers, or went beyond the `reach` of an entry."""
    finite, chosen = np.asarray(_near(chunk.states, chunk.laws, reach)), chunk.trajectories
    return [
        Diverged(chosen[i], int(j), int(np.argmin(finite[i, j])))
        for i, j in np.argwhere(~finite.all(-1))
    ]


@jax.jit
def _near(states, laws, reach):
    """Whether a sample is finite and within reach, by trajectory, sample and time."""
    finite = [jnp.isfinite(a.reshape(*a.shape[:3], -1)).all(-1) for a in laws]
    near = (jnp.abs(states) < reach).all(-1)
    return jnp.stack([near, *finite]).all(0)


def _reach(domain: AbstractDomain, states: Float[np.ndarray, "trajectory time d"]) -> np.ndarray:
    """Ten times the largest value of each variable: a sample that gets there is lost."""
    largest = np.nanmax(np.abs(states), (0, 1))
    variables = domain.variables(largest.size)
    by_variable = np.zeros(variables.max() + 1)
    np.maximum.at(by_variable, variables, largest)
    return FAR * np.where(by_variable > 0, by_variable, np.inf)[variables]


def _rows(chunk: Chunk, bad: list[Diverged], required: int) -> Int[np.ndarray, "trajectory sample"]:
    """Which sample to take in place of each one: lost ones give way to the others in turn."""
    rows = np.tile(np.arange(chunk.states.shape[1]), (len(chunk.trajectories), 1))
    for trajectory in sorted({lost.trajectory for lost in bad}):
        steps = {lost.sample: lost.step for lost in bad if lost.trajectory == trajectory}
        sound = np.setdiff1d(np.arange(rows.shape[1]), list(steps))
        if trajectory < required and not sound.size:
            raise ValueError(
                f"every sample of trajectory {trajectory} diverged, the first at record "
                f"{min(steps.values())}: there is no forecast."
            )
        row = chunk.trajectories.index(trajectory)
        rows[row] = np.resize(sound, rows.shape[1]) if sound.size else NOBODY
    return rows


@jax.jit
def _replaced(states, laws, rows):
    """Samples by row; a shape of its own for every number of lost ones would be compiled anew."""

    def take(a, rows):
        lost = (rows == NOBODY).reshape(-1, *(1,) * (a.ndim - 1))
        return jnp.where(lost, jnp.nan, a[rows])

    return jax.vmap(lambda tree, rows: jax.tree.map(lambda a: take(a, rows), tree))(
        (states, laws), rows
    )


def _row(tree, i):
    return jax.tree.map(lambda a: a[i], tree)


def summarise(states, laws: Laws, truth, levels, free) -> Summary:
    """Summary of one trajectory from its samples (sample, time, entry)."""
    samples, truth = states[:, 1:, free], truth[1:, free]
    known = ~jnp.isnan(truth)
    score, covered = crps(samples, truth), raw_coverage(samples, truth, levels)
    vector_score = energy_score(jnp.where(known, samples, 0), jnp.where(known, truth, 0))
    return Summary(
        mean=jnp.where(known, jnp.mean(samples, 0), jnp.nan),
        std=jnp.where(known, spread(samples), jnp.nan),
        crps=jnp.mean(score.plain, 0, where=known),
        crps_fair=jnp.mean(score.fair, 0, where=known),
        energy_score=vector_score.plain,
        energy_score_fair=vector_score.fair,
        inside=covered.inside,
        width=covered.width,
        ranks=rank_histogram(samples, truth, RANK_BINS),
        audit=_audit(laws),
    )


@jax.jit
def summarise_many(states, laws, truth, levels, free) -> Summary:
    """Summaries of several trajectories, one after another to bound memory."""

    def one(trajectory):
        states, laws, truth = trajectory
        return summarise(states, laws, truth, levels, free)

    return jax.lax.map(one, (states, laws, truth))


def spread(samples: Float[Any, "sample time variable"]) -> Float[Array, "time variable"]:
    """Standard deviation of samples, but no less than rounding leaves of it.

    Where samples agree to the last bit, as in a bar ahead of the first wave, they are still no more
    certain than numbers of the size that an entry has somewhere along the trajectory.
    """
    # Centred on one sample first: the spread may be 1e-4 of the value.
    deviation = jnp.std(samples - samples[:1], 0)
    rounding = jnp.finfo(samples.dtype).eps * jnp.max(jnp.abs(samples), (0, 1))
    return jnp.maximum(deviation, rounding)


def _audit(laws: Laws) -> Audit:
    kept = laws.energy - laws.work
    entropy = jnp.sum(laws.entropy, -1)
    return Audit(
        energy_rate=jnp.max(jnp.abs(laws.energy_rate), 0),
        entropy_rate=jnp.min(laws.entropy_rate, 0),
        energy_drift=jnp.max(jnp.abs(kept - kept[:, :1])),
        entropy_step=jnp.min(jnp.diff(laws.entropy, axis=1)),  # of any local state
        energy_low=jnp.min(laws.energy),
        energy_high=jnp.max(laws.energy),
        entropy_low=jnp.min(entropy),
        entropy_high=jnp.max(entropy),
    )


def _concatenate(summaries: list[Summary]) -> Summary:
    """NumPy arrays with one leading trajectory axis."""
    return jax.tree.map(lambda *parts: np.concatenate([np.asarray(p) for p in parts]), *summaries)
