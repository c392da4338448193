"""Partially input-convex networks (PICNN): for dissipation potentials."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ._activation import product, softplus
from ._mlp import Linear


class NonNegative(eqx.Module):
    """A matrix that cannot be negative: the elementwise square of a free one."""

    root: Float[Array, "out in"]

    def __init__(self, in_size: int, out_size: int, *, gain: float = 1.0, key: PRNGKeyArray):
        """Draw entries of mean `gain / in_size`, so that a sum over positive inputs is O(gain)."""
        self.root = jax.random.normal(key, (out_size, in_size)) * (gain / in_size) ** 0.5

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        """Apply the matrix to one input."""
        return product(self.root**2, x)


class ConvexFeatures(eqx.Module):
    """What an epinet may read of a PICNN: a free path and a path that is convex in `y`."""

    condition: Float[Array, " width"]
    convex: Float[Array, " width"]


class PICNN(eqx.Module):
    """`f(x, y, m)`: convex in `y`, convex and non-decreasing in `m`, anything in `x`.

    With softplus `s`, non-negative matrices `W`, `V`, and free matrices elsewhere,

        u  = s(A x)
        c1 = s(Y1 (y * G1 x) + V m + K1 x)
        c2 = s(W2 (c1 * s(E2 u)) + Y2 (y * G2 u) + K2 u)
        f  = W3 (c2 * s(E3 u))

    (biases left out). Non-negative combinations and non-decreasing convex functions of convex
    functions are convex, so every component of `f` is convex in `y` whatever the free weights are.
    The input `m` lets one PICNN read the convex features of another and stay convex in `y`.
    """

    condition: Linear
    gate_1: Linear
    gate_2: Linear
    slopes_1: Linear
    slopes_2: Linear
    shift_1: Linear
    shift_2: Linear
    monotone: NonNegative | None
    mix_2: NonNegative
    mix_3: NonNegative
    mix_gate_2: Linear
    mix_gate_3: Linear

    def __init__(
        self,
        in_size: int,
        convex_size: int,
        out_size: int,
        width: int,
        *,
        monotone_size: int = 0,
        readout_gain: float = 1.0,
        key: PRNGKeyArray,
    ):
        """Build two convex hidden layers of `width` units."""
        keys = iter(jax.random.split(key, 12))
        self.condition = Linear(in_size, width, key=next(keys))
        self.gate_1 = _open(Linear(in_size, convex_size, key=next(keys)))
        self.gate_2 = _open(Linear(width, convex_size, key=next(keys)))
        self.slopes_1 = Linear(convex_size, width, key=next(keys))
        self.slopes_2 = Linear(convex_size, width, key=next(keys))
        self.shift_1 = Linear(in_size, width, key=next(keys))
        self.shift_2 = Linear(width, width, key=next(keys))
        self.monotone = (
            NonNegative(monotone_size, width, key=next(keys)) if monotone_size else None
        )
        self.mix_2 = NonNegative(width, width, key=next(keys))
        self.mix_3 = NonNegative(width, out_size, gain=readout_gain, key=next(keys))
        self.mix_gate_2 = Linear(width, width, key=next(keys))
        self.mix_gate_3 = Linear(width, width, key=next(keys))

    def features(
        self,
        x: Float[Array, " in"],
        y: Float[Array, " convex"],
        monotone: Float[Array, " monotone"] | None = None,
    ) -> ConvexFeatures:
        """The free path `u` and the convex path `c2`."""
        u = softplus(self.condition(x))
        rising = 0.0 if self.monotone is None else self.monotone(monotone)
        c1 = softplus(self.slopes_1(y * self.gate_1(x)) + rising + self.shift_1(x))
        c2 = softplus(
            self.mix_2(c1 * softplus(self.mix_gate_2(u)))
            + self.slopes_2(y * self.gate_2(u))
            + self.shift_2(u)
        )
        return ConvexFeatures(u, c2)

    def readout(self, features: ConvexFeatures) -> Float[Array, " out"]:
        """`W3 (c2 * s(E3 u))`."""
        return self.mix_3(features.convex * softplus(self.mix_gate_3(features.condition)))

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
    return eqx.tree_at(
        lambda g: (g.weight, g.bias), gate, (0.3 * gate.weight, jnp.ones_like(gate.bias))
    )
