"""Random weights."""

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray


def normal(key: PRNGKeyArray, shape: tuple[int, ...], std: float = 1.0) -> Float[Array, "*shape"]:
    """Normal numbers of mean zero, a function of the key.

    Drawn by NumPy: a model has dozens of small arrays, and one compiled generator for each of their
    shapes would take seconds. Under a trace, where the key holds no number yet, JAX draws.
    """
    if isinstance(key, jax.core.Tracer):
        return std * jax.random.normal(key, shape)
    seed = np.asarray(jax.random.key_data(key)).tolist()
    return jnp.asarray(np.random.default_rng(seed).normal(0, std, shape), float)


def split(key: PRNGKeyArray, n: int) -> list[PRNGKeyArray]:
    """As `jax.random.split`, but one compiled program serves all numbers of keys."""
    return [jax.random.fold_in(key, i) for i in range(n)]
