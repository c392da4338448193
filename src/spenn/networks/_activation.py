"""The one activation of the library, and full-precision products."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


@jax.custom_jvp
def softplus(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """`log(1 + exp(x))`: smooth, convex, increasing; its slope is the logistic function.

    `jax.nn.softplus` goes through `logaddexp`, whose guards for infinities and NaN cost as much as
    the function. Written out, the value and the slope share one exponential.
    """
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


@softplus.defjvp
def _softplus_jvp(primals, tangents):
    (x,), (tangent,) = primals, tangents
    return softplus(x), jax.nn.sigmoid(x) * tangent


def product(
    matrix: Float[Array, "rows columns"], vector: Float[Array, " columns"]
) -> Float[Array, " rows"]:
    """`matrix @ vector` in full precision.

    The default product of float32 numbers on a tensor-core GPU keeps 10 bits of them, which costs
    the learned dynamics two digits. Precision is asked for here, once, and not by a global setting.
    """
    return jnp.dot(matrix, vector, precision=lax.Precision.HIGHEST)
