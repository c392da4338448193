"""What an epinet adds to its network, and what it leaves alone."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spenn.epinet import INDICES, Shape, attach
from spenn.generic import Blocks, Coordinates, Generic, KnownPotential
from support import random_blocks, random_spenn

SIZE, DIMENSION = 4, 3
FIRST, SECOND = np.array([0.2, 1.5, 0.7]), np.array([1.0, 0.1, 2.0])


def _point():
    return jnp.asarray(np.random.default_rng(0).normal(size=(2, SIZE)))


def _without_learning(epinet):
    """Only the prior branch is left."""
    return eqx.tree_at(lambda e: e.learn, epinet, jax.tree.map(jnp.zeros_like, epinet.learn))


def _assert_linear(function, rtol):
    first, second = jnp.asarray(FIRST), jnp.asarray(SECOND)
    mixed = function(first + 2 * second)
    np.testing.assert_allclose(mixed, function(first) + 2 * function(second), rtol=rtol)
    assert np.all(np.abs(mixed) > 1e-6)


class TestBranches:
    def test_priors_are_linear_in_the_index(self, x64):
        epinets = random_spenn(SIZE).epinets
        features = jnp.linspace(-1, 1, 8 + SIZE)
        prior = _without_learning(epinets.energy[0])
        _assert_linear(lambda c: prior(features, c), 1e-12)

    def test_convex_priors_are_linear_in_the_index(self, x64):
        epinet = _without_learning(random_spenn(SIZE).epinets.dissipation[0])
        condition, convex = jnp.linspace(-1, 1, 8 + SIZE), jnp.linspace(0, 2, 8)
        _assert_linear(lambda z: epinet(condition, _point()[1], convex, z), 1e-12)

    def test_global_branches_are_linear_in_the_index(self, x64):
        _assert_linear(random_spenn(SIZE).epinets.poisson[0].tensor, 1e-9)

    def test_perturbed_tensor_is_the_tensor_of_the_sum(self, x64):
        model = random_spenn(SIZE)
        base, epinet = model.base.poisson[0].tensor, model.epinets.poisson[0].tensor
        index = jnp.asarray(FIRST) - min(0.0, float(np.min(FIRST)))
        centred = np.asarray(index) - model.law.mean
        added = epinet.unit * np.einsum("n,nijk->ijk", centred, epinet.learn + epinet.prior)
        perturbed = model.realise(index).blocks.poisson[0].tensor
        np.testing.assert_allclose(perturbed, base + model.amplitude * added, rtol=1e-12)

    def test_learnable_branch_starts_at_zero(self):
        model = attach(
            random_blocks(SIZE),
            INDICES["uniform"](),
            Shape(DIMENSION, 5, 5, 1),
            amplitude=0.1,
            key=jax.random.key(0),
        )
        for epinet in (model.epinets.energy[0], model.epinets.poisson[0].network):
            inputs = jnp.ones(epinet.learn.layers[0].weight.shape[1])
            np.testing.assert_array_equal(epinet.learn(inputs), 0)
        np.testing.assert_array_equal(model.epinets.poisson[0].tensor.learn, 0)


def _outputs(field, x, y):
    return (*field.rates(x), field.dissipation_slope(x, y), field.poisson(x, x, y))


class TestRealisations:
    def test_amplitude_zero_is_the_base_bit_for_bit(self):
        # Operation by operation: fused by the compiler, the last bit of a sum may differ.
        model = random_spenn(SIZE, amplitude=0.0)
        x, y = _point()
        ours, base = (
            (f.energy(x), f.entropy(x), f.poisson(x, x, y), f.dissipation_slope(x, y))
            for f in (model.realise(jnp.asarray(FIRST)), Generic(model.base))
        )
        jax.tree.map(np.testing.assert_array_equal, ours, base)

    def test_the_mean_index_is_the_base_where_the_sign_is_free(self, x64):
        x, y = _point()
        for centred, z in ((True, np.full(DIMENSION, INDICES["uniform"]().mean)), (False, 0.0)):
            model = random_spenn(SIZE, law="uniform", centred=centred)
            ours = model.realise(jnp.broadcast_to(jnp.asarray(z), DIMENSION))
            base = Generic(model.base)
            np.testing.assert_array_equal(ours.energy(x), base.energy(x))
            np.testing.assert_array_equal(ours.entropy(x), base.entropy(x))
            np.testing.assert_array_equal(ours.poisson(x, x, y), base.poisson(x, x, y))

    def test_two_indices_are_two_fields(self):
        model = random_spenn(SIZE)
        x, y = _point()
        outputs = jax.jit(lambda z: _outputs(model.realise(z), x, y))
        for one, other in zip(outputs(FIRST), outputs(SECOND), strict=True):
            assert np.max(np.abs(one - other)) > 1e-4 or np.max(np.abs(one)) < 1e-4

    def test_every_block_is_perturbed(self):
        model = random_spenn(SIZE)
        x, y = _point()
        ours, base = (
            jax.jit(
                lambda f=f: (
                    f.energy(x),
                    f.entropy(x),
                    f.poisson(x, x, y),
                    f.dissipation_slope(x, y),
                )
            )()
            for f in (model.realise(jnp.asarray(FIRST)), Generic(model.base))
        )
        for one, other in zip(ours, base, strict=True):
            assert np.max(np.abs(one - other)) > 1e-3

    def test_known_parts_get_no_epinet(self):
        learned = random_blocks(SIZE)
        known = KnownPotential(lambda x: jnp.sum(x**2), Coordinates.identity(SIZE))
        base = Blocks((known,), (known, *learned.entropy), learned.poisson, learned.dissipation)
        model = attach(
            base,
            INDICES["uniform"](),
            Shape(2, 3, 3, 1),
            amplitude=1.0,
            key=jax.random.key(0),
        )
        assert model.epinets.energy == (None,)
        assert model.epinets.entropy[0] is None and model.epinets.entropy[1] is not None
        x, _ = _point()
        realised = model.realise(jnp.array([1.0, 2.0]))
        np.testing.assert_array_equal(realised.energy(x), known(x))

    def test_negative_index_is_refused(self):
        model = random_spenn(SIZE)
        bad = jnp.array([0.1, -1e-6, 0.3])
        with pytest.raises(ValueError, match="must not be negative"):
            model.realise(bad)
        x, _ = _point()
        velocity = jax.jit(lambda z: model.realise(z).velocity(x))
        assert np.all(np.isnan(velocity(bad)))
        assert np.all(np.isfinite(velocity(jnp.abs(bad))))
