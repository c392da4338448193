"""Dropout: every mask gives an admissible model, held for the whole of a rollout."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spenn
from spenn.baselines import MCDropout, fit_dropout
from spenn.generic import Generic
from support import assert_lawful, law_errors, random_blocks

NETWORKS, STATES = 40, 50


@pytest.mark.parametrize("size", [3, 6])
def test_both_laws_for_every_mask(dtype, size):
    blocks = random_blocks(size, count=NETWORKS)
    states = jnp.asarray(2 * np.random.default_rng(0).normal(size=(NETWORKS, STATES, size)))

    @eqx.filter_jit
    @eqx.filter_vmap
    def errors(blocks, states, key):
        method = MCDropout(blocks, 0.2)
        indices = method.draw(STATES, key=key)
        return jax.vmap(lambda x, z: law_errors(method.realise(z), x))(states, indices)

    found = errors(blocks, states, jax.random.split(jax.random.key(0), NETWORKS))
    assert found.energy.dtype == dtype
    assert_lawful(found)


def test_a_masked_potential_is_convex(x64):
    method = MCDropout(random_blocks(4), 0.4)
    rng = np.random.default_rng(1)
    for z in method.draw(10, key=jax.random.key(3)):
        potential = method.realise(z).blocks.dissipation[0]
        x, a, b = jnp.asarray(rng.normal(size=(3, 4)))
        middle = potential(x, (a + b) / 2)
        assert middle <= (potential(x, a) + potential(x, b)) / 2 + 1e-12


def test_masks_drop_units_at_their_rate_and_keep_the_mean():
    method = MCDropout(random_blocks(3, 8, 2), 0.25)
    indices = method.draw(400, key=jax.random.key(0))
    # Three MLPs and the convex path of a PICNN, the last layer of each of eight units.
    assert indices.shape == (400, 8 * 4)
    masks = jax.vmap(lambda z: method.realise(z).blocks.energy[0].network.mask)(indices)
    values, counts = np.unique(np.asarray(masks), return_counts=True)
    np.testing.assert_allclose(values, [0, 4 / 3])
    np.testing.assert_allclose(counts / counts.sum(), [0.25, 0.75], atol=0.01)


def test_the_mean_of_a_potential_over_masks_is_the_potential(x64):
    blocks = random_blocks(3)
    method = MCDropout(blocks, 0.2)
    x, indices = jnp.array([0.3, -0.2, 0.5]), method.draw(20_000, key=jax.random.key(1))
    values = jax.vmap(lambda z: method.realise(z).blocks.energy[0](x))(indices)
    error = abs(values.mean() - blocks.energy[0](x))
    assert error < 4 * values.std() / len(indices) ** 0.5


def test_without_dropping_it_is_the_base(x64):
    blocks = random_blocks(3)
    method = MCDropout(blocks, 0.0)
    x, z = jnp.array([0.3, -0.2, 0.5]), method.draw(1, key=jax.random.key(0))[0]
    np.testing.assert_allclose(
        method.realise(z).velocity(x), Generic(blocks).velocity(x), rtol=1e-13
    )


def test_fit_trains_and_saves(tmp_path):
    rng = np.random.default_rng(0)
    states, derivatives = rng.normal(size=(2, 6, 20, 3))
    data = spenn.Trajectories(np.arange(20.0), states, derivatives, names=["a", "b", "c"])
    config = spenn.FitConfig(width=6, depth=1, steps=30, race_steps=10, races=2, batch=32)
    losses = []
    model = fit_dropout(data, 0, config, report=lambda stage, steps, loss: losses.append(loss))
    assert np.all(np.isfinite(losses))
    model.save(tmp_path / "model.spenn")
    loaded = spenn.load(tmp_path / "model.spenn")
    jax.tree.map(np.testing.assert_array_equal, model.method, loaded.method)
    x, (one, other) = np.array([0.1, 0.2, 0.3]), model.draw(2)
    assert np.any(model.velocity(x, one) != model.velocity(x, other))
