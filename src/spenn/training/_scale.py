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

import numpy as np
import scipy  # its parts load on first use
from jaxtyping import Float, Int

PILOT = 1e-2
RANGE = (1e-5, 0.3)
NEAR = 2.5
UNSEEN = 1.2
LARGEST_SHIFT = 0.3  # of the mean, in units of the base's error
LEVELS = np.array([0.9, 0.95])


class Judged(NamedTuple):
    """Forecasts of known trajectories, all records in one list.

    Error of the base, how far the mean of so many samples lies from the base, and spread.
    """

    error: Float[np.ndarray, "*record entry"]
    shift: Float[np.ndarray, "*record entry"]
    spread: Float[np.ndarray, "*record entry"]
    samples: int


def correction(judged: Judged, variables: Int[np.ndarray, " entry"]) -> float:
    """Factor on `w` at which wide intervals hold as many values as they should, if not too large.

    `variables` says which variable an entry belongs to.
    """
    error, shift, spread, samples = judged
    by_variable = [
        [a[..., variables == i] for a in (error, shift, spread)] for i in np.unique(variables)
    ]
    wanted = np.array([_wanted(e + d, s) for e, d, s in by_variable])
    most = min(_most(e, d, s, samples) for e, d, s in by_variable)
    wanted = wanted[wanted > 0]
    typical = float(np.exp(np.log(wanted).mean())) if wanted.size else 0.0
    return max(min(UNSEEN * typical, most), float(np.finfo(np.float32).tiny))


def _wanted(error, spread) -> float:
    """Factor on the spread of one variable, from the reach of its errors at wide levels."""
    reach = np.quantile(np.abs(error) / np.maximum(spread, np.finfo(np.float32).tiny), LEVELS)
    return float(np.mean(reach / scipy.special.ndtri((1 + LEVELS) / 2)))


def _most(error, shift, spread, samples: int) -> float:
    """Factor at which the mean of one variable strays as far as it may."""
    # The mean of a few samples is off by chance as well.
    chance = np.mean(spread**2) / samples
    strays = np.sqrt(max(np.mean(shift**2) - chance, 0))
    return float(LARGEST_SHIFT * np.sqrt(np.mean(error**2)) / strays) if strays > 0 else np.inf
