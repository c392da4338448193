"""Reference distributions of the epistemic index `z`."""

import abc
import math
from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray


class AbstractIndex(eqx.Module):
    """Distribution of one component of the index; components are independent."""

    mean: eqx.AbstractVar[Float[Array, ""]]

    @abc.abstractmethod
    def draw(self, shape: tuple[int, ...], *, key: PRNGKeyArray) -> Float[Array, "*shape"]:
        """Independent draws."""


def _half_normal(shape, key):
    """Absolute value of a standard normal variable."""
    return jnp.abs(jax.random.normal(key, shape))


def _uniform(shape, key):
    """Uniform on [0, 5]."""
    return jax.random.uniform(key, shape, maxval=5.0)


def _exponential(shape, key):
    """Unit exponential truncated to [0, 5], by inversion of its distribution function."""
    mass = -jnp.expm1(-5.0)
    return -jnp.log1p(-mass * jax.random.uniform(key, shape))


LAWS = {
    "half-normal": (_half_normal, math.sqrt(2 / math.pi)),
    "uniform": (_uniform, 2.5),
    "exponential": (_exponential, 1 - 5 / math.expm1(5.0)),
}


class NonNegative(AbstractIndex):
    """One of the three laws of the paper: half-normal, uniform or exponential.

    Which one is data, not structure, so that one compiled program serves all of them.
    """

    number: Int[Array, ""]
    mean: Float[Array, ""]

    def __init__(self, name: str):
        """Choose a law by its name."""
        self.number = jnp.asarray(list(LAWS).index(name), jnp.int32)
        self.mean = jnp.asarray(LAWS[name][1], float)

    @eqx.filter_jit
    def draw(self, shape, *, key):
        """Independent draws."""
        return jnp.stack([draw(shape, key) for draw, _ in LAWS.values()])[self.number]


class Normal(AbstractIndex):
    """Standard normal: for perturbations of either sign, which convexity does not allow."""

    mean: Float[Array, ""]

    def __init__(self):
        """There is one only."""
        self.mean = jnp.zeros(())

    def draw(self, shape, *, key):
        """Independent draws."""
        return jax.random.normal(key, shape)


INDICES: dict[str, Callable[[], NonNegative]] = {name: partial(NonNegative, name) for name in LAWS}
