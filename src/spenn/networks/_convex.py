"""Partially input-convex networks (PICNN): for dissipation potentials."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ._activation import product, softplus
from ._mlp import Linear
from ._random import normal, split


class NonNegative(eqx.Module):
    """A matrix that cannot be negative: the elementwise square of a free one."""

    root: Float[Array, "out in"]

    def __init__(self, in_size: int, out_size: int, *, gain: float = 1.0, key: PRNGKeyArray):
        """Draw entries of mean `gain / in_size`, so that a sum over positive inputs is O(gain)."""
        self.root = normal(key, (out_size, in_size), (gain / in_size) ** 0.5)

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        """Apply the matrix to one input."""
        return product(self.root**2, x)


class ConvexLayer(eqx.Module):
    """`c = s(W (c_ * s(E u)) + Y (y * G u) + K u)` with `W >= 0`, from the layer `c_` before it.

    The first layer has no gate `s(E u)`, and no `W` either unless there are convex inputs.
    """

    mix: NonNegative | None
    mix_gate: Linear | None
    slopes: Linear
    slopes_gate: Linear
    shift: Linear

    def __init__(
        self,
        condition_size: int,
        convex_size: int,
        previous_size: int,
        width: int,
        *,
        first: bool,
        key: PRNGKeyArray,
    ):
        """Build a layer of `width` units."""
        mix, mix_gate, slopes, slopes_gate, shift = split(key, 5)
        self.mix = NonNegative(previous_size, width, key=mix) if previous_size else None
        self.mix_gate = None if first else Linear(condition_size, previous_size, key=mix_gate)
        self.slopes = Linear(convex_size, width, key=slopes)
        self.slopes_gate = _open(Linear(condition_size, convex_size, gain=0.3, key=slopes_gate))
        self.shift = Linear(condition_size, width, key=shift)

    def __call__(self, u, y, previous):
        """One layer of the convex path."""
        total = self.slopes(y * self.slopes_gate(u)) + self.shift(u)
        if self.mix is not None:
            gate = 1 if self.mix_gate is None else softplus(self.mix_gate(u))
            total = total + self.mix(previous * gate)
        return softplus(total)


class ConvexFeatures(NamedTuple):
    """What an epinet may read of a PICNN: a free path, and a path that is convex in `y`."""

    condition: Float[Array, " condition"]
    convex: Float[Array, " width"]


class PICNN(eqx.Module):
    """`f(x, y, m)`: convex in `y`, convex and non-decreasing in `m`, anything in `x`.

    A free path `u_0 = x`, `u_i = s(A_i u_{i-1})` conditions a convex path that starts from `c_0 =
    m` and has one `ConvexLayer` per unit of depth; the output is `W (c * s(E u))` with `W >= 0`.
    Non-negative combinations, and convex non-decreasing functions, of convex functions are convex:
    every output is convex in `y` whatever the free weights are. The input `m` lets one PICNN read
    the convex features of another.
    """

    condition: tuple[Linear, ...]
    layers: tuple[ConvexLayer, ...]
    mix: NonNegative
    mix_gate: Linear

    def __init__(
        self,
        in_size: int,
        convex_size: int,
        out_size: int,
        width: int,
        depth: int,
        *,
        monotone_size: int = 0,
        readout_gain: float = 1.0,
        key: PRNGKeyArray,
    ):
        """Build `depth` convex hidden layers of `width` units."""
        condition_key, layer_key, mix_key, gate_key = split(key, 4)
        conditions = (in_size,) + (width,) * (depth - 1)
        previous = (monotone_size,) + (width,) * (depth - 1)
        self.condition = tuple(
            Linear(size, width, key=k)
            for size, k in zip(conditions[:-1], split(condition_key, depth), strict=False)
        )
        self.layers = tuple(
            ConvexLayer(u, convex_size, c, width, first=i == 0, key=k)
            for i, (u, c, k) in enumerate(
                zip(conditions, previous, split(layer_key, depth), strict=True)
            )
        )
        self.mix = NonNegative(width, out_size, gain=readout_gain, key=mix_key)
        self.mix_gate = Linear(conditions[-1], width, key=gate_key)

    def features(
        self,
        x: Float[Array, " in"],
        y: Float[Array, " convex"],
        monotone: Float[Array, " monotone"] | None = None,
    ) -> ConvexFeatures:
        """The ends of the free and of the convex path."""
        u, c = x, self.layers[0](x, y, monotone)
        for condition, layer in zip(self.condition, self.layers[1:], strict=True):
            u = softplus(condition(u))
            c = layer(u, y, c)
        return ConvexFeatures(u, c)

    def readout(self, features: ConvexFeatures) -> Float[Array, " out"]:
        """`W (c * s(E u))`."""
        return self.mix(features.convex * softplus(self.mix_gate(features.condition)))

    def __call__(
        self,
        x: Float[Array, " in"],
        y: Float[Array, " convex"],
        monotone: Float[Array, " monotone"] | None = None,
    ) -> Float[Array, " out"]:
        """Apply the network to one state and one conjugate variable."""
        return self.readout(self.features(x, y, monotone))


def _open(gate: Linear) -> Linear:
    """Start a gate at one, so that the network begins as a plain convex one."""
    return eqx.tree_at(lambda g: g.bias, gate, jnp.ones_like(gate.bias))
