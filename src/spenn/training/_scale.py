"""The prior scale `w`, found on held-out trajectories.

Spread is proportional to `w` when the epinet is trained anew at each `w`, so one pilot tells how
far off it is. The target is that two standard deviations hold 95 % of the entries of a variable, on
the geometric mean over variables: there is one `w` for all of them.
"""

import numpy as np
from jaxtyping import Float

PILOT = 1e-2
RANGE = (1e-4, 5e-2)
CLOSE = 1.2


def correction(
    error: Float[np.ndarray, "trajectory time variable"],
    spread: Float[np.ndarray, "trajectory time variable"],
) -> float:
    """Factor on `w` that gives the held-out trajectories their nominal coverage."""
    ratio = np.abs(error) / np.maximum(spread, np.finfo(spread.dtype).tiny)
    needed = np.quantile(ratio, 0.95, axis=(0, 1)) / 1.96
    return float(np.exp(np.mean(np.log(needed))))
