"""Multilayer perceptrons: for energy, entropy and the raw Poisson operator."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ._activation import product, softplus
from ._random import normal, split


class Linear(eqx.Module):
    """`weight @ x + bias`."""

    weight: Float[Array, "out in"]
    bias: Float[Array, " out"]

    def __init__(self, in_size: int, out_size: int, *, gain: float = 1.0, key: PRNGKeyArray):
        """Draw weights from a normal distribution of variance `gain**2 / in_size`, biases zero."""
        self.weight = normal(key, (out_size, in_size), gain / in_size**0.5)
        self.bias = jnp.zeros(out_size)

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        """Apply the layer to one input."""
        return product(self.weight, x) + self.bias


class MLP(eqx.Module):
    """Softplus layers with a linear readout, `x -> readout(hidden(x))`."""

    layers: tuple[Linear, ...]
    readout: Linear

    def __init__(
        self,
        in_size: int,
        out_size: int,
        width: int,
        depth: int,
        *,
        readout_gain: float = 1.0,
        key: PRNGKeyArray,
    ):
        """Build `depth` hidden layers of `width` units."""
        sizes = (in_size,) + (width,) * depth
        *keys, last = split(key, depth + 1)

        self.layers = tuple(
            Linear(a, b, key=k) for a, b, k in zip(sizes, sizes[1:], keys, strict=False)
        )
        self.readout = Linear(width, out_size, gain=readout_gain, key=last)

    def hidden(self, x: Float[Array, " in"]) -> Float[Array, " width"]:
        """Last hidden layer: the features that an epinet reads."""
        for layer in self.layers:
            x = softplus(layer(x))
        return x

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        """Apply the network to one input."""
        return self.readout(self.hidden(x))
