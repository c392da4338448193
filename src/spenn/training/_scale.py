"""The amplitude `w`, found on held-out trajectories.

Spread is proportional to `w`, so one trained model tells how far off it is: the factor at which the
intervals of a normal distribution around its mean hold as many held-out values as they should. One
factor serves all variables, so it is the geometric mean of what each of them asks for.
"""

import numpy as np
from jaxtyping import Float
from scipy.stats import gmean, norm

PILOT = 2e-3
RANGE = (1e-5, 5e-2)
NEAR = 2.5
LEVEL = 0.9


def correction(
    error: Float[np.ndarray, "trajectory time variable"],
    spread: Float[np.ndarray, "trajectory time variable"],
) -> float:
    """Factor on `w` at which `LEVEL` intervals hold that share of the held-out values."""
    tiny = np.finfo(np.float32).tiny
    ratio = np.abs(error) / np.maximum(spread, tiny)
    factors = np.quantile(ratio, LEVEL, (0, 1)) / norm.ppf((1 + LEVEL) / 2)
    return float(gmean(np.maximum(factors, tiny)))
