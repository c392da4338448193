"""Sorting samples, the one costly step of the scores and quantiles of single entries."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def sort_samples(samples: Float[Array, " sample *entry"]) -> Float[Array, " sample *entry"]:
    """Sort along the first axis, through integers in the order of the floats.

    On CPU, XLA compares integers four times faster than floats (0.20 s instead of 0.85 s for
    2000 samples of 3000 entries). Two calls on the same samples within one `jit` cost one sort.
    """
    integer = jnp.dtype(f"int{8 * samples.dtype.itemsize}")
    keys = _reverse_negative(jax.lax.bitcast_convert_type(samples, integer))
    ordered = _reverse_negative(jnp.sort(keys, axis=0))
    return jax.lax.bitcast_convert_type(ordered, samples.dtype)


def _reverse_negative(bits: Int[Array, "*shape"]) -> Int[Array, "*shape"]:
    """Flip all but the sign bit of negative numbers, whose bits grow with their magnitude."""
    return jnp.where(bits < 0, bits ^ jnp.iinfo(bits.dtype).max, bits)
