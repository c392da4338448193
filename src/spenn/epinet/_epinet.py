"""Epinets: small networks that turn one network into a family, one member per index `z`.

Each epinet has a learnable and a fixed prior branch and adds, at index `z`,

    w * unit * sum_n c_n (learn_n(h, z) + prior_n(h)),

where `h` holds the features and inputs of the network it belongs to, and `unit` is the size of that
network's own output. The coefficients `c` are `z - E[z]` where the sign is free, so that the family
is centred on the base, and `z >= 0` itself where convexity asks for it.

The amplitude `w` multiplies both branches. This is the paper's `learn + w * prior` with the
learnable branch measured in units of `w`; it makes `w` a knob that can be turned after training.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..networks import (
    MLP,
    PICNN,
    ConvexFeatures,
    normal,
    parallel_mlps,
    parallel_picnns,
    softplus,
    split,
)

Index = Float[Array, " k"]


class Shape(NamedTuple):
    """Components of the index, widths of the learnable and of each prior network, their depth."""

    dimension: int
    width: int
    prior_width: int
    depth: int


class Epinet(eqx.Module):
    """Perturbs an MLP by signed combinations of MLPs that read its last hidden layer and its input.

    The learnable branch is one network that also reads the index; the prior branch is one fixed
    network per component of the index, joined into a single block-diagonal one.
    """

    learn: MLP
    prior: MLP
    unit: Float[Array, ""]

    def __init__(self, in_size: int, out_size: int, shape: Shape, *, key: PRNGKeyArray):
        """Build an epinet that reads `in_size` features."""
        dimension, width, prior_width, depth = shape
        learn_key, *prior_keys = split(key, dimension + 1)
        # The learnable readout starts at zero: training starts from the prior alone.
        self.learn = MLP(
            in_size + dimension, dimension * out_size, width, depth, readout_gain=0.0, key=learn_key
        )
        self.prior = parallel_mlps(
            [MLP(in_size, out_size, prior_width, depth, key=k) for k in prior_keys]
        )
        self.unit = jnp.ones(())

    @classmethod
    def of(cls, base: MLP, shape: Shape, *, key: PRNGKeyArray) -> "Epinet":
        """The epinet of an MLP: it reads the last hidden layer and the input."""
        out_size, base_width = base.readout.weight.shape
        in_size = base_width + base.layers[0].weight.shape[1]
        return cls(in_size, out_size, shape, key=key)

    def __call__(
        self, features: Float[Array, " features"], coefficients: Index
    ) -> Float[Array, " out"]:
        """Perturbation, in units of the amplitude."""
        learnt = self.learn(jnp.concatenate([features, coefficients]))
        fixed = self.prior(features)
        size = coefficients.size
        branches = (learnt + fixed).reshape(size, -1)
        return self.unit * jnp.sum(branches * coefficients[:, None], 0)


class PerturbedMLP(eqx.Module):
    """An MLP with its epinet at one index: again a function of one input."""

    base: MLP
    epinet: Epinet
    coefficients: Index
    amplitude: Float[Array, ""]

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        """Apply the perturbed network to one input."""
        hidden = self.base.hidden(x)
        shift = self.epinet(jnp.concatenate([hidden, x]), self.coefficients)
        return self.base.readout(hidden) + self.amplitude * shift


class ConvexEpinet(eqx.Module):
    """Perturbs a PICNN by non-negative combinations of PICNNs, and by a positive gain on itself.

    Convex terms with `z >= 0` can only add dissipation, and add it where the base has none. The
    gain on the base, about `1 + w (c . g(x) + z . g)` and never negative, is free of that: convex
    for every `g`, it lets a realisation dissipate less as well as more, at every state, and nowhere
    else than the base does.
    """

    learn: PICNN
    prior: PICNN
    unit: Float[Array, ""]
    local_gain: Epinet
    gain: Index

    def __init__(self, base: PICNN, shape: Shape, *, key: PRNGKeyArray):
        """Build an epinet for a network."""
        dimension, width, prior_width, depth = shape
        learn_key, gain_key, *prior_keys = split(key, dimension + 2)
        convex_size = base.layers[0].slopes.weight.shape[1]
        condition_size = base.mix_gate.weight.shape[1] + base.layers[0].shift.weight.shape[1]

        def network(extra, out_size, width, gain, key):
            return PICNN(
                condition_size + extra,
                convex_size,
                out_size,
                width,
                depth,
                monotone_size=base.mix.root.shape[1],
                readout_gain=gain,
                key=key,
            )

        self.learn = network(dimension, dimension, width, 1e-3, learn_key)
        self.prior = parallel_picnns([network(0, 1, prior_width, 1.0, k) for k in prior_keys])
        self.unit = jnp.ones(())
        self.local_gain = Epinet(condition_size, 1, shape, key=gain_key)
        self.gain = jnp.zeros(dimension)

    def __call__(
        self,
        condition: Float[Array, " condition"],
        y: Float[Array, " convex"],
        convex: Float[Array, " width"],
        index: Index,
    ) -> Float[Array, " 1"]:
        """Perturbation, in units of the amplitude; refuses a negative index."""
        learnt = self.learn(jnp.concatenate([condition, index]), y, convex)
        fixed = self.prior(condition, jnp.tile(y, index.size), convex)
        return self.unit * jnp.sum((learnt + fixed) * index, keepdims=True)


def condition_of(features: ConvexFeatures, x: Float[Array, " in"]) -> Float[Array, " condition"]:
    """What conditions the epinet of a PICNN: its free path and its input."""
    return jnp.concatenate([features.condition, x])


class PerturbedPICNN(eqx.Module):
    """A PICNN with its epinet at one index: again convex in `y`."""

    base: PICNN
    epinet: ConvexEpinet
    index: Index
    coefficients: Index
    amplitude: Float[Array, ""]

    def __call__(self, x: Float[Array, " in"], y: Float[Array, " convex"]) -> Float[Array, " 1"]:
        """Apply the perturbed network to one state and one conjugate variable."""
        features = self.base.features(x, y)
        condition = condition_of(features, x)
        shift = self.epinet(condition, y, features.convex, self.index)
        change = self.epinet.local_gain(condition, self.coefficients)
        change = change + jnp.sum(self.epinet.gain * self.index)
        gain = _positive(self.amplitude * change)
        return gain * self.base.readout(features) + self.amplitude * shift


def _positive(change: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """`1 + change` for small changes, positive for all, and without the exponential's overflow."""
    at_zero = 1 - math.exp(-1)  # slope of softplus where its value is one
    return softplus(math.log(math.e - 1) + change / at_zero)


