"""The amplitude `w`, found on trajectories.

Spread is proportional to `w`, so one trained model tells how far off it is: the factor at which
intervals of a normal distribution around its mean hold as many values as they should. One factor
serves all variables, so their values are counted together.
"""

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

PILOT = 2e-3
RANGE = (1e-5, 5e-2)
NEAR = 2.5
LEVELS = np.array([0.9, 0.95])


def correction(
    error: Float[np.ndarray, "trajectory time variable"],
    spread: Float[np.ndarray, "trajectory time variable"],
) -> float:
    """Factor on `w` at which wide intervals hold as many of the values as they should."""
    tiny = np.finfo(np.float32).tiny
    reach = np.quantile(np.abs(error) / np.maximum(spread, tiny), LEVELS)
    return float(max(np.mean(reach / norm.ppf((1 + LEVELS) / 2)), tiny))
