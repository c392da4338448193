"""Reference distributions of the epistemic index `z`."""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


class AbstractIndex(eqx.Module):
    """Distribution of one component of the index; components are independent."""

    mean: eqx.AbstractVar[float]

    @abc.abstractmethod
    def draw(self, shape: tuple[int, ...], *, key: PRNGKeyArray) -> Float[Array, "*shape"]:
        """Independent draws."""


class HalfNormal(AbstractIndex):
    """Absolute value of a standard normal variable."""

    mean: float = math.sqrt(2 / math.pi)

    def draw(self, shape, *, key):
        """Independent draws."""
        return jnp.abs(jax.random.normal(key, shape))


class Uniform(AbstractIndex):
    """Uniform on [0, 5]."""

    mean: float = 2.5

    def draw(self, shape, *, key):
        """Independent draws."""
        return jax.random.uniform(key, shape, maxval=5.0)


class Exponential(AbstractIndex):
    """Unit exponential truncated to [0, 5], by inversion of its distribution function."""

    mean: float = 1 - 5 / math.expm1(5.0)

    def draw(self, shape, *, key):
        """Independent draws."""
        mass = -jnp.expm1(-5.0)
        return -jnp.log1p(-mass * jax.random.uniform(key, shape))


class Normal(AbstractIndex):
    """Standard normal: for perturbations of either sign, which convexity does not allow."""

    mean: float = 0.0

    def draw(self, shape, *, key):
        """Independent draws."""
        return jax.random.normal(key, shape)


INDICES = {"half-normal": HalfNormal, "uniform": Uniform, "exponential": Exponential}
