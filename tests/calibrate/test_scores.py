"""Scores against `scoringrules` and scipy, in float64 on the very numbers that float32 saw."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scoringrules
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from spenn.calibrate import (
    crps,
    energy_score,
    rank_correlation,
    rank_histogram,
    relative_l2_error,
    sharpness,
)
from spenn.calibrate._scores import _TILE_ROWS, _pair_distances
from spenn.calibrate._sorting import sort_samples

EPS = np.finfo(np.float32).eps


def forecast(count: int, spread: float = 1.0, bias: float = 0.3, seed: int = 0):
    """Float32 samples (count, 7, 3) around values of order one, and a truth near them."""
    rng = np.random.default_rng(seed)
    centre = rng.uniform(1, 2, size=(7, 3))
    samples = centre + spread * rng.normal(size=(count, 7, 3))
    truth = centre + spread * (bias + rng.normal(size=(7, 3)))
    return samples.astype(np.float32), truth.astype(np.float32)


def oracle_crps(samples, truth):
    """Both estimators in float64; `qd` and `nrg` are two routes to the paper's."""
    samples, truth = np.moveaxis(samples, 0, -1).astype(float), truth.astype(float)
    score = {name: scoringrules.crps_ensemble(truth, samples, estimator=name, backend="numpy")
             for name in ("qd", "nrg", "fair")}  # fmt: skip
    np.testing.assert_allclose(score["qd"], score["nrg"], rtol=1e-6)
    return score["nrg"], score["fair"]


def oracle_energy_score(samples, truth):
    """Both estimators in float64."""
    samples, truth = samples.reshape(len(samples), -1).astype(float), truth.ravel().astype(float)
    return [scoringrules.es_ensemble(truth, samples, estimator=name, backend="numpy")
            for name in ("nrg", "fair")]  # fmt: skip


@pytest.mark.parametrize(
    "score, oracle", [(crps, oracle_crps), (energy_score, oracle_energy_score)]
)
@pytest.mark.parametrize("spread", [1.0, 1e-4])
@pytest.mark.parametrize("count", [2, 3, 100])
def test_float32_scores_match_float64_oracle(score, oracle, spread, count):
    samples, truth = forecast(count, spread)
    plain, fair = oracle(samples, truth)
    ours = jax.jit(score)(samples, truth)
    np.testing.assert_allclose(ours.plain, plain, rtol=30 * EPS, atol=10 * EPS * spread)
    np.testing.assert_allclose(ours.fair, fair, rtol=30 * EPS, atol=10 * EPS * spread)
    assert ours.plain.dtype == ours.fair.dtype == jnp.float32


@pytest.mark.parametrize(
    "score, oracle", [(crps, oracle_crps), (energy_score, oracle_energy_score)]
)
def test_float64_is_honoured(score, oracle):
    samples, truth = (array.astype(float) for array in forecast(50, 1e-4))
    with jax.enable_x64(True):
        ours = score(jnp.asarray(samples), jnp.asarray(truth))
        assert ours.plain.dtype == jnp.float64
        np.testing.assert_allclose(ours, oracle(samples, truth), rtol=1e-10)


@pytest.mark.parametrize("count", [1, 5, 8, 13])
@pytest.mark.parametrize("tile_rows", [1, 4, 20])
def test_each_pair_counts_once_whatever_the_tiles(count, tile_rows):
    points = forecast(count)[0].reshape(count, -1)
    ours = _pair_distances(jnp.asarray(points), tile_rows=tile_rows)
    np.testing.assert_allclose(ours, pdist(points.astype(float)).sum(), rtol=1e-5)


def test_energy_score_is_right_across_full_tiles():
    rng = np.random.default_rng(3)
    samples = rng.normal(size=(_TILE_ROWS + 101, 1, 2)).astype(np.float32)
    truth = np.zeros((1, 2), np.float32)
    expected = oracle_energy_score(samples, truth)
    np.testing.assert_allclose(energy_score(samples, truth), expected, rtol=1e-4)


@pytest.mark.parametrize("count, time", [(2000, 1000), (20_000, 100)])
def test_energy_score_of_a_large_ensemble_fits_in_memory(count, time):
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in [(count, time, 3), (time, 3)]]
    memory = jax.jit(energy_score).lower(*shapes).compile().memory_analysis()
    assert memory is not None and memory.temp_size_in_bytes < 100e6


def test_one_sample_scores_its_error():
    samples, truth = forecast(1)
    error = np.abs(samples[0] - truth)
    for estimate in crps(samples, truth):
        np.testing.assert_allclose(estimate, error, rtol=EPS)
    for estimate in energy_score(samples, truth):
        np.testing.assert_allclose(estimate, np.linalg.norm(error), rtol=10 * EPS)


def test_identical_samples_score_their_error():
    samples = jnp.broadcast_to(forecast(1)[0], (30, 7, 3))
    truth = forecast(1)[1]
    for estimate in crps(samples, truth):
        np.testing.assert_allclose(estimate, np.abs(samples[0] - truth), rtol=10 * EPS)
    for estimate in energy_score(samples, truth):
        np.testing.assert_allclose(estimate, np.linalg.norm(samples[0] - truth), rtol=1e-5)


