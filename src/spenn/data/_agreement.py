"""Derivatives that agree with the states they belong to.

Simulated data often come with the rates of the exact equations, along states that a coarse
integrator made. A model of those rates forecasts what the equations say, not what the data do next.
The rates of the data are those of a smooth curve through the states, and clean records on a fine
grid tell them well. Such an integrator is off by little: what is far apart has another cause, and
given derivatives stay.
"""

from math import ceil

import numpy as np
from jaxtyping import Bool, Int

from ._trajectories import Trajectories, with_smoothed

CERTAIN = 20.0  # times the error of splines, by which given derivatives are off
FAR = 0.05  # share of the given derivatives by which no integrator in use is off
MOST_COMPARED = 20  # trajectories


def contradicted(
    data: Trajectories, variables: Int[np.ndarray, " entry"]
) -> Bool[np.ndarray, " entry"]:
    """Whether the given derivatives of an entry are, without doubt, not those of its states.

    `variables` says which variable an entry belongs to; all entries of one are treated alike.
    """
    few = data[:: ceil(len(data) / MOST_COMPARED)]
    _, own, error = _splines(few)
    apart, unsure, given = (
        np.bincount(variables, np.nansum(a**2, (0, 1)))
        for a in (own - few.derivatives, error, few.derivatives)
    )
    return ((apart > CERTAIN**2 * unsure) & (apart < FAR**2 * given))[variables]


def agreeing(data: Trajectories, variables: Int[np.ndarray, " entry"]) -> Trajectories:
    """The same trajectories, with derivatives of splines where the given ones are contradicted."""
    replaced = contradicted(data, variables)
    if not replaced.any():
        return data
    smoothed, own, _ = _splines(data)
    return with_smoothed(
        np.where(replaced, smoothed, data.smoothed),
        data,
        derivatives=np.where(replaced, own, data.derivatives),
    )


def _splines(data: Trajectories) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States and derivatives of splines, and the error of these, the same at all times.

    Trajectories too short to tell noise from signal keep what they have.
    """
    # On use: it loads much of SciPy.
    from ._derivatives import FEWEST_TO_SMOOTH, estimate_derivatives

    smoothed, own, error = data.smoothed.copy(), data.derivatives.copy(), np.zeros_like(data.states)
    times = np.broadcast_to(data.times, data.states.shape[:2])
    for i, n in enumerate(data.lengths):
        if n < FEWEST_TO_SMOOTH:
            continue
        try:
            estimate = estimate_derivatives(times[i, :n], data.states[i, :n])
        except ValueError:  # no spline can be put through these numbers: they contradict nothing
            continue
        smoothed[i, :n], own[i, :n] = estimate.states, estimate.derivatives
        error[i, :n] = estimate.error * np.sqrt(np.mean(estimate.derivatives**2, 0))
    return smoothed, own, error
