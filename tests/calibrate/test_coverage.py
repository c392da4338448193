"""Empirical coverage and widths against plain numpy and known distributions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from spenn.calibrate import (
    Conformal,
    calibrated_coverage,
    crps,
    entry_coverage,
    quantile_intervals,
    raw_coverage,
    simultaneous_coverage,
)

LEVELS = np.linspace(0.05, 0.95, 19)
jitted_raw_coverage = jax.jit(raw_coverage)


def ensemble(samples=200, time=30, seed=0):
    """Float32 samples (samples, time, 2) and a truth from the same law."""
    draws = np.random.default_rng(seed).normal(size=(samples + 1, time, 2)) * [1.0, 5.0]
    return draws[1:].astype(np.float32), draws[0].astype(np.float32)


@pytest.mark.parametrize("count", [1, 2, 7, 200])
def test_quantiles_match_numpy(count):
    samples, _ = ensemble(count)
    lower, upper = jax.jit(quantile_intervals)(samples, LEVELS)
    values = np.asarray(samples, float)
    np.testing.assert_allclose(lower, np.quantile(values, (1 - LEVELS) / 2, axis=0), atol=3e-5)
    np.testing.assert_allclose(upper, np.quantile(values, (1 + LEVELS) / 2, axis=0), atol=3e-5)


def test_quantiles_of_a_tiny_spread_keep_their_digits():
    noise = np.asarray(ensemble(101)[0])
    samples = (1 + 1e-4 * noise).astype(np.float32)
    lower, upper = jax.jit(quantile_intervals)(samples, LEVELS)
    values = samples.astype(float)
    width = np.quantile(values, (1 + LEVELS) / 2, axis=0) - np.quantile(
        values, (1 - LEVELS) / 2, axis=0
    )
    np.testing.assert_allclose(upper - lower, width, atol=2e-7)


def test_raw_coverage_matches_numpy():
    samples, truth = ensemble()
    ours = jitted_raw_coverage(samples, truth, LEVELS)
    values, target = np.asarray(samples, float), np.asarray(truth, float)
    lower = np.quantile(values, (1 - LEVELS) / 2, axis=0)
    upper = np.quantile(values, (1 + LEVELS) / 2, axis=0)
    np.testing.assert_allclose(
        ours.inside, np.mean((lower <= target) & (target <= upper), axis=1), atol=1e-6
    )
    np.testing.assert_allclose(ours.width, np.mean(upper - lower, axis=1), rtol=1e-4)


def test_raw_coverage_of_a_perfect_forecast_is_nominal():
    samples, truth = ensemble(2000, 4000)
    ours = jitted_raw_coverage(samples, truth, LEVELS)
    nominal = np.repeat(LEVELS[:, None], 2, axis=1)
    np.testing.assert_allclose(ours.inside, nominal, atol=4 * (0.25 / 4000) ** 0.5)
    widths = 2 * norm.ppf((1 + LEVELS) / 2)[:, None] * np.array([1.0, 5.0])
    np.testing.assert_allclose(ours.width, widths, rtol=0.02)


def test_one_sort_serves_scores_and_coverage():
    samples, truth = ensemble()
    both = jax.jit(lambda s, t: (crps(s, t), raw_coverage(s, t, jnp.asarray(LEVELS))))
    assert both.lower(samples, truth).compile().as_text().count(" sort(") == 1


@given(st.sampled_from([1, 2, 30]), st.integers(0, 10_000))
@settings(deadline=None, derandomize=True, max_examples=40)
def test_coverage_and_width_grow_with_level(count, seed):
    rng = np.random.default_rng(seed)
    samples = rng.normal(size=(count, 5, 2)).astype(np.float32)
    truth = rng.normal(size=(5, 2)).astype(np.float32)
    ours = jitted_raw_coverage(samples, truth, LEVELS)
    assert np.all(np.diff(ours.inside, axis=0) >= 0)
    assert np.all(np.diff(ours.width, axis=0) >= -1e-6)


def test_ends_of_an_interval_are_inside():
    truth = jnp.array([[[0.0, 1.0], [2.0, 3.0]]])
    np.testing.assert_array_equal(entry_coverage(truth, truth, truth), [1, 1])
    assert simultaneous_coverage(truth, truth, truth) == 1


def test_one_entry_outside_loses_the_whole_trajectory():
    truth = jnp.zeros((4, 3, 2)).at[0, 2, 1].set(2.0).at[1, 0, 0].set(-2.0).at[1, 1, 0].set(-2.0)
    lower, upper = jnp.full((4, 3, 2), -1.0), jnp.full((4, 3, 2), 1.0)
    assert simultaneous_coverage(lower, upper, truth) == 0.5
    np.testing.assert_allclose(entry_coverage(lower, upper, truth), [10 / 12, 11 / 12], rtol=1e-6)


def test_calibration_mends_an_overconfident_forecast():
    truth = np.random.default_rng(2).normal(size=(400, 20, 2)).astype(np.float32)
    mean, std = np.zeros_like(truth), np.full_like(truth, 0.1)
    conformal = Conformal.fit(mean[:100], std[:100], truth[:100])
    intervals, whole = calibrated_coverage(
        conformal, mean[100:], std[100:], truth[100:], list(LEVELS)
    )
    np.testing.assert_allclose(intervals.inside, np.repeat(LEVELS[:, None], 2, axis=1), atol=0.05)
    np.testing.assert_allclose(whole, LEVELS, atol=0.15)
    for values in (intervals.inside, intervals.width, whole):
        assert np.all(np.diff(values, axis=0) >= 0)
    for row in (1, 17):
        lower, upper = conformal.interval(mean[100:], std[100:], LEVELS[row])
        np.testing.assert_allclose(
            intervals.width[row], jnp.mean(upper - lower, axis=(0, 1)), rtol=1e-5
        )


def test_too_few_trajectories_cover_everything_at_infinite_width():
    _, truth = ensemble()
    truth = np.broadcast_to(truth, (5, *truth.shape))
    mean, std = np.zeros_like(truth), np.ones_like(truth)
    conformal = Conformal.fit(mean, std, truth)
    intervals, whole = calibrated_coverage(conformal, mean, std, 100 * truth, [0.5, 0.9])
    assert jnp.all(intervals.width[1] == jnp.inf) and jnp.all(jnp.isfinite(intervals.width[0]))
    assert jnp.all(intervals.inside[1] == 1) and whole[1] == 1 and whole[0] == 0


def test_float64_is_honoured():
    with jax.enable_x64(True):
        samples = jnp.asarray(np.random.default_rng(0).normal(size=(9, 4, 2)))
        ours = raw_coverage(samples, samples[0], jnp.asarray(LEVELS))
        assert ours.inside.dtype == ours.width.dtype == jnp.float64
