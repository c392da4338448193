"""Linear combinations of variables that never change, as far as trajectories tell."""

import numpy as np
import scipy  # its parts load on first use
from jaxtyping import Float

from ._trajectories import Trajectories

EXACT = 1e-7  # of a combination's terms: changes below this are rounding
LARGEST_TOLERANCE = 1e-2
NOISE_FACTOR = 3
MOST_RECORDS = 20_000


def conserved_combinations(
    data: Trajectories, noise: Float[np.ndarray, " d"]
) -> Float[np.ndarray, "c d"]:
    """Coefficients of combinations whose change since the first record is none, or is noise.

    They are the directions in which the changes of all trajectories together have no extent, by a
    singular value decomposition, combined such that each has as few variables as possible and a
    largest coefficient of one.
    """
    changes = data.states - data.states[:, :1]
    changes = changes[np.isfinite(changes[..., 0])]
    changes = changes[:: 1 + len(changes) // MOST_RECORDS]
    size = np.sqrt(np.mean(changes**2, axis=0))
    moving = np.flatnonzero(size > 0)
    if len(moving) < 2:
        return np.zeros((0, len(size)))
    scaled = changes[:, moving] / size[moving]
    _, extent, directions = np.linalg.svd(np.linalg.qr(scaled, mode="r"))
    extent = np.pad(extent, (0, len(moving) - len(extent))) / np.sqrt(len(scaled))
    tolerance = EXACT + NOISE_FACTOR * np.max(noise[moving] / size[moving])
    still = directions[extent < min(tolerance, LARGEST_TOLERANCE)]
    found = np.zeros((len(still), len(size)))
    if len(still):
        found[:, moving] = _simplest(still) / size[moving]
        found /= np.abs(found).max(axis=1, keepdims=True)
    return found


def _simplest(rows: Float[np.ndarray, "c d"]) -> Float[np.ndarray, "c d"]:
    """Other rows that span the same space, with as many zeros as elimination can make."""
    pivots = np.asarray(scipy.linalg.qr(rows, mode="r", pivoting=True)[-1])
    rows = np.linalg.solve(rows[:, pivots[: len(rows)]], rows)
    return np.where(np.abs(rows) < LARGEST_TOLERANCE, 0.0, rows)
