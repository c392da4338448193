"""What a set of trajectories is like, in words, and what to look at before learning from it."""

from math import ceil
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..calibrate import coverage_range, fewest
from ._agreement import agreeing, differing
from ._conserved import conserved_combinations
from ._contents import Contents
from ._derivatives import CLEAN, FEWEST_TO_SMOOTH, Estimate, estimate_derivatives
from ._read import contents_of, trajectories_of
from ._trajectories import Trajectories

MOST_ESTIMATED = 50  # trajectories, which tell enough about noise and errors
MOST_NAMED = 12
LARGE_ERROR = 0.05
LEVELS = (0.8, 0.9, 0.95, 0.99)
SHARES = (0.6, 0.2, 0.2)


class Report(NamedTuple):
    """What is seen in a file, line by line, and what is worth a look."""

    seen: list[str]
    doubts: list[str]

    def __str__(self) -> str:
        """Both, as a page of text."""
        doubts = [f"- {doubt}" for doubt in self.doubts] or ["Nothing looks wrong."]
        head = ["", "Worth a look:"] if self.doubts else [""]
        return "\n".join([*self.seen, *head, *doubts])


def inspect(path: str | Path) -> Report:
    """Read a file and describe it; a file that cannot be used is a `ValueError`."""
    contents = contents_of(path)
    data = trajectories_of(path, contents)
    try:
        estimates = _estimates(data)
    except ValueError as error:  # where derivatives are given, nobody has tried before
        raise ValueError(f"{path}: {error}") from None
    noise = np.median([e.noise for e in estimates], axis=0)
    seen = [
        _format(path, contents, data),
        f"  records      {_records(data)}",
        f"  times        {_times(data)}",
        f"  derivatives  {_derivatives(contents, data, estimates)}",
        "",
        *_variables(data, noise),
        "",
        *_conserved(data, noise),
        *_calibration(len(data)),
    ]
    return Report(seen, _doubts(contents, data, estimates))


def split_sizes(count: int, shares: tuple[float, ...] = SHARES) -> list[int]:
    """How many trajectories go into each set: by share, but one at least and all in all."""
    if len(shares) < 2 or any(not 0 < share < 1 for share in shares) or abs(sum(shares) - 1) > 1e-9:
        raise ValueError(
            f"shares must be numbers between 0 and 1 that add up to 1, but are {list(shares)}."
        )
    if count < len(shares):
        raise ValueError(f"{count} trajectories cannot be split into {len(shares)} sets.")
    sizes = [max(1, round(share * count)) for share in shares]
    while sum(sizes) != count:
        # The largest set gives or takes what rounding has left over.
        sizes[sizes.index(max(sizes))] += 1 if sum(sizes) < count else -1
    return sizes


def _estimates(data: Trajectories) -> list[Estimate]:
    every = ceil(len(data) / MOST_ESTIMATED)
    times = np.broadcast_to(data.times, data.states.shape[:2])[::every]
    rows = zip(times, data.states[::every], data.lengths[::every], strict=True)
    return [estimate_derivatives(t[:n], x[:n]) for t, x, n in rows]


def _format(path: str | Path, contents: Contents, data: Trajectories) -> str:
    return f"{path}: {contents.kind}, {_some(len(data), 'trajectory', 'trajectories')} of " + _some(
        len(data.names), "variable"
    )


def _some(count: int, noun: str, plural: str = "") -> str:
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def _records(data: Trajectories) -> str:
    lengths = data.lengths
    if lengths.min() == lengths.max():
        return f"{lengths[0]} of each trajectory"
    return (
        f"{lengths.min()} to {lengths.max()} of a trajectory, median {np.median(lengths):g}, "
        f"{lengths.sum()} in all"
    )


def _times(data: Trajectories) -> str:
    unit = f" {data.time_unit}" if data.time_unit else ""
    span = f"{np.nanmin(data.times):.6g} to {np.nanmax(data.times):.6g}{unit}"
    grid = "one grid for all" if data.times.ndim == 1 else "every trajectory has times of its own"
    steps = _steps(data)
    small, large = steps.min(), steps.max()
    if large - small <= 1e-6 * large:
        return f"{span}, {grid}, in steps of {np.median(steps):.6g}"
    return f"{span}, {grid}, in steps from {small:.6g} to {large:.6g}"


def _steps(data: Trajectories) -> np.ndarray:
    steps = np.diff(data.times, axis=-1)
    return steps[np.isfinite(steps)]


def _derivatives(contents: Contents, data: Trajectories, estimates: list[Estimate]) -> str:
    if contents.derivatives is not None:
        size, some = len(data.names), data[:: ceil(len(data) / MOST_ESTIMATED)]
        names = differing(some, agreeing(some, np.arange(size), np.zeros(size, int)))
        few = ", ".join(names[:MOST_NAMED]) + (" and others" if len(names) > MOST_NAMED else "")
        return f"given; for {few} the states tell others, which a fit learns" if names else "given"
    order = min(e.order for e in estimates)
    worst = np.median([e.error for e in estimates], axis=0).max()
    return f"estimated from the states by splines of degree {order}, to about {_percent(worst)}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 10 else "no digit"


def _variables(data: Trajectories, noise: np.ndarray) -> list[str]:
    """A table with the range and the noise of every variable."""
    rows = [("variable", "unit", "from", "to", "noise")]
    there = data.states[np.isfinite(data.states[..., 0])]
    low, high = there.min(axis=0), there.max(axis=0)
    for i, name in enumerate(data.names[:MOST_NAMED]):
        clean = noise[i] <= CLEAN * (high[i] - low[i])
        size = "none seen" if clean else f"{noise[i]:.2g}"
        rows.append((name, data.units[i] or "-", f"{low[i]:.5g}", f"{high[i]:.5g}", size))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  " + "  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in rows]
    more = len(data.names) - MOST_NAMED
    return [line.rstrip() for line in lines] + ([f"  and {more} more"] if more > 0 else [])


