"""Where the four blocks meet: slopes in, admissible velocity out.

Everything here is a pure function of *given* slopes. Exact gradients, discrete gradients, ensemble
members and dropout masks all inherit both laws from these few lines.

Inner products are written as multiply-and-sum: for one state they are tiny, and batched over many
states the compiler fuses them into the neighbouring operations.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..networks import product

Vector = Float[Array, " d"]
Matrix = Float[Array, "d d"]


def without(direction: Vector, vector: Vector) -> Vector:
    """Part of `vector` orthogonal to `direction`; the vector itself where the direction vanishes.

    Projecting twice halves what rounding leaves along `direction`. No epsilon enters the quotient:
    it would break the law it is meant to protect.
    """
    # The result does not depend on the length of the direction, its square may over- or underflow.
    length = lax.stop_gradient(jnp.max(jnp.abs(direction)))
    flat = length == 0
    direction = direction / jnp.where(flat, 1, length)
    inverse = 1 / jnp.where(flat, 1, jnp.sum(direction**2))
    for _ in range(2):
        vector = vector - direction * (jnp.sum(direction * vector) * inverse)
    return vector


def rows_without(tensor: Float[Array, "d d d"], vector: Vector) -> Matrix:
    """Matrix `Q` with the rows `(B_i - B_i^T) v`: as each is a skew matrix times `v`, `Q v = 0`."""
    skew = tensor - jnp.swapaxes(tensor, -1, -2)
    return product(skew, vector)


def above_diagonal(entries: Float[Array, " pairs"], size: int) -> Matrix:
    """Matrix with these entries above its diagonal, row by row, and zeros elsewhere.

    One direction makes no pair: its one entry stands alone, and `W - W^T` is zero.
    """
    rows = jnp.split(entries, np.cumsum(np.arange(size - 1, 0, -1)))
    return jnp.stack([jnp.pad(row, (size - row.size, 0)) for row in rows])


def degenerate_operator(raw: Matrix, q: Matrix) -> Matrix:
    """`L = Q^T (W - W^T) Q`: `L DS = 0` if the rows of `Q` are `(B_i - B_i^T) DS`.

    Formed as the difference of a matrix and its transpose, hence skew to the last bit.
    """
    half = product(q.T, product(raw, q))
    return half - half.T


def restricted_operator(operator: Matrix, entropy_slope: Vector) -> Matrix:
    """A known skew operator with the direction `DS` taken out on both sides.

    Nothing changes where `L DS = 0` holds already; elsewhere this is the nearest operator that
    cannot produce entropy. The skew part of the given matrix is what is used.
    """
    rows = jax.vmap(without, (None, 0))(entropy_slope, operator)
    half = jax.vmap(without, (None, 1), 1)(entropy_slope, rows) / 2
    return half - half.T


def irreversible(
    energy_slope: Vector,
    entropy_slope: Vector,
    dissipation_slope: Callable[[Vector], Vector],
) -> Vector:
    """`D Xi(x, DS)` of the potential `Xi(x, x*) = Xi~(x, P x*)` less its value and slope at zero.

    `P` takes out the direction `DE`, so no energy is made; `Xi~` is convex, so entropy is.
    """
    force = without(energy_slope, entropy_slope)
    slope, rest = jax.vmap(dissipation_slope)(jnp.stack([force, jnp.zeros_like(force)]))
    return without(energy_slope, slope - rest)


def velocity(
    energy_slope: Vector,
    entropy_slope: Vector,
    poisson: Callable[[Vector], Vector],
    dissipation_slope: Callable[[Vector], Vector],
) -> Vector:
    """`dx/dt = L DE + D Xi(x, DS)`.

    `poisson` is the action `v -> L v` of an operator with `L DS = 0`, `dissipation_slope` the map
    `y -> D_y Xi~(x, y)` of a potential that is convex in `y`.
    """
    return poisson(energy_slope) + irreversible(energy_slope, entropy_slope, dissipation_slope)
