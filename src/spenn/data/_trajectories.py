"""Trajectories: what a user brings and what every stage passes on."""

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy  # its parts load on first use
from jaxtyping import Float

MOST_PER_RECORD = 20  # typical steps
GAP = 2  # times the median time between records is a gap


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Trajectories of one system, in the user's units.

    **Arguments:** `times` (time,), strictly increasing, or one such array per trajectory; `states`
    (trajectory, time, variable), or a list of arrays (time, variable) of unequal lengths;
    `derivatives` laid out as the states, or `None` to estimate them by splines; `names` and
    `units`, one per variable; `time_unit`. A trajectory that ended early may be filled up with NaN.

    Afterwards `times` is one grid (time,) if all trajectories share it, else (trajectory, time);
    arrays are filled up with NaN. `smoothed` states, those of the splines where derivatives are
    theirs, are what a model learns from.
    """

    times: np.ndarray
    states: np.ndarray
    derivatives: np.ndarray = field(default=None)  # type: ignore[assignment]
    names: Sequence[str] = ()
    units: Sequence[str] = ()
    time_unit: str = ""
    smoothed: np.ndarray = field(init=False, repr=False)

    def __post_init__(self):
        """Check shapes and values; fill in derivatives and names."""
        states = _padded("states", self.states)
        if states.ndim != 3:
            raise ValueError(
                "states must have the axes (trajectory, time, variable); "
                f"they have shape {states.shape}."
            )
        if 0 in states.shape:
            raise ValueError(f"states are empty: they have shape {states.shape}.")
        names = _words("names", self.names, states.shape[2])
        names = names or tuple(f"x{i + 1}" for i in range(states.shape[2]))
        check_names(names)
        lengths = _lengths(states, names)
        times = _on_shared_grid(_padded("times", self.times), lengths, states.shape[:2])
        if self.derivatives is None:
            smoothed, derivatives = _estimated(times, states, lengths)
        else:
            derivatives = _padded("derivatives", self.derivatives)
            smoothed = states
        if derivatives.shape != states.shape:
            raise ValueError(
                f"derivatives have shape {derivatives.shape} and states {states.shape}: "
                "they must agree."
            )
        _check_finite("derivatives", derivatives, lengths, names)
        values = {
            "times": times,
            "states": states,
            "derivatives": derivatives,
            "smoothed": smoothed,
            "names": names,
            "units": _words("units", self.units, states.shape[2]) or ("",) * len(names),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def __len__(self) -> int:
        """Number of trajectories."""
        return len(self.states)

    def __getitem__(self, which: slice | np.ndarray) -> "Trajectories":
        """Some of the trajectories."""
        return with_smoothed(
            self.smoothed[which],
            self,
            times=self.times if self.times.ndim == 1 else self.times[which],
            states=self.states[which],
            derivatives=self.derivatives[which],
        )

    @property
    def lengths(self) -> np.ndarray:
        """Number of records of each trajectory."""
        return np.isfinite(self.states[..., 0]).sum(1)

    @property
    def typical_step(self) -> float:
        """The longest time between records that is less than `GAP` of the median ones.

        Where gaps in the data are most of the time, a share of the mean: no model takes more than
        `MOST_PER_RECORD` such steps for every record.
        """
        between = np.diff(self.times, axis=-1)
        usual = between[between < GAP * np.nanmedian(between)]
        step = max(usual.max(), np.nanmean(between) / MOST_PER_RECORD)
        return float(f"{step:.9g}")  # differences of times carry rounding

    @property
    def digests(self) -> tuple[str, ...]:
        """A name for the content of each trajectory: equal for equal trajectories."""
        times = np.broadcast_to(self.times, self.states.shape[:2])
        return tuple(
            hashlib.sha256(np.concatenate([t[:n] - t[0], x[:n].ravel()]).tobytes()).hexdigest()[:32]
            for t, x, n in zip(times, self.states, self.lengths, strict=True)
        )

    def records(self) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]]:
        """States and derivatives of all records of all trajectories, to learn from."""
        there = np.isfinite(self.states[..., 0])
        return self.smoothed[there], self.derivatives[there]

    def on_one_grid(self) -> "Trajectories":
        """The same trajectories on a grid that all share, for forecasts to be compared with.

        Nothing changes where there is one. Otherwise times are counted from the first record of
        each trajectory, the grid is as dense as the records are, and states between records are
        those of a cubic through states and derivatives.
        """
        if self.times.ndim == 1:
            return self
        elapsed = self.times - self.times[:, :1]
        share = np.linspace(0, 1, self.states.shape[1])
        grid = np.unique(np.quantile(elapsed[np.isfinite(elapsed)], share))
        states, derivatives = np.full((2, len(self), len(grid), self.states.shape[2]), np.nan)
        for i, n in enumerate(self.lengths):
            records = elapsed[i, :n], self.states[i, :n], self.derivatives[i, :n]
            curve = scipy.interpolate.CubicHermiteSpline(*records)
            during = grid <= elapsed[i, n - 1]
            states[i, during] = curve(grid[during])
            derivatives[i, during] = curve.derivative()(grid[during])
        return replace(self, times=grid, states=states, derivatives=derivatives)

    def split(self, *sizes: int, seed: int | None = None) -> tuple["Trajectories", ...]:
        """Disjoint sets of whole trajectories, in order or, with a seed, at random.

        **Example:** `train, calibration, test = data.split(60, 50, 40, seed=0)`
        """
        if sum(sizes) > len(self) or any(size < 1 for size in sizes):
            raise ValueError(
                f"cannot split {len(self)} trajectories into sets of {list(sizes)}: "
                "each needs at least one."
            )
        order = np.arange(len(self))
        if seed is not None:
            order = np.random.default_rng(seed).permutation(len(self))
        edges = np.cumsum((0, *sizes))
        return tuple(self[order[a:b]] for a, b in itertools.pairwise(edges))


def concatenate(*parts: Trajectories) -> Trajectories:
    """Trajectories of several sets with the same variables, in order."""
    first, *others = parts
    shared = all(np.array_equal(first.times, other.times) for other in others)
    if shared and first.times.ndim == 1:
        times, joined = first.times, np.concatenate
    else:
        times = [
            row for part in parts for row in np.broadcast_to(part.times, part.states.shape[:2])
        ]
        joined = lambda arrays: [row for array in arrays for row in array]  # noqa: E731
    states, derivatives, smoothed = (
        joined([getattr(part, name) for part in parts])
        for name in ("states", "derivatives", "smoothed")
    )
    smoothed = _padded("smoothed states", smoothed)
    return with_smoothed(smoothed, first, times=times, states=states, derivatives=derivatives)


def with_smoothed(smoothed: np.ndarray, data: Trajectories, **changes) -> Trajectories:
    """Changed trajectories that remember what splines made of their states."""
    changed = replace(data, **changes)
    object.__setattr__(changed, "smoothed", smoothed)
    return changed


def _padded(name: str, given) -> np.ndarray:
    """An array of floats; sequences of unequal lengths are filled up with NaN."""
    try:
        if isinstance(given, np.ndarray) and given.dtype != object:
            return given.astype(np.float64)
        rows = [np.asarray(row, dtype=np.float64) for row in given]
    except (ValueError, TypeError):
        raise ValueError(f"{name} must be numbers, in one array or one array each.") from None
    if len({row.shape[1:] for row in rows}) > 1 or len({row.ndim for row in rows}) > 1:
        raise ValueError(f"{name} must have the same variables in all trajectories.")
    if not rows or rows[0].ndim == 0:
        return np.asarray(rows, dtype=np.float64)
    whole = np.full((len(rows), max(map(len, rows)), *rows[0].shape[1:]), np.nan)
    for padded, row in zip(whole, rows, strict=True):
        padded[: len(row)] = row
    return whole


def _words(name: str, given: Sequence[str], number: int) -> tuple[str, ...]:
    words = (given,) if isinstance(given, str) else tuple(map(str, given))
    if words and len(words) != number:
        raise ValueError(f"{name} must be {number} words, one per variable; they are {words}.")
    return words


def check_names(names: Sequence[str]) -> None:
    """Refuse names of variables that are equal, or no plain words."""
    if len(set(names)) != len(names):
        raise ValueError(f"names must be different words; they are {names}.")
    for name in names:
        # Names end up in files, pages and terminals.
        if not name or len(name) > 80 or not name.isprintable() or set(name) & set("/\\<>"):
            raise ValueError(
                f"the name {name[:80]!r} is no plain word: use letters, digits and the like, "
                "80 at most."
            )


def _lengths(states: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Records of each trajectory; what comes after them is missing whole."""
    there = np.any(~np.isnan(states), axis=-1)
    lengths = np.where(np.any(there, axis=1), there.shape[1] - np.argmax(there[:, ::-1], 1), 0)
    if (lengths < 2).any():
        short = int(np.argmax(lengths < 2))
        raise ValueError(f"trajectory {short} has fewer than two records: leave it out.")
    _check_finite("states", states, lengths, names)
    return lengths


