"""The amplitude `w`, found on trajectories.

Spread is proportional to `w`, so one trained model tells how far off it is: the factor at which
intervals of a normal distribution around its mean hold as many values as they should. One factor
serves all variables, so their values are counted together. Most of the trajectories it is found on
were learned from; errors on others are larger, more than the spread is, by about the factor
`UNSEEN` (`docs/ablation.md`).
"""

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

PILOT = 1e-2
RANGE = (1e-5, 0.3)
NEAR = 2.5
UNSEEN = 1.4
LEVELS = np.array([0.9, 0.95])


def correction(
    error: Float[np.ndarray, "trajectory time variable"],
    spread: Float[np.ndarray, "trajectory time variable"],
) -> float:
    """Factor on `w` at which wide intervals hold as many of the values as they should."""
    tiny = np.finfo(np.float32).tiny
    reach = np.quantile(np.abs(error) / np.maximum(spread, tiny), LEVELS)
    return float(max(UNSEEN * np.mean(reach / norm.ppf((1 + LEVELS) / 2)), tiny))
