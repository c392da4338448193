"""Fields of position and time: what a physics-informed network is."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ._mlp import Linear
from ._random import normal, split


class TanhMLP(eqx.Module):
    """Tanh layers with a linear readout: inputs from `centre` in `lengths`, outputs in `units`."""

    layers: tuple[Linear, ...]
    readout: Linear
    centre: Float[Array, " in"]
    lengths: Float[Array, " in"]
    units: Float[Array, " out"]

    def __init__(
        self,
        centre: Float[Array, " in"],
        lengths: Float[Array, " in"],
        units: Float[Array, " out"],
        width: int,
        depth: int,
        *,
        key: PRNGKeyArray,
    ):
        """Build `depth` hidden layers of `width` units."""
        sizes = (len(centre),) + (width,) * depth
        *keys, last, bias_key = split(key, depth + 2)
        self.layers = tuple(
            Linear(a, b, key=k) for a, b, k in zip(sizes, sizes[1:], keys, strict=False)
        )
        # Biases spread the first units over the domain.
        spread = normal(bias_key, (width,))
        self.layers = eqx.tree_at(lambda layers: layers[0].bias, self.layers, spread)
        self.readout = Linear(width, len(units), key=last)
        fixed = (jnp.asarray(a, float) for a in (centre, lengths, units))
        self.centre, self.lengths, self.units = fixed

    def __call__(self, s: Float[Array, " in"]) -> Float[Array, " out"]:
        """The field at one point."""
        x = (s - self.centre) / self.lengths
        for layer in self.layers:
            x = jnp.tanh(layer(x))
        return self.units * self.readout(x)
