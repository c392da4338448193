"""The arrays of a page, thinned to a byte budget and packed as text.

Sizes are decided by a budget in bytes, not by how many trajectories there are. `RUNGS` says what is
given up first: times beyond 600, then beyond 300, then trajectories, levels and, for very large
fields, places. The numbers of `results.json` are never thinned, and the page says what was.

Truth is float32. A forecast is kept as its error, and errors, spreads and reaches are float16 times
one scale per variable: three digits, however small they are beside the truth.
"""

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .._view import PageMethod, PageView

LAW_POINTS = 600
HALF_TOP = 2.0**15
BEYOND = 1e4  # ranges of the truth; an error as large as that is shown as infinite
KEY_LEVELS = (0.5, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Rung:
    """At most so much of each, and at least so many trajectories if there are."""

    times: int
    levels: int
    places: int
    trajectories: int


ALL = 10**9
RUNGS = (
    Rung(600, ALL, ALL, 20),
    Rung(300, ALL, ALL, 8),
    Rung(200, ALL, ALL, 6),
    Rung(150, 10, ALL, 4),
    Rung(120, 10, 200, 2),
    Rung(120, 4, 200, 1),
    Rung(120, 4, 60, 1),
    Rung(80, 4, 40, 1),
    Rung(40, 4, 20, 1),
)


@dataclass(frozen=True, eq=False)
class Kept:
    """Indices of what is kept of each axis, and the entries of each variable."""

    trajectories: np.ndarray
    times: np.ndarray
    levels: np.ndarray
    entries: tuple[np.ndarray, ...]


def choose(view: PageView, budget: int) -> Kept:
    """As much as fits into `budget` bytes of text."""
    available = len(view.truth)
    for rung in RUNGS:
        kept = _kept(view, rung)
        fit = _trajectories_that_fit(view, kept, budget)
        if fit >= min(rung.trajectories, available) or rung is RUNGS[-1]:
            count = min(max(fit, 1), available)
            return Kept(np.arange(count), kept.times, kept.levels, kept.entries)
    raise AssertionError("The last rung always returns.")


def pack(view: PageView, kept: Kept) -> dict:
    """What JavaScript reads: plain lists, and arrays as base64 text."""
    return {
        "times": [float(t) for t in np.asarray(view.times)[kept.times]],
        "levels": [float(view.levels[i]) for i in kept.levels],
        "trajectories": len(kept.trajectories),
        "variables": [_variable(view, kept, i) for i in range(len(view.starts))],
        "methods": [_method(view, method, kept) for method in view.methods],
    }


def entries(view: PageView) -> list[np.ndarray]:
    """Entries of each variable."""
    ends = [*view.starts, np.shape(view.truth)[-1]]
    return [np.arange(a, b) for a, b in pairwise(ends)]


def _kept(view: PageView, rung: Rung) -> Kept:
    return Kept(
        np.arange(len(view.truth)),
        _evenly(len(view.times), rung.times),
        _levels(view.levels, rung.levels),
        tuple(part[_evenly(len(part), rung.places)] for part in entries(view)),
    )


def _evenly(count: int, most: int) -> np.ndarray:
    """At most `most` indices, first and last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def _levels(levels: Iterable[float], most: int) -> np.ndarray:
    """At most about `most`: those that people ask for, and others evenly between."""
    values = np.asarray(tuple(levels), float)
    if len(values) <= most:
        return np.arange(len(values))
    key = [i for i, level in enumerate(values) if np.isclose(level, KEY_LEVELS).any()]
    rest = [i for i in _evenly(len(values), most) if i not in key]
    return np.array(sorted(key + rest[: max(most - len(key), 0)]), int)


def _trajectories_that_fit(view: PageView, kept: Kept, budget: int) -> int:
    points = len(kept.times) * sum(len(part) for part in kept.entries)
    fixed, each = 0, 4 * points
    for method in view.methods:
        each += 2 * points * (1 if method.std is None else 2)
        fixed += 0 if method.reach is None else 2 * points * len(kept.levels)
        fixed += 2 * 5 * 4 * min(LAW_POINTS, len(view.times))
    text = 4 / 3  # base64
    return int((budget / text - fixed) // each)


def _variable(view: PageView, kept: Kept, index: int) -> dict:
    part = kept.entries[index]
    start = view.starts[index]
    places = None if view.places is None else np.asarray(view.places[index])[part - start]
    return {
        "places": None if places is None else [float(p) for p in places],
        "truth": _single(_select(view.truth, kept, part)),
    }


def _method(view: PageView, method: PageMethod, kept: Kept) -> dict:
    parts = kept.entries
    return {
        "name": method.name,
        "error": [_error(view, method, kept, part) for part in parts],
        "std": None
        if method.std is None
        else [_half(_select(method.std, kept, p), _cap(view, p)) for p in parts],
        "reach": None
        if method.reach is None
        else [_half(method.reach[np.ix_(kept.levels, kept.times, part)]) for part in parts],
        "energy": _energy(view, method),
        "entropy": _entropy(view, method),
    }


def _error(view: PageView, method: PageMethod, kept: Kept, part: np.ndarray) -> dict:
    mean, truth = (_select(a, kept, part) for a in (method.mean, view.truth))
    with np.errstate(invalid="ignore"):
        return _half(np.asarray(mean, float) - np.asarray(truth, float), _cap(view, part))


def _select(values: np.ndarray, kept: Kept, part: np.ndarray) -> np.ndarray:
    return np.asarray(values)[np.ix_(kept.trajectories, kept.times, part)]


def _cap(view: PageView, part: np.ndarray) -> float:
    """One forecast that flew away must not take the digits from the others."""
    truth = np.asarray(view.truth)[..., part]
    finite = truth[np.isfinite(truth)]
    size = max(np.ptp(finite), np.abs(finite).max()) if finite.size else 0.0
    return float(BEYOND * size) or np.inf


def _single(values: np.ndarray) -> dict:
    return {"type": "f4", "data": _text(np.asarray(values, "<f4"))}


def _half(values: np.ndarray, cap: float = np.inf) -> dict:
    """Float16 times a scale that puts the largest finite value near the top of its range."""
    values = np.asarray(values, float)
    values = np.where(np.abs(values) > cap, np.copysign(np.inf, values), values)
    finite = np.abs(values[np.isfinite(values)])
    top = float(finite.max()) if finite.size else 0.0
    scale = top / HALF_TOP if top > 0 else 1.0
    return {"type": "f2", "scale": scale, "data": _text((values / scale).astype("<f2"))}


def _text(values: np.ndarray) -> str:
    return b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


def _energy(view: PageView, method: PageMethod) -> dict | None:
    """Low, median and high rate; of each stretch, the record that is furthest from zero."""
    if method.energy_rate is None:
        return None
    rates = np.asarray(method.energy_rate, float)
    keep = _extremes(-np.nan_to_num(np.abs(rates).max(0), nan=np.inf, posinf=np.inf))
    return _series(view.times, keep, rates)


def _entropy(view: PageView, method: PageMethod) -> dict | None:
    """Smallest rate; of each stretch, the smallest."""
    if method.entropy_rate_min is None:
        return None
    rates = np.asarray(method.entropy_rate_min, float)
    keep = _extremes(np.nan_to_num(rates, nan=-np.inf, neginf=-np.inf, posinf=np.inf))
    return _series(view.times, keep, rates[None])


def _extremes(values: np.ndarray) -> np.ndarray:
    """Index of the smallest value of each of at most `LAW_POINTS` stretches: no dip is lost."""
    edges = np.linspace(0, values.size, min(values.size, LAW_POINTS) + 1).round().astype(int)
    return np.array([a + int(np.argmin(values[a:b])) for a, b in pairwise(edges)], int)


def _series(times: np.ndarray, keep: np.ndarray, values: np.ndarray) -> dict:
    """Float64 text is small here, and rates may be far below what float32 holds."""
    pick = np.asarray(times, float)[keep]
    return {
        "times": {"type": "f8", "data": _text(pick.astype("<f8"))},
        "rows": len(values),
        "values": {"type": "f8", "data": _text(values[:, keep].astype("<f8"))},
    }
