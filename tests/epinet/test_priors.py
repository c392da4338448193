"""After scaling, every prior is as large as the block it perturbs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spenn.epinet import CONVEX_SHARE, scale_priors
from spenn.generic import Generic, without
from support import random_spenn

SIZE, DIMENSION = 4, 3
STATES = np.random.default_rng(0).normal(size=(50, SIZE))


@pytest.fixture(scope="module")
def models():
    """Before and after."""
    with jax.enable_x64(True):
        model = random_spenn(SIZE)
        return model, eqx.filter_jit(scale_priors)(model, jnp.asarray(STATES))


def _rms(values, axis=None):
    return np.sqrt(np.mean(np.asarray(values) ** 2, axis))


def _without_local_gain(model):
    where = lambda m: m.epinets.dissipation[0].local_gain  # noqa: E731
    return eqx.tree_at(where, model, jax.tree.map(jnp.zeros_like, where(model)))


def _prior_at(model, n):
    """The family with the prior of component `n` as its only perturbation, in one unit of `w`."""
    learn = lambda m: [  # noqa: E731
        e.learn
        for e in (
            m.epinets.energy[0],
            m.epinets.entropy[0],
            m.epinets.poisson[0].network,
            m.epinets.poisson[0].tensor,
            m.epinets.dissipation[0],
        )
    ]
    silent = jax.tree.map(jnp.zeros_like, learn(model))
    model = eqx.tree_at(learn, model, silent)
    model = _without_local_gain(model)
    model = eqx.tree_at(lambda m: m.epinets.dissipation[0].gain, model, jnp.zeros(DIMENSION))
    model = eqx.tree_at(lambda m: m.amplitude, model, jnp.ones(()))
    mean = model.law.mean
    return (
        model.realise(mean + jnp.eye(DIMENSION)[n]),
        model.realise(jnp.eye(DIMENSION)[n]),
    )


@pytest.mark.parametrize("n", range(DIMENSION))
def test_sizes(x64, models, n):
    _, model = models
    shifted, plain = _prior_at(model, n)
    base, states = Generic(model.base), jnp.asarray(STATES)

    for name in ("energy", "entropy"):
        slopes = [jax.jit(jax.vmap(jax.grad(getattr(f, name))))(states) for f in (shifted, base)]
        np.testing.assert_allclose(_rms(slopes[0] - slopes[1]), _rms(slopes[1]), rtol=1e-9)

    raw = [jax.vmap(f.blocks.poisson[0].network)(states) for f in (shifted, base)]
    np.testing.assert_allclose(_rms(raw[0] - raw[1]), _rms(raw[1]), rtol=1e-9)

    entries = base.blocks.poisson[0].tensor
    branch = model.epinets.poisson[0].tensor
    np.testing.assert_allclose(_rms(branch.unit * branch.prior[n]), _rms(entries), rtol=1e-9)

    energy, entropy = (jax.vmap(jax.grad(f))(states) for f in (base.energy, base.entropy))
    forces = jax.vmap(without)(energy, entropy)

    def difference(field):
        slope = jax.jit(jax.vmap(field.dissipation_slope))
        return slope(states, forces) - slope(states, jnp.zeros_like(forces))

    dissipation = [difference(f) for f in (plain, base)]
    np.testing.assert_allclose(
        _rms(dissipation[0] - dissipation[1]), CONVEX_SHARE * _rms(dissipation[1]), rtol=1e-9
    )


def test_local_gain_is_of_size_one(x64, models):
    _, model = models
    network, gain = model.base.dissipation[0].network, model.epinets.dissipation[0].local_gain

    def prior(x):
        condition = network.features(x, jnp.zeros(x.size)).condition
        return gain.unit * gain.prior(jnp.concatenate([condition, x]))

    values = jax.vmap(prior)(jnp.asarray(STATES))
    np.testing.assert_allclose(np.sqrt(np.mean(values**2, 0)), 1, rtol=1e-9)


def test_gain_takes_out_what_priors_share_with_the_base(x64, models):
    """To first order in `w`, a realisation dissipates as the base does along the base's slope."""
    _, model = models
    learn = lambda m: m.epinets.dissipation[0].learn  # noqa: E731
    model = eqx.tree_at(learn, model, jax.tree.map(jnp.zeros_like, learn(model)))
    model = _without_local_gain(model)
    base, states = Generic(model.base), jnp.asarray(STATES)
    energy, entropy = (jax.vmap(jax.grad(f))(states) for f in (base.energy, base.entropy))
    forces = jax.vmap(without)(energy, entropy)

    @jax.jit
    def share(w, z):
        family = eqx.tree_at(lambda m: m.amplitude, model, w)
        differences = []
        for field in (family.realise(z), base):
            slope = jax.vmap(field.dissipation_slope)
            differences.append(slope(states, forces) - slope(states, jnp.zeros_like(forces)))
        ours, reference = differences
        return jnp.sum(ours * reference) / jnp.sum(reference**2) - 1

    for z in jnp.eye(DIMENSION):
        np.testing.assert_allclose(share(1e-4, z), 0, atol=1e-7)


def test_only_priors_units_and_gain_change(models):
    before, after = models
    jax.tree.map(np.testing.assert_array_equal, before.base, after.base)
    for block in ("energy", "entropy", "dissipation"):
        pair = (getattr(m.epinets, block)[0].learn for m in models)
        jax.tree.map(np.testing.assert_array_equal, *pair)