def _check_finite(what: str, values: np.ndarray, lengths: np.ndarray, names: Sequence[str]):
    """Refuse what is not finite, but for missing tails."""
    tail = np.arange(values.shape[1]) >= lengths[:, None]
    bad = np.argwhere(~np.isfinite(values) & ~tail[..., None])
    if len(bad):
        trajectory, record, variable = (int(i) for i in bad[0])
        raise ValueError(
            f"{what} hold a value that is not finite, at trajectory {trajectory}, record {record}, "
            f"variable {names[variable]}."
        )


def _on_shared_grid(times: np.ndarray, lengths: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Checked times: one grid where every trajectory keeps to it, else one row each."""
    if times.shape == shape[1:]:
        rows = times[None]
        if not np.isfinite(times).all():
            raise ValueError("times hold a value that is not finite.")
    elif times.shape == shape:
        rows = np.where(np.arange(shape[1]) < lengths[:, None], times, np.nan)
    else:
        raise ValueError(
            f"times must hold one number per record: {shape[1]} records of {shape[0]} "
            f"trajectories, times of shape {times.shape}."
        )
    for i, row in enumerate(rows):
        known = row if len(rows) == 1 else row[: lengths[i]]
        late = np.flatnonzero(~(np.diff(known) > 0))
        if late.size:
            at, where = int(late[0]), "" if times.ndim == 1 else f" of trajectory {i}"
            raise ValueError(
                f"times{where} must be strictly increasing: record {at + 1} has the time "
                f"{known[at + 1]:g}, after {known[at]:g}."
            )
    longest = rows[0] if len(rows) == 1 else rows[np.argmax(lengths)]
    shared = bool(np.all(np.isnan(rows) | (rows == longest))) and np.isfinite(longest).all()
    return longest if shared else rows


def _estimated(times: np.ndarray, states: np.ndarray, lengths: np.ndarray):
    """Smoothed states and derivatives of every trajectory."""
    from ._derivatives import estimate_derivatives  # on use: it loads much of SciPy

    smoothed, derivatives = np.full((2, *states.shape), np.nan)
    rows = np.broadcast_to(times, states.shape[:2])
    for i, n in enumerate(lengths):
        estimate = estimate_derivatives(rows[i, :n], states[i, :n])
        smoothed[i, :n], derivatives[i, :n] = estimate.states, estimate.derivatives
    return smoothed, derivatives