def test_fair_estimators_do_not_depend_on_ensemble_size():
    """Mean over many small ensembles of N(0, 1) against the closed form at truth 0."""
    ensembles = jax.random.normal(jax.random.key(0), (40_000, 3, 1, 1))
    truth = jnp.zeros((1, 1))
    exact = (2**0.5 - 1) / np.pi**0.5
    for score in (crps, energy_score):
        plain, fair = jax.vmap(score, in_axes=(0, None))(ensembles, truth)
        error = 4 * float(jnp.std(fair)) / 200
        np.testing.assert_allclose(jnp.mean(fair), exact, atol=error)
        assert jnp.mean(plain) > exact + 10 * error


@given(
    arrays(np.float32, (6, 2, 2), elements=st.floats(-100, 100, width=32)),
    arrays(np.float32, (2, 2), elements=st.floats(-100, 100, width=32)),
)
@settings(deadline=None, derandomize=True, max_examples=50)
def test_scores_are_shift_invariant_and_not_negative(samples, truth):
    samples, truth = np.round(samples), np.round(truth)  # so that the shift is exact
    # From a Gram matrix, a distance of zero is known to within sqrt(eps) of the spread.
    spread = np.linalg.norm(samples - samples.mean(axis=0), axis=(1, 2)).max()
    for score, error in ((crps, 1e-3), (energy_score, 1e-3 + 2 * EPS**0.5 * spread)):
        plain = score(samples, truth).plain
        assert np.all(plain >= -error)
        np.testing.assert_allclose(plain, score(samples + 512, truth + 512).plain, atol=error)


@given(arrays(np.float32, (9, 3), elements=st.floats(width=32, allow_nan=False)))
@settings(deadline=None, derandomize=True, max_examples=50)
def test_sort_matches_numpy(samples):
    np.testing.assert_array_equal(sort_samples(jnp.asarray(samples)), np.sort(samples, axis=0))


def test_sort_keeps_float64():
    samples = np.random.default_rng(0).normal(size=(50, 4)) * 1e-3
    with jax.enable_x64(True):
        np.testing.assert_array_equal(sort_samples(jnp.asarray(samples)), np.sort(samples, axis=0))


def test_relative_l2_error_per_variable():
    truth = jnp.array([[3.0, 0.0, 0.0], [4.0, 0.0, 0.0]])
    mean = truth + jnp.array([[0.0, 0.0, 1.0], [0.5, 0.0, 0.0]])
    np.testing.assert_allclose(relative_l2_error(mean, truth), [0.1, 0, np.inf], rtol=1e-6)


def test_rank_histogram_counts_ranks():
    samples = jnp.arange(3.0)[:, None, None] * jnp.ones((3, 4, 1))
    truth = jnp.array([[-1.0], [0.5], [1.5], [2.5]])
    np.testing.assert_allclose(rank_histogram(samples, truth, 4), [[0.25] * 4], atol=1e-6)
    np.testing.assert_allclose(rank_histogram(samples, truth[:1], 4), [[1, 0, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(rank_histogram(samples, truth[3:], 4), [[0, 0, 0, 1]], atol=1e-6)


def test_rank_histogram_shares_ties_and_straddled_bins():
    samples = jnp.zeros((3, 1, 1))
    np.testing.assert_allclose(rank_histogram(samples, samples[0], 4), [[0.25] * 4], atol=1e-6)
    below = -jnp.ones((1, 1))  # rank 0 of 4, and three bins: all in the first
    np.testing.assert_allclose(rank_histogram(samples, below, 3), [[1, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(rank_histogram(samples, below, 8)[0, :2], [0.5, 0.5], atol=1e-6)


def test_rank_histogram_is_flat_when_calibrated_even_if_bins_do_not_divide():
    draws = jax.random.normal(jax.random.key(1), (8, 40_000, 1))
    histogram = rank_histogram(draws[1:], draws[0], 5)
    np.testing.assert_allclose(histogram, np.full((1, 5), 0.2), atol=4 * (0.16 / 40_000) ** 0.5)


def test_rank_correlation_matches_scipy_with_ties():
    rng = np.random.default_rng(2)
    spread = rng.integers(0, 6, size=(4, 30, 2)).astype(np.float32)
    error = np.abs(spread * rng.normal(size=spread.shape)).astype(np.float32)
    error[0] = 1.0
    expected = [spearmanr(error[..., v].ravel(), spread[..., v].ravel())[0] for v in range(2)]
    ours = rank_correlation(jnp.asarray(error), jnp.asarray(spread))
    np.testing.assert_allclose(ours, expected, rtol=1e-5)


def test_rank_correlation_without_variation_is_zero():
    error = jnp.arange(10.0)[:, None]
    assert rank_correlation(error, jnp.ones_like(error)) == 0
    np.testing.assert_allclose(rank_correlation(error, error**3), 1, rtol=1e-6)


def test_sharpness_is_the_mean_width():
    lower = np.zeros((2, 3, 2), np.float32)
    upper = np.arange(6, dtype=np.float32).reshape(2, 3, 1) * np.float32([1, 2])
    np.testing.assert_allclose(sharpness(lower, upper), [2.5, 5.0])
