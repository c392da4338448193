"""Derivatives that agree with the states they belong to.

Simulated data often come with the rates of the exact equations, along states that a coarse
integrator made. A model of those rates forecasts what the equations say, not what the data do next.
The rates of the data are those of a smooth curve through the states, and clean records on a fine
grid tell them well. Such an integrator is off by little, at most records of most trajectories: what
is far apart, or apart at a few records, has another cause, and given derivatives stay. Equations
that stand together change together or not at all: half of them from here and half from there are
those of a third system, which may lose what neither of the two does.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from ._trajectories import Trajectories, with_smoothed

PerVariable = Bool[np.ndarray, "trajectory variable"]

CERTAIN = 20.0  # times the error of splines, by which given derivatives are off
OFTEN = 0.5  # share of records, and of trajectories, at which they are
FAR = 0.05  # share of the given derivatives: a step that is off by more was too long to be of use
SLIGHT = 1e-5  # share of them below which digits were cut off, and nothing is contradicted
STILL = 1e-12  # share of its values by which what does not move may change, by rounding


def agreeing(
    data: Trajectories,
    variables: Int[np.ndarray, " entry"],
    equations: Int[np.ndarray, " entry"],
) -> Trajectories:
    """The same trajectories, with derivatives of splines where the given ones are contradicted.

    `variables` says which variable an entry belongs to, and `equations` which entries change
    together. Trajectories whose own records do not tell better keep what they have.
    """
    times = np.broadcast_to(data.times, data.states.shape[:2])
    records = zip(times, data.states, data.derivatives, data.lengths, strict=True)
    looked = [_look(t[:n], x[:n], given[:n], variables) for t, x, given, n in records]
    seen = [(row, one) for row, one in enumerate(looked) if one is not None]
    if not seen:
        return data
    off, sure = _judge([one for _, one in seen])
    _, first = np.unique(variables, return_index=True)
    replaced = np.zeros((len(seen), len(variables)), bool)
    for number in np.unique(equations):
        together = equations[first] == number
        which = np.any(off[:, together], 1) & np.all(sure[:, together], 1)
        if np.sum(which) > OFTEN * len(data):
            replaced |= which[:, None] & (equations == number)
    if not replaced.any():
        return data
    smoothed, derivatives = data.smoothed.copy(), data.derivatives.copy()
    for (row, one), entries in zip(seen, replaced, strict=True):
        there = slice(len(one.states)), entries
        smoothed[row][there] = one.states[:, entries]
        derivatives[row][there] = one.derivatives[:, entries]
    return with_smoothed(smoothed, data, derivatives=derivatives)


def differing(data: Trajectories, other: Trajectories) -> tuple[str, ...]:
    """Names of the variables of which two sets of the same records have other derivatives."""
    unlike = (data.derivatives != other.derivatives) & np.isfinite(data.derivatives)
    return tuple(n for n, u in zip(data.names, unlike.any((0, 1)), strict=True) if u)


class _Seen(NamedTuple):
    """One trajectory by its splines, and mean squares over the entries of a variable."""

    states: Float[np.ndarray, "time entry"]
    derivatives: Float[np.ndarray, "time entry"]
    apart: Float[np.ndarray, "time variable"]
    """Of the difference between given derivatives and those of the splines."""
    given: Float[np.ndarray, " variable"]
    unsure: Float[np.ndarray, " variable"]
    """Of the error of the derivatives of the splines."""


def _look(times, states, given, variables) -> _Seen | None:
    """What splines make of one trajectory; nothing, where they cannot tell."""
    # On use: it loads much of SciPy.
    from ._derivatives import FEWEST_TO_SMOOTH, estimate_derivatives

    if len(times) < FEWEST_TO_SMOOTH:  # too few to tell noise from signal
        return None
    try:
        estimate = estimate_derivatives(times, states)
    except ValueError:  # no spline can be put through these numbers
        return None
    moves = np.ptp(states, 0) > STILL * np.abs(states).max(0)
    derivatives = np.where(moves, estimate.derivatives, given)

    def squares(values):
        each = [(values[..., variables == i] ** 2).mean(-1) for i in range(variables.max() + 1)]
        return np.stack(each, -1)

    with np.errstate(over="ignore"):  # what is as large as that is far apart
        error = estimate.error * np.sqrt(np.mean(derivatives**2, 0))
        return _Seen(
            np.where(moves, estimate.states, states),
            derivatives,
            squares(derivatives - given),
            squares(given).mean(0),
            squares(np.where(moves, error, 0)),
        )


def _judge(seen: list[_Seen]) -> tuple[PerVariable, PerVariable]:
    """Whether given derivatives are off by little, and whether splines are sure of that.

    Splines that could not tell are not sure, nor are such that find
    given derivatives far off.
    """
    given, unsure = (np.stack([getattr(s, name) for s in seen]) for name in ("given", "unsure"))
    with np.errstate(over="ignore"):
        often = np.stack([(s.apart > CERTAIN**2 * s.unsure).mean(0) for s in seen]) > OFTEN
        apart = np.stack([s.apart.mean(0) for s in seen])
        near = apart < FAR**2 * given
        typical = np.maximum(given, np.median(given, 0))
        told = CERTAIN**2 * unsure <= FAR**2 * typical
    return often & near & (apart > SLIGHT**2 * given), told & (near | ~often)
