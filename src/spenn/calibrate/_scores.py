"""Scores of one forecast trajectory against the truth; `vmap` or `lax.map` them over trajectories.

A field fits in as well: fold its grid points into the time axis. A sample that is not finite
makes the scores of the entries it touches not finite; drop diverged samples first. A truth of NaN
is missing: its own score is NaN, and it counts in no mean.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import rankdata
from jaxtyping import Array, Bool, Float

from ._sorting import sort_samples

# Rows per tile of pairwise distances: large enough for a fast matrix product, 1 MB in float32.
_TILE_ROWS = 512


class Score(NamedTuple):
    """The two estimators of `E|X - x| - E|X - X'| / 2` from N samples, lower is better.

    They differ in how the sum over all ordered pairs of samples is divided. With one sample there
    are no pairs, and both are the plain error.
    """

    plain: Float[Array, "*shape"]
    """Pairs over `2 N^2`: the score of the ensemble as it stands; favours large ensembles."""
    fair: Float[Array, "*shape"]
    """Pairs over `2 N (N - 1)`: unbiased for the distribution that the samples came from."""


def crps(
    samples: Float[Array, "sample time variable"], truth: Float[Array, "time variable"]
) -> Score:
    """Continuous ranked probability score of every entry, in O(N log N).

    With sorted samples the sum over ordered pairs is `2 sum_k k (N - k) (x_(k+1) - x_(k))`. The
    gaps are never negative and, between close floats, exact, so a spread far below the value
    itself loses no digits.

    **Returns:** a `Score` of arrays (time, variable).
    """
    count = samples.shape[0]
    error = jnp.mean(jnp.abs(samples - truth[None]), axis=0)
    gaps = jnp.diff(sort_samples(samples), axis=0)
    below = jnp.arange(1, count, dtype=samples.dtype) / count
    # As a product: XLA's CPU code for the same weighted sum is hundreds of times slower.
    half_spread = jnp.tensordot(below * (1 - below), gaps, 1, precision=jax.lax.Precision.HIGHEST)
    return _score(error, half_spread, count)


def energy_score(
    samples: Float[Array, "sample time variable"], truth: Float[Array, "time variable"]
) -> Score:
    """Energy score of the whole trajectory as one vector of `time x variable` entries.

    Entries count with their own magnitude, so scale the variables first if they differ in units.
    Distances come from a Gram matrix of the centred samples: one far below the spread is known to
    within `sqrt(eps)` of the spread only, which hardly shows in the mean over all pairs.

    **Returns:** a `Score` of scalars.
    """
    count = samples.shape[0]
    points = samples.reshape(count, -1)
    error = jnp.mean(jnp.linalg.norm(points - truth.reshape(1, -1), axis=1))
    return _score(error, _pair_distances(points) / count / count, count)


def _score(error: Array, half_spread: Array, count: int) -> Score:
    """Both estimators from the mean error and the sum over ordered pairs divided by `2 N^2`."""
    return Score(error - half_spread, error - half_spread * (count / max(count - 1, 1)))


@partial(jax.jit, static_argnames="tile_rows")  # or each call outside jit would compile the loop
def _pair_distances(
    points: Float[Array, "sample entry"], tile_rows: int = _TILE_ROWS
) -> Float[Array, ""]:
    """Sum of `|x_a - x_b|` over all pairs `a < b`, tile by tile above the diagonal."""
    count = points.shape[0]
    tiles = -(-count // tile_rows)
    rows = -(-count // tiles)
    # Distances are differences of squared norms: without centring they drown in rounding.
    centre = jnp.mean(points, axis=0, keepdims=True)

    def block(tile: Array) -> tuple[Array, Array, Array]:
        # The last tile may not be full; it starts early instead and skips what came before.
        start = jnp.minimum(tile * rows, count - rows)
        index = start + jnp.arange(rows)
        centred = jax.lax.dynamic_slice_in_dim(points, start, rows) - centre
        return centred, index, index // rows == tile

    def distances(pair: tuple[Array, Array]) -> Array:
        left, a, new_a = block(pair[0])
        right, b, new_b = block(pair[1])
        counted = (a[:, None] < b[None]) & new_a[:, None] & new_b[None]
        return jnp.sum(jnp.where(counted, _distances(left, right), 0))

    upper = np.triu_indices(tiles)
    return jnp.sum(jax.lax.map(distances, (jnp.asarray(upper[0]), jnp.asarray(upper[1]))))


def _distances(
    left: Float[Array, "a entry"], right: Float[Array, "b entry"]
) -> Float[Array, "a b"]:
    """Euclidean distances between rows from their Gram matrix."""
    # The default product rounds to 10 bits on recent GPUs.
    gram = jnp.matmul(left, right.T, precision=jax.lax.Precision.HIGHEST)
    squares = jnp.sum(left**2, axis=1)[:, None] + jnp.sum(right**2, axis=1)[None] - 2 * gram
    return jnp.sqrt(jnp.maximum(squares, 0))


def relative_l2_error(
    mean: Float[Array, "time variable"], truth: Float[Array, "time variable"]
) -> Float[Array, " variable"]:
    """`|mean - truth| / |truth|` per variable, norms over time; 0 or inf where truth is zero."""
    error = jnp.linalg.norm(mean - truth, axis=0)
    size = jnp.linalg.norm(truth, axis=0)
    return jnp.where(error > 0, error / size, 0)


def rank_histogram(
    samples: Float[Array, "sample time variable"], truth: Float[Array, "time variable"], bins: int
) -> Float[Array, "variable bin"]:
    """Where the truth ranks among the samples: fraction of entries in each of `bins` equal bins.

    The truth owns one of N + 1 ranks, or several when it ties with samples. Its unit of mass is
    spread evenly over them and shared between the bins they overlap, so that the histogram of a
    calibrated forecast is flat on average whether or not `bins` divides N + 1.
    """
    ranks = samples.shape[0] + 1
    below = jnp.sum(samples < truth[None], axis=0, dtype=samples.dtype)[..., None]
    ties = jnp.sum(samples == truth[None], axis=0, dtype=samples.dtype)[..., None]
    edges = jnp.linspace(0, ranks, bins + 1, dtype=samples.dtype)[None, None]
    mass = jnp.diff(jnp.clip((edges - below) / (ties + 1), 0, 1))
    return jnp.mean(mass, axis=0, where=~jnp.isnan(truth)[..., None])


def rank_correlation(
    error: Float[Array, "*batch variable"], spread: Float[Array, "*batch variable"]
) -> Float[Array, " variable"]:
    """Spearman's correlation of error and spread per variable, all other axes pooled.

    Ties share their average rank. A constant error or spread has nothing to correlate: 0.
    """
    left, right = _centred_ranks(error), _centred_ranks(spread)
    scale = jnp.sqrt(jnp.mean(left**2, axis=0) * jnp.mean(right**2, axis=0))
    # Constant columns have ranks of exactly zero, so only the division needs a guard.
    return jnp.mean(left * right, axis=0) / jnp.where(scale > 0, scale, 1)


def _centred_ranks(values: Float[Array, "*batch variable"]) -> Float[Array, "entry variable"]:
    """Ranks in (-1/2, 1/2) per variable, pooled over all other axes; their mean is 0."""
    pooled = values.reshape(-1, values.shape[-1])
    count = pooled.shape[0]
    ranks = rankdata(pooled, axis=0).astype(values.dtype)
    return (ranks - (count + 1) / 2) / count


def sharpness(
    lower: Float[Array, "*batch variable"],
    upper: Float[Array, "*batch variable"],
    known: Bool[Array, "*batch variable"] | None = None,
) -> Float[Array, " variable"]:
    """Mean interval width per variable, over all other axes, where the truth is known."""
    return jnp.mean(upper - lower, axis=tuple(range(lower.ndim - 1)), where=known)
