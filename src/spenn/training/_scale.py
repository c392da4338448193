"""The amplitude `w`, found on trajectories.

Spread is proportional to `w`, so one trained model tells how far off it is: the factor at which
intervals of a normal distribution around its mean hold as many values as they should. One factor
serves all variables, by the geometric mean of theirs. Most of the trajectories it is found on were
learned from; errors on others are larger, more than the spread is, by about the factor `UNSEEN`.

What the mean over realisations strays from the base grows with `w` as well. Where errors have
another cause than the model, such as the integrator that made the data, no spread of the model can
cover them: `w` then stays where the mean is still as good as the base. `docs/ablation.md` has the
figures behind the constants.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy  # its parts load on first use
from jaxtyping import Array, Float, Int

PILOT = 1e-2
RANGE = (1e-5, 0.3)
NEAR = 2.5
UNSEEN = 1.2
LARGEST_SHIFT = 0.3  # of the mean, in units of the base's error
LEVELS = np.array([0.9, 0.95])


class Judged(NamedTuple):
    """Forecasts of known trajectories, NaN after the end of a shorter one.

    Error of the base, how far the mean over realisations lies from the base, and spread.
    """

    error: Float[np.ndarray, "trajectory time entry"]
    shift: Float[np.ndarray, "trajectory time entry"]
    spread: Float[np.ndarray, "trajectory time entry"]


def correction(judged: Judged, variables: Int[np.ndarray, " entry"]) -> float:
    """Factor on `w` at which wide intervals hold as many values as they should, if not too large.

    `variables` says which variable an entry belongs to.
    """
    by_variable = [Judged(*(a[..., variables == i] for a in judged)) for i in np.unique(variables)]
    wanted = np.array([_wanted(one) for one in by_variable])
    most = min(_most(one) for one in by_variable)
    wanted = wanted[wanted > 0]
    typical = float(np.exp(np.log(wanted).mean())) if wanted.size else 0.0
    return max(min(UNSEEN * typical, most), float(np.finfo(np.float32).tiny))


def balanced(indices: Float[Array, "sample k"], mean: Float[Array, ""]) -> Float[Array, "sample k"]:
    """Indices stretched to the mean of their law.

    The mean of a few forecasts then strays by what perturbations do to it, not by chance.
    """
    return indices * (mean / jnp.mean(indices, 0))


def _wanted(judged: Judged) -> float:
    """Factor on the spread of one variable, from the reach of its errors at wide levels."""
    spread = np.maximum(judged.spread, np.finfo(np.float32).tiny)
    reach = np.nanquantile(np.abs(judged.error + judged.shift) / spread, LEVELS)
    return float(np.mean(reach / scipy.special.ndtri((1 + LEVELS) / 2)))


def _most(judged: Judged) -> float:
    """Factor at which the mean of one variable strays as far as it may.

    On the typical trajectory: a single one that the base gets wrong would hide the others.
    """
    error, shift = (np.sqrt(np.nanmean(a**2, (1, 2))) for a in (judged.error, judged.shift))
    strays = float(np.median(shift / np.maximum(error, np.finfo(np.float32).tiny)))
    return LARGEST_SHIFT / strays if strays > 0 else np.inf
