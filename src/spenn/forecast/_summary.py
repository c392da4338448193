"""What is kept of an ensemble: statistics, scores and the law audit of each trajectory."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..calibrate import crps, energy_score, rank_histogram, raw_coverage
from ..data import Trajectories
from ..devices import collect, from_process, over_devices, own_rows, where_rows_are
from ..generic import AbstractDomain, AbstractMethod, Coordinates
from ..integrate import RK4, AbstractIntegrator, Laws
from ._ensemble import Chunk, compile_ensemble, driving, ensemble

LEVELS = (*(round(0.05 * i, 2) for i in range(1, 20)), 0.99)
RANK_BINS = 20
FAR = 10.0
NEVER = NOBODY = -1


class Audit(NamedTuple):
    """Extremes over all samples of one trajectory, by time or over the rollout.

    Drift is how far the energy is from that of the start and the work done since, until the next
    record; the step of the entropy, in whichever local state it is smallest, is that towards the
    next record, or the smallest of its parts.
    """

    energy_rate: Float[Any, " time"]
    entropy_rate: Float[Any, " time"]
    energy_drift: Float[Any, " time"]
    entropy_step: Float[Any, " time-1"]
    sweeps_mean: Float[Any, ""]
    sweeps_max: Float[Any, ""]
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
    integrator: AbstractIntegrator = RK4,
    report: Callable[[int], None] = lambda trajectories: None,
) -> Evaluation:
    """Forecast every trajectory of the data, on one time grid, from its first state and score it.

    Only summaries are kept, and the samples of the one trajectory numbered `keep`. Samples that
    diverge are listed, and in the summaries others of the same trajectory stand in for them; a
    trajectory without any other is an error or, if it is not among the first so many that are
    `required`, has a summary of NaN. Trajectories are shared out over all processes and devices.
    """
    count = len(data)
    if not 0 <= keep < count:
        raise ValueError(f"there is no trajectory {keep} among {count}.")
    reach, own = _reach(method.domain, data.states), data[own_rows(count)]
    # Every process keeps a row of its own; that of the one who has the right one counts.
    owner, row = divmod(keep, len(own))

    def done(rows):
        # With a row of this share goes one of every other share, but for those that fill it up.
        report(sum(-(-(count - row) // len(own)) for row in rows))

    share, kept = _evaluate_share(method, coordinates, own, indices, reach, row, integrator, done)
    summary, lost = collect(share, count)
    _check_sound(lost[:required])
    return Evaluation(summary, list_diverged(lost), *from_process(kept, owner))


def _evaluate_share(method, coordinates, data, indices, reach, keep, integrator, report):
    """Summaries and lost samples of some trajectories, and all samples of one of them."""
    summaries, every_lost, kept = [], [], None
    levels, free = jnp.asarray(LEVELS), method.domain.free(data.states.shape[-1])
    drive = driving(method.domain, coordinates, data)
    start, given = data.states[:, 0], (drive, data.lengths, integrator)
    for chunk in ensemble(method, coordinates, start, data.times, indices, *given):
        chosen, states, laws = chunk
        rows = np.resize(chosen, len(states))
        truth = over_devices(jnp.asarray(data.states[rows], float))
        lost = first_lost(chunk, reach)
        sound = states, laws
        if np.any(lost != NEVER):
            sound = _replaced(states, laws, over_devices(jnp.asarray(_stand_ins(lost))))
        summaries.append(summarise_many(*sound, truth, levels, free))
        every_lost.append(lost)
        if keep in chosen:
            kept = jax.tree.map(lambda a, i=keep - chosen.start: np.asarray(a[i]), (states, laws))
        report(chosen)
    return _concatenate(list(zip(summaries, every_lost, strict=True)), len(data)), kept


def rehearse(
    method: AbstractMethod,
    coordinates: Coordinates,
    data: Trajectories,
    indices: Float[Array, "sample k"],
    integrator: AbstractIntegrator = RK4,
) -> None:
    """Compile what `evaluate` will need for the same shapes; nothing is run."""
    drive = driving(method.domain, coordinates, data)
    chosen, states, laws = compile_ensemble(
        method, coordinates, data.states[:, 0], data.times, indices, drive, integrator
    )
    truth = jnp.asarray(data.states[chosen.start : chosen.stop], float)
    free = method.domain.free(data.states.shape[-1])
    summarise_many.lower(states, laws, truth, jnp.asarray(LEVELS), free).compile()


def first_lost(
    chunk: Chunk, reach: Float[Any, " d"] | float = np.inf
) -> Int[np.ndarray, "trajectory sample"]:
    """The first record where a sample left the finite numbers or the `reach` of an entry, or -1."""
    near = np.asarray(_near(chunk.states, chunk.laws, reach))
    return np.where(near.all(-1), NEVER, np.argmin(near, -1))


def list_diverged(lost: Int[np.ndarray, "trajectory sample"]) -> tuple[Diverged, ...]:
    """Samples that were lost, from where `first_lost` says that each was."""
    return tuple(Diverged(int(i), int(j), int(lost[i, j])) for i, j in np.argwhere(lost != NEVER))


def _check_sound(lost: Int[np.ndarray, "trajectory sample"]) -> None:
    hopeless = np.flatnonzero((lost != NEVER).all(1))
    if hopeless.size:
        raise ValueError(
            f"every sample of trajectory {hopeless[0]} diverged, the first at record "
            f"{lost[hopeless[0]].min()}: there is no forecast."
        )


@jax.jit
def _near(states, laws, reach):
    """Whether a sample is finite and within reach, by trajectory, sample and time."""
    at_records = jax.tree.leaves(laws._replace(between=None))
    finite = [jnp.isfinite(a.reshape(*a.shape[:3], -1)).all(-1) for a in at_records]
    near = (jnp.abs(states) < reach).all(-1)
    return jnp.stack([near, *finite]).all(0)


def _reach(domain: AbstractDomain, states: Float[np.ndarray, "trajectory time d"]) -> np.ndarray:
    """Ten times the largest value of each variable: a sample that gets there is lost."""
    largest = np.nanmax(np.abs(states), (0, 1))
    variables = domain.variables(largest.size)
    by_variable = np.zeros(variables.max() + 1)
    np.maximum.at(by_variable, variables, largest)
    return FAR * np.where(by_variable > 0, by_variable, np.inf)[variables]


def _stand_ins(lost: Int[np.ndarray, "trajectory sample"]) -> Int[np.ndarray, "trajectory sample"]:
    """Which sample to take in place of each one: lost ones give way to the others in turn."""
    rows = np.tile(np.arange(lost.shape[1]), (len(lost), 1))
    for row in np.flatnonzero((lost != NEVER).any(1)):
        sound = np.flatnonzero(lost[row] == NEVER)
        rows[row] = np.resize(sound, len(lost[row])) if sound.size else NOBODY
    return rows


@jax.jit
def _replaced(states, laws, rows):
    """Samples by row; a shape of its own for every number of lost ones would be compiled anew."""

    def take(a, rows):
        lost = (rows == NOBODY).reshape(-1, *(1,) * (a.ndim - 1))
        return jnp.where(lost, jnp.nan, a[rows])

    def one(trajectory):
        samples, rows = trajectory
        return jax.tree.map(lambda a: take(a, rows), samples)

    return where_rows_are(jax.vmap(one), len(states))(((states, laws), rows))


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

    every = where_rows_are(lambda rows: jax.lax.map(one, rows), len(states))
    return every((states, laws, truth))


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
    entropy = jnp.sum(laws.entropy, -1)
    drift, step = _every_step(laws)
    return Audit(
        energy_rate=jnp.max(jnp.abs(laws.energy_rate), 0),
        entropy_rate=jnp.min(laws.entropy_rate, 0),
        energy_drift=jnp.max(drift, 0),
        entropy_step=jnp.min(step, 0),
        sweeps_mean=jnp.mean(laws.sweeps[:, :-1]),
        sweeps_max=jnp.max(laws.sweeps[:, :-1]),
        energy_low=jnp.min(laws.energy),
        energy_high=jnp.max(laws.energy),
        entropy_low=jnp.min(entropy),
        entropy_high=jnp.max(entropy),
    )


def _every_step(laws: Laws) -> tuple[Float[Array, "sample time"], Float[Array, "sample time-1"]]:
    """Drift of the energy and smallest step of the entropy, in all parts of all steps."""
    start, between = (laws.energy - laws.work)[:, :1], laws.between
    if between is None:
        drift = jnp.abs(laws.energy - laws.work - start)
        return drift, jnp.min(jnp.diff(laws.entropy, axis=1), -1)
    ends = between.energy_low, between.energy_high
    drift = jnp.maximum(*(jnp.abs(end - laws.work - start) for end in ends))
    last = jnp.min(laws.entropy[:, 1:] - between.entropies[:, :-1], -1)
    return drift, jnp.minimum(last, between.entropy_step[:, :-1])


def _concatenate(chunks: list, count: int) -> Any:
    """NumPy arrays with one leading axis, of so many trajectories."""
    return jax.tree.map(
        lambda *parts: np.concatenate([np.asarray(p) for p in parts])[:count], *chunks
    )
