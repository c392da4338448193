"""Derivatives that agree with the states they belong to.

Simulated data often come with the rates of the exact equations, along states that a coarse
integrator made. A model of those rates forecasts what the equations say, not what the data do next.
The rates of the data are those of a smooth curve through the states, and clean records on a fine
grid tell them well. Such an integrator is off by little, at most records: what is far apart, or
apart at a few records, has another cause, and given derivatives stay.
"""

from math import ceil
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from ._trajectories import Trajectories, with_smoothed

CERTAIN = 20.0  # times the error of splines, by which given derivatives are off
OFTEN = 0.5  # share of records at which they are
FAR = 0.05  # share of the given derivatives by which no integrator of second order is off
MOST_COMPARED = 20  # trajectories


def contradicted(
    data: Trajectories, variables: Int[np.ndarray, " entry"]
) -> Bool[np.ndarray, " entry"]:
    """Whether the given derivatives of an entry are, without doubt, not those of its states.

    `variables` says which variable an entry belongs to; all entries of one are treated alike.
    """
    found = _compare(data[:: ceil(len(data) / MOST_COMPARED)], variables)
    count = max(int(found.known.sum()), 1)
    often = found.beyond.sum((0, 1)) > OFTEN * count
    return (often & (found.apart.sum((0, 1)) < FAR**2 * found.given.sum((0, 1))))[variables]


def agreeing(data: Trajectories, variables: Int[np.ndarray, " entry"]) -> Trajectories:
    """The same trajectories, with derivatives of splines where the given ones are contradicted.

    Those of a trajectory whose own records do not tell better stay, as where it alone is noisy.
    """
    entries = contradicted(data, variables)
    if not entries.any():
        return data
    found = _compare(data, variables)
    trajectories = found.beyond.sum(1) > OFTEN * found.known.sum(1)[:, None]
    replaced = (entries & trajectories[:, variables])[:, None]
    return with_smoothed(
        np.where(replaced, found.smoothed, data.smoothed),
        data,
        derivatives=np.where(replaced, found.own, data.derivatives),
    )


class _Compared(NamedTuple):
    """Given derivatives against those of splines through the states.

    Squares are summed over the entries of a variable, and zero where there is nothing to compare.
    """

    smoothed: Float[np.ndarray, "trajectory time entry"]
    own: Float[np.ndarray, "trajectory time entry"]
    known: Bool[np.ndarray, "trajectory time"]
    """Records of trajectories that are long enough to tell noise from signal."""
    beyond: Bool[np.ndarray, "trajectory time variable"]
    """Whether the two are further apart than splines are wrong."""
    apart: Float[np.ndarray, "trajectory time variable"]
    given: Float[np.ndarray, "trajectory time variable"]


def _compare(data: Trajectories, variables: Int[np.ndarray, " entry"]) -> _Compared:
    # On use: it loads much of SciPy.
    from ._derivatives import FEWEST_TO_SMOOTH, estimate_derivatives

    smoothed, own, error = data.smoothed.copy(), data.derivatives.copy(), np.zeros_like(data.states)
    known = np.zeros(data.states.shape[:2], bool)
    times = np.broadcast_to(data.times, known.shape)
    for i, n in enumerate(data.lengths):
        if n < FEWEST_TO_SMOOTH:
            continue
        try:
            estimate = estimate_derivatives(times[i, :n], data.states[i, :n])
        except ValueError:  # no spline can be put through these numbers: they contradict nothing
            continue
        known[i, :n] = True
        smoothed[i, :n], own[i, :n] = estimate.states, estimate.derivatives
        error[i, :n] = estimate.error * np.sqrt(np.mean(estimate.derivatives**2, 0))

    def squares(values):
        squared = np.where(known[..., None], values, 0) ** 2
        each = [squared[..., variables == i].sum(-1) for i in range(variables.max() + 1)]
        return np.stack(each, -1)

    with np.errstate(over="ignore"):  # what is as large as that is far apart
        apart, given, unsure = map(squares, (own - data.derivatives, data.derivatives, error))
        return _Compared(smoothed, own, known, apart > CERTAIN**2 * unsure, apart, given)
