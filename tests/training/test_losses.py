"""Loss weights and losses."""

from itertools import permutations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spenn.config import FitConfig
from spenn.data import Trajectories
from spenn.epinet import INDICES, trainable
from spenn.generic import Coordinates, Generic
from spenn.training import (
    LARGEST_SHIFT,
    PER_STATE,
    UNSEEN,
    Judged,
    Samples,
    balanced,
    base_loss,
    correction,
    epinet_loss,
    make_samples,
    resample,
)
from spenn.training._losses import loss_weights as weights_of
from support import random_blocks, random_spenn

VARIABLES = np.arange(3)
CONFIG = FitConfig(component_exponent=0.75, speed_floor=0.3)


def loss_weights(velocities):
    variables = np.arange(velocities.shape[1])
    return weights_of(velocities, CONFIG.component_exponent, CONFIG.speed_floor, variables)


def _velocities(scale=(1.0, 1.0, 1.0)):
    return np.random.default_rng(0).normal(size=(4000, 3)) * scale


def test_weights_of_components_lie_between_absolute_and_relative():
    weights = loss_weights(_velocities((1.0, 1e-2, 1e2)))
    ratio = weights[0] / weights[0, 0]
    np.testing.assert_allclose(ratio, [1, 1e3, 1e-3], rtol=0.1)
    absolute, relative = (
        weights_of(_velocities((1.0, 1e-2, 1e2)), e, 1e6, VARIABLES) for e in (0, 1)
    )
    np.testing.assert_allclose(absolute, 1, rtol=1e-6)
    np.testing.assert_allclose(relative[0] / relative[0, 0], [1, 1e4, 1e-4], rtol=0.1)


def test_entries_of_one_variable_share_their_weight():
    velocities = _velocities((1.0, 3.0, 1e2))
    weights = weights_of(velocities, 1.0, 1e6, np.array([0, 0, 1]))
    np.testing.assert_allclose(weights[0], [0.2, 0.2, 1e-4], rtol=0.1)


def test_weights_of_states_fall_with_speed_to_a_floor():
    velocities = _velocities()
    velocities[0], velocities[1], velocities[2] = 0.0, 1e-3, 50.0
    weights = loss_weights(velocities)
    assert np.all(weights > 0)
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-4)
    assert np.all(weights[2] < 1e-2 * weights[0])
    ordered = weights[np.argsort(np.mean(velocities**2 / velocities.std(0) ** 1.5, 1)), 0]
    assert np.all(np.diff(ordered) <= 1e-12)


def test_weights_of_states_average_to_one():
    velocities = _velocities()
    weights = loss_weights(velocities)
    components = velocities.std(0) ** -1.5
    np.testing.assert_allclose(weights.mean(0), components, rtol=1e-12)


def test_a_component_that_never_moves_has_a_finite_weight():
    assert np.all(np.isfinite(loss_weights(_velocities((1.0, 0.0, 1.0)))))


def test_samples_are_scaled():
    rng = np.random.default_rng(0)
    data = Trajectories(np.arange(5.0), *rng.normal(size=(2, 3, 5, 2)) * [1.0, 100.0])
    units = Coordinates.of([0.0, 50.0], [1.0, 100.0], 2.0)
    samples = make_samples(data, units, CONFIG)
    assert samples.states.shape == (15, 2)
    np.testing.assert_allclose(
        samples.states, (data.states.reshape(-1, 2) - [0, 50]) / [1, 100], rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        samples.velocities, data.derivatives.reshape(-1, 2) * [2, 0.02], rtol=1e-5
    )
    np.testing.assert_allclose(samples.weights, loss_weights(samples.velocities), rtol=1e-3)
    np.testing.assert_array_equal(samples.trajectories, np.repeat([0, 1, 2], 5))


def test_nothing_is_rounded_before_scaling():
    """A variable that varies by a millionth of its value, as a temperature may."""
    states = 1e6 + np.random.default_rng(0).normal(size=(2, 5, 1))
    units = Coordinates.of([1e6], [1.0], 1.0)
    samples = make_samples(Trajectories(np.arange(5.0), states), units, CONFIG)
    np.testing.assert_allclose(samples.states[:, 0], states.ravel() - 1e6, atol=1e-6)