def _conserved(data: Trajectories, noise: np.ndarray) -> list[str]:
    """Combinations of several variables; one variable on its own is a doubt, not a find."""
    found = conserved_combinations(data, noise)
    several = [c for c in found if np.count_nonzero(c) > 1]
    lines = [f"  {_formula(c, data.names)}" for c in several[:MOST_NAMED]]
    more = len(several) - MOST_NAMED
    lines += [f"  and {more} more"] if more > 0 else []
    return ["Never changes along any trajectory:", *lines, ""] if lines else []


def _formula(coefficients: np.ndarray, names) -> str:
    there = [(c, name) for c, name in zip(coefficients, names, strict=True) if c]
    terms = [f"{'-' if c < 0 else '+'} {_factor(c)}{name}" for c, name in there]
    text = " ".join(terms[:MOST_NAMED]) + (" + ..." if len(terms) > MOST_NAMED else "")
    return text.removeprefix("+ ")


def _factor(coefficient: float) -> str:
    digits = f"{abs(coefficient):.4g}"
    return "" if digits == "1" else f"{digits} "


def _calibration(count: int) -> list[str]:
    """What a split by the usual shares can promise."""
    if count < 3:
        return []
    train, calibration, test = split_sizes(count)
    lines = [
        f"Split by default: {train} to learn from, {calibration} to calibrate, {test} to test."
    ]
    levels = [level for level in LEVELS if fewest(level) <= calibration]
    if not levels:
        return lines
    low, high = coverage_range(calibration, levels[-1])
    return [
        *lines,
        f"Calibration with {calibration} supports levels up to {levels[-1]:.0%}, which one such "
        f"set meets with a coverage of {low:.2f} to {high:.2f} (nine times in ten).",
    ]


def _doubts(contents: Contents, data: Trajectories, estimates: list[Estimate]) -> list[str]:
    return [
        *_few(len(data)),
        *_constant(data),
        *_duplicates(data),
        *_short(data),
        *_coarse(contents, data, estimates),
        *_disagreeing(contents, data, estimates),
    ]


def _few(count: int) -> list[str]:
    if count < 3:
        return [
            f"{_some(count, 'trajectory', 'trajectories')}: to learn, to calibrate and to test "
            "take three at the very least."
        ]
    calibration = split_sizes(count)[1]
    if calibration < fewest(0.9):
        return [
            f"{_some(calibration, 'trajectory', 'trajectories')} to calibrate with cannot support "
            "intervals of 90 %: that takes 9, and 95 % takes 19."
        ]
    return []


def _constant(data: Trajectories) -> list[str]:
    moved = np.nanmax(np.abs(data.states - data.states[:, :1]), axis=(0, 1))
    names = [name for name, m in zip(data.names, moved, strict=True) if m == 0]
    if not names:
        return []
    return [f"{', '.join(names[:MOST_NAMED])} never changes along a trajectory: leave it out."]


def _duplicates(data: Trajectories) -> list[str]:
    seen: dict[str, int] = {}
    doubts = []
    for i, digest in enumerate(data.digests):
        if digest in seen:
            doubts.append((seen[digest], i))
        seen.setdefault(digest, i)
    if not doubts:
        return []
    first, second = doubts[0]
    others = f", and {len(doubts) - 1} more such pairs" if len(doubts) > 1 else ""
    return [
        f"trajectories {first} and {second} are the same{others}: a test on what was learned from "
        "is no test."
    ]


def _short(data: Trajectories) -> list[str]:
    short = int(np.sum(data.lengths < FEWEST_TO_SMOOTH))
    if not short:
        return []
    return [
        f"{_some(short, 'trajectory has', 'trajectories have')} fewer than {FEWEST_TO_SMOOTH} "
        "records, too few to tell noise from signal."
    ]


def _coarse(contents: Contents, data: Trajectories, estimates: list[Estimate]) -> list[str]:
    if contents.derivatives is not None:
        return []
    errors = np.median([e.error for e in estimates], axis=0)
    names = _exceeding(data, errors, np.full(len(errors), LARGE_ERROR))
    if not names:
        return []
    return [
        f"derivatives of {names} are uncertain: record more often or with "
        "less noise, or give derivatives."
    ]


def _disagreeing(contents: Contents, data: Trajectories, estimates: list[Estimate]) -> list[str]:
    """Given derivatives that are not those of the states: other units, another order, a bug."""
    if contents.derivatives is None:
        return []
    every = ceil(len(data) / MOST_ESTIMATED)
    given = [d[:n] for d, n in zip(data.derivatives, data.lengths, strict=True)][::every]
    apart = _relative([d - e.derivatives for d, e in zip(given, estimates, strict=True)], given)
    allowed = LARGE_ERROR + 3 * np.median([e.error for e in estimates], axis=0)
    names = _exceeding(data, apart, allowed)
    return [f"given derivatives are not those of the states: {names} apart."] if names else []


def _exceeding(data: Trajectories, values: np.ndarray, allowed: np.ndarray) -> str:
    """Names of the variables with more than is allowed, and how much they have."""
    every = zip(data.names, values, allowed, strict=True)
    names = [f"{name} ({_percent(value)})" for name, value, most in every if value > most]
    return ", ".join(names[:MOST_NAMED])


def _relative(error: list[np.ndarray], of: list[np.ndarray]) -> np.ndarray:
    """Root mean square over all records, one over the other, (variable,)."""
    above, below = (np.sqrt(np.mean(np.concatenate(a) ** 2, axis=0)) for a in (error, of))
    return above / np.where(below > 0, below, np.inf)
