"""The amplitude `w`, found on held-out trajectories.

Spread is proportional to `w`, so one trained model tells how far off it is: the factor at which the
intervals of a normal distribution around its mean hold as many held-out values as they should.
"""

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

PILOT = 4e-3
RANGE = (1e-5, 5e-2)
NEAR = 2.5
LEVEL = 0.95


def correction(
    error: Float[np.ndarray, "trajectory time variable"],
    spread: Float[np.ndarray, "trajectory time variable"],
) -> float:
    """Factor on `w` at which `LEVEL` intervals hold that share of all held-out values."""
    spread = np.maximum(spread, np.finfo(spread.dtype).tiny)
    return float(np.quantile(np.abs(error) / spread, LEVEL) / norm.ppf((1 + LEVEL) / 2))