def _samples(size, count=6):
    rng = np.random.default_rng(1)
    states, velocities, weights = (jnp.asarray(rng.normal(size=(count, size))) for _ in range(3))
    return Samples(states, velocities, weights**2, jnp.arange(count) // 4)


def _resampled(model, count):
    draws = np.random.default_rng(2).normal(size=(count, model.dimension))
    return resample(model.base, _samples(3, count), jnp.asarray(draws))


def test_residuals_of_the_base_are_enlarged_to_the_size_of_velocities(x64):
    model = random_spenn(3, gain=(1.0, 1.0))
    samples, residuals, draws = _resampled(model, 9)
    left = jax.vmap(Generic(model.base).velocity)(samples.states) - samples.velocities
    factors = residuals / left
    np.testing.assert_allclose(factors, factors[0, 0], rtol=1e-9)
    sizes = [np.sum(samples.weights * v**2) for v in (residuals, samples.velocities)]
    np.testing.assert_allclose(*sizes, rtol=1e-9)
    # One draw per trajectory, and another for the next.
    np.testing.assert_array_equal(draws[:4], np.tile(draws[0], (4, 1)))
    assert np.all(draws[4] != draws[3])


def test_a_base_without_residuals_leaves_the_velocities_as_they_are():
    """In single precision, where the smallest double is zero."""
    blocks, few = random_blocks(3, gain=(1.0, 1.0)), _samples(3)
    states = jnp.asarray(few.states, jnp.float32)
    exact = few._replace(states=states, velocities=jax.vmap(Generic(blocks).velocity)(states))
    made = resample(blocks, exact, jnp.ones((2, 2)))
    assert np.max(np.abs(made.residuals)) < 0.02 * np.max(np.abs(exact.velocities))


def test_large_weights_make_no_residuals_of_none():
    """Ten entries or more, and a base that is right to the last bit."""
    blocks = random_blocks(3, gain=(1.0, 1.0))
    still = Samples(
        *(jnp.zeros((4, 3)), jnp.zeros((4, 3)), jnp.full((4, 3), 1e6)), jnp.zeros(4, int)
    )
    left = resample(blocks, still, jnp.ones((1, 2))).samples.states
    velocities = jax.jit(jax.vmap(Generic(blocks).velocity))(left)
    made = resample(blocks, still._replace(velocities=velocities), jnp.ones((1, 2)))
    assert np.all(np.abs(made.residuals) <= 0.02 * np.max(np.abs(velocities)))


def test_samples_know_their_trajectories_of_any_length():
    states = np.random.default_rng(0).normal(size=(2, 5, 1))
    states[0, 3:] = np.nan
    units = Coordinates.of([0.0], [1.0], 1.0)
    samples = make_samples(Trajectories(np.arange(5.0), states), units, CONFIG)
    np.testing.assert_array_equal(samples.trajectories, [0, 0, 0, 1, 1, 1, 1, 1])


def test_base_loss_is_the_weighted_mean_square(x64):
    blocks, samples = random_blocks(3, gain=(1.0, 1.0)), _samples(3)
    velocities = jax.jit(jax.vmap(Generic(blocks).velocity))(samples.states)
    expected = np.mean(np.sum(samples.weights * (velocities - samples.velocities) ** 2, -1))
    ours = jax.jit(base_loss)(blocks, samples, jax.random.key(0))
    np.testing.assert_allclose(ours, expected, rtol=1e-12)


def test_epinet_loss_weighs_realisations_and_their_mean(x64):
    """Against plain loops over states, indices and pairs of different indices."""
    model, key = random_spenn(3, gain=(1.0, 1.0)), jax.random.key(0)
    resampled = _resampled(model, count=3 * PER_STATE + 1)
    velocity = jax.jit(lambda x, z: model.realise(z).velocity(x))
    indices = model.draw(3 * PER_STATE, key=key)
    assert len(np.unique(np.asarray(indices)[:, 0])) == 3 * PER_STATE
    each, products = [], []
    for i in range(3):
        state, target, weights, _ = (a[i] for a in resampled.samples)
        own = indices[i * PER_STATE : (i + 1) * PER_STATE]
        lots = 0.5 * (own - model.law.mean) @ resampled.draws[i]
        targets = [target + lot * resampled.residuals[i] for lot in lots]
        residuals = [velocity(state, z) - t for z, t in zip(own, targets, strict=True)]
        each += [np.sum(weights * r**2) for r in residuals]
        products += [np.sum(weights * r * s) for r, s in permutations(residuals, 2)]
    expected = (np.mean(each) + 7.0 * np.mean(products)) / 0.5**2
    ours = eqx.filter_jit(epinet_loss)(model, resampled, key, 7.0)
    np.testing.assert_allclose(ours, expected, rtol=1e-9)
    assert ours != eqx.filter_jit(epinet_loss)(model, resampled, jax.random.key(1), 7.0)


def test_only_learnable_branches_are_trainable():
    model = random_spenn(3)
    mask = trainable(model)
    leaves, _ = jax.tree_util.tree_flatten_with_path(mask)
    chosen = {jax.tree_util.keystr(path) for path, wanted in leaves if wanted}
    everything = {jax.tree_util.keystr(path) for path, _ in leaves}
    learnable = {
        p for p in everything if p.startswith(".epinets") and (".learn" in p or ".gain" in p)
    }
    assert chosen == learnable and len(chosen) > 10
    learned, fixed = eqx.partition(model, mask)
    gradient = eqx.filter_jit(eqx.filter_grad(
        lambda t: epinet_loss(eqx.combine(t, fixed), _resampled(model, 16), jax.random.key(0), 1.0)
    ))(learned)  # fmt: skip
    assert jax.tree.leaves(gradient.base) == []


@pytest.mark.parametrize("factor", [0.1, 1.0, 20.0])
def test_scale_correction_finds_the_spread_that_fits_the_errors(factor):
    """Of the typical variable, and a little more, as most trajectories were learned from."""
    rng = np.random.default_rng(0)
    spread = rng.uniform(0.5, 2.0, (200, 50, 2))
    error = factor * np.array([0.5, 2.0]) * spread * rng.normal(size=spread.shape)
    judged = Judged(error, np.zeros_like(error), spread)
    found = correction(judged, np.arange(2))
    np.testing.assert_allclose(found, UNSEEN * factor, rtol=0.05)


def test_scale_correction_stops_where_the_mean_strays():
    rng = np.random.default_rng(0)
    error, spread = rng.normal(size=(20, 50, 2)), np.full((20, 50, 2), 1e-3)
    shift = np.stack([np.zeros((20, 50)), np.full((20, 50), 0.1)], -1)
    found = correction(Judged(error, shift, spread), np.arange(2))
    np.testing.assert_allclose(found * 0.1, LARGEST_SHIFT, rtol=0.1)


def test_scale_correction_looks_at_the_typical_trajectory():
    """One that the base gets wrong hides from none how far the mean strays on the others."""
    rng = np.random.default_rng(0)
    error, spread = rng.normal(size=(20, 50, 1)), np.full((20, 50, 1), 1e-3)
    error[0] *= 1e3
    found = correction(Judged(error, np.full_like(error, 0.1), spread), np.zeros(1, int))
    np.testing.assert_allclose(found * 0.1, LARGEST_SHIFT, rtol=0.1)


@pytest.mark.parametrize("size", [1.0, 1e-3], ids=["by spread", "by shift"])
def test_scale_correction_ends_with_shorter_trajectories(size):
    rng = np.random.default_rng(0)
    error, spread = rng.normal(size=(20, 50, 1)), np.full((20, 50, 1), size)
    whole = correction(Judged(error, error / 10, spread), np.zeros(1, int))
    ended = np.concatenate([error, np.full_like(error, np.nan)], 1)
    judged = Judged(ended, ended / 10, np.concatenate([spread, np.full_like(spread, np.nan)], 1))
    np.testing.assert_allclose(correction(judged, np.zeros(1, int)), whole)


@pytest.mark.parametrize("index", INDICES)
def test_balanced_indices_leave_nothing_to_chance_in_the_mean(index):
    law = INDICES[index]()
    indices = balanced(law.draw((25, 5), key=jax.random.key(0)), law.mean)
    np.testing.assert_allclose(indices.mean(0), np.full(5, law.mean), rtol=1e-5)
    assert (indices >= 0).all()


def test_scale_correction_of_perfect_forecasts_is_next_to_nothing():
    nothing = np.zeros((2, 3, 1))
    assert 0 < correction(Judged(nothing, nothing, nothing + 1), np.zeros(1, int)) < 1e-30
