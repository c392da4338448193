"""Random models, and the two laws as numbers."""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from spenn.epinet import INDICES, Shape, attach
from spenn.experiment import RunConfig
from spenn.generic import (
    Blocks,
    Generic,
    KnownDissipation,
    KnownPoisson,
    KnownPotential,
    LearnedPoisson,
    learned_dissipation,
    learned_poisson,
    learned_potential,
    rows_without,
    without,
)


def randomised(make, *, seed=0, count=None, gain=(0.3, 3.0)):
    """What `make()` builds with all arrays drawn afresh: weights, biases, priors, everything.

    With `count`, that many along a leading axis, for `eqx.filter_vmap`. Each is multiplied by a
    gain drawn from the given range, so that some are far rougher than networks start. Scalars are
    one. Nothing is compiled.
    """
    rng = np.random.default_rng(seed)
    n = 1 if count is None else count
    gains = np.exp(rng.uniform(*np.log(gain), n))

    def draw(leaf):
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        if leaf.ndim == 0:
            values = np.ones(n)
        else:
            size = 0.5 if leaf.ndim == 1 else leaf.shape[-1] ** -0.5
            values = rng.normal(size=(n, *leaf.shape)) * size
            values *= gains.reshape(n, *(1,) * leaf.ndim)
        return jnp.asarray(values[0] if count is None else values, leaf.dtype)

    return jax.tree.map(draw, eqx.filter_eval_shape(make))


def _blocks(size, width, depth):
    keys = jax.random.split(jax.random.key(0), 4)
    makers = (
        learned_potential,
        learned_potential,
        partial(learned_poisson, size),
        partial(learned_dissipation, size),
    )
    return Blocks(*((m(size, width, depth, key=k),) for m, k in zip(makers, keys, strict=True)))


def random_blocks(size, width=8, depth=2, **options) -> Blocks:
    """Four learned blocks with random weights, see `randomised`."""
    return randomised(lambda: _blocks(size, width, depth), **options)


def random_spenn(
    size,
    width=8,
    depth=2,
    *,
    law="half-normal",
    dimension=3,
    amplitude=0.5,
    centred=True,
    **options,
):
    """An S-PENN with random weights in the base and in both branches of all epinets."""

    def make():
        return attach(
            _blocks(size, width, depth),
            INDICES[law](),
            Shape(dimension, 5, 5, 1),
            amplitude=1.0,
            centred=centred,
            key=jax.random.key(1),
        )

    model = randomised(make, **options)
    kept = jax.tree.map(
        lambda a, drawn: jnp.broadcast_to(a, drawn.shape), INDICES[law](), model.law
    )
    return eqx.tree_at(lambda m: (m.amplitude, m.law), model, (model.amplitude * amplitude, kept))


def known_blocks(units, energy, entropy, poisson, dissipation) -> Blocks:
    """A user's four functions."""
    return Blocks(
        (KnownPotential(energy, units),),
        (KnownPotential(entropy, units),),
        (KnownPoisson(poisson, units),),
        (KnownDissipation(dissipation, units),),
    )


class LawErrors(NamedTuple):
    """Backward errors of the two laws in units of the machine epsilon; entropy made counts as 0."""

    energy: Float[Array, ""]
    entropy: Float[Array, ""]


def law_errors(field: Generic, x: Float[Array, " d"]) -> LawErrors:
    """Residuals of both laws at one state, over the norms of the factors that enter them."""
    energy_slope, entropy_slope = jax.grad(field.energy)(x), jax.grad(field.entropy)(x)
    velocity = field.velocity(x)
    force = without(energy_slope, entropy_slope)
    slope, rest = (field.dissipation_slope(x, y) for y in (force, jnp.zeros_like(force)))
    operators = sum(_operator_norm(part, x, entropy_slope) for part in field.blocks.poisson)
    reversible = operators * _norm(energy_slope)
    eps = jnp.finfo(x.dtype).eps
    energy = jnp.abs(jnp.sum(energy_slope * velocity))
    entropy = jnp.maximum(-jnp.sum(entropy_slope * velocity), 0)
    return LawErrors(
        energy / (_norm(energy_slope) * (reversible + _norm(slope - rest))) / eps,
        entropy / (_norm(entropy_slope) * (reversible + _norm(slope) + _norm(rest))) / eps,
    )


def _operator_norm(part, x, entropy_slope):
    """Product of the norms of the factors of `L = Q^T L~ Q`; the norm of a known `L`."""
    if not isinstance(part, LearnedPoisson):
        return _norm(part.operator(x, entropy_slope))
    raw = part.raw(x)
    return _norm(rows_without(part.tensor, entropy_slope)) ** 2 * _norm(raw - raw.T)


def _norm(array):
    return jnp.sqrt(jnp.sum(array**2))


def assert_lawful(errors: LawErrors, bound=8):
    """Both laws, at every state, to within `bound` machine epsilons; NaN is not lawful."""
    for name, error in zip(errors._fields, errors, strict=True):
        worst = float(jnp.max(error))
        assert worst <= bound, f"{name} law broken by {worst} machine epsilons"


def central_difference(function, x, step=1e-5):
    """Gradient of a scalar function at a state, from its values alone."""
    units = step * jnp.eye(x.size, dtype=x.dtype)
    return jax.vmap(lambda u: (function(x + u) - function(x - u)) / (2 * step))(units)


def tiny(name, system):
    """A preset that trains for seconds: every part runs, nothing gets good."""
    config = replace(RunConfig(system), preset=name, samples=6, outside=2)
    fit = replace(
        config.fit,
        width=10,
        epinet_width=4,
        prior_width=4,
        dimension=3,
        steps=300,
        batch=128,
        epinet_steps=200,
        epinet_batch=128,
        races=2,
        race_steps=300,
        members=3,
        member_widths=(6, 8),
        member_steps=150,
        member_batch=64,
    )
    return replace(config, fit=fit)