class GlobalEpinet(eqx.Module):
    """Perturbs an array that no input reaches: `sum_n c_n (learn_n + prior_n)`, linear in `c`."""

    learn: Float[Array, "k *shape"]
    prior: Float[Array, "k *shape"]
    unit: Float[Array, ""]

    def __init__(self, base: Float[Array, "*shape"], dimension: int, *, key: PRNGKeyArray):
        """Attach an epinet for an index of `dimension` components to an array."""
        self.learn = jnp.zeros((dimension, *base.shape), base.dtype)
        self.prior = normal(key, (dimension, *base.shape)).astype(base.dtype)
        self.unit = jnp.ones((), base.dtype)

    @classmethod
    def solved(cls, branches: Float[Array, "k *shape"]) -> "GlobalEpinet":
        """The epinet with these branches, found in closed form rather than by training."""
        epinet = cls(branches[0], len(branches), key=jax.random.key(0))
        parts = (branches, jnp.zeros_like(branches))
        return eqx.tree_at(lambda e: (e.learn, e.prior), epinet, parts)

    def __call__(self, coefficients: Index) -> Float[Array, "*shape"]:
        """Perturbation, in units of the amplitude."""
        branches = self.learn + self.prior
        return self.unit * jnp.tensordot(
            coefficients, branches, 1, precision=jax.lax.Precision.HIGHEST
        )
