"""Linear combinations of variables that never change, such as atoms in a closed vessel.

A model whose operators act on all other directions, and on those alone, keeps the combinations in
every realisation.
"""

import numpy as np
import scipy  # its parts load on first use
from jaxtyping import Float

ROUNDING = 1e-12


def moving_directions(conserved: Float[np.ndarray, "c d"]) -> Float[np.ndarray, "d moving"]:
    """Orthonormal basis of the directions `v` with `conserved @ v = 0`.

    Variables that are in no combination stay axes of the basis.
    """
    size = conserved.shape[1]
    if not np.all(np.isfinite(conserved)):
        raise ValueError("the coefficients of conserved combinations must be finite numbers.")
    rows = scipy.linalg.orth(conserved.T).T
    if len(rows) == size:
        raise ValueError(f"if {size} combinations of {size} variables are conserved, none moves.")
    others = np.eye(size) - rows.T @ rows
    basis, *_ = scipy.linalg.qr(others, pivoting=True)
    basis = np.where(np.abs(basis) > ROUNDING, basis, 0.0)
    return basis[:, : size - len(rows)]
