"""The rank rule, its limits, and the promise it makes: coverage, by simulation."""

from decimal import Decimal
from fractions import Fraction
from math import ceil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, halfnorm, kstest

from spenn.calibrate import (
    Conformal,
    conformal_rank,
    coverage_range,
    normalised_score,
    simultaneous_coverage,
)


@pytest.mark.parametrize("percent", [5, 30, 50, 70, 80, 90, 95, 99])
def test_rank_is_exact(percent):
    for n in range(1, 201):
        assert conformal_rank(n, percent / 100) == ceil(Fraction((n + 1) * percent, 100))


@pytest.mark.parametrize(
    "n, level, rank",
    [(19, 0.95, 19), (19, 0.05, 1), (9, 0.7, 7), (9, 0.8, 8), (99, 0.99, 99), (18, 0.95, 19)],
)  # fmt: skip
def test_named_ranks(n, level, rank):
    assert conformal_rank(n, level) == rank


@pytest.mark.parametrize(
    "level", [0.15, 0.1 + 0.05, np.linspace(0.05, 0.95, 19)[2], np.float32(0.15), Decimal("0.15"),
              Fraction(3, 20)],
)  # fmt: skip
def test_rank_reads_the_level_that_was_meant(level):
    assert conformal_rank(19, level) == 3


def test_rank_stays_within_one_and_n_plus_one():
    assert conformal_rank(5, 1e-15) == 1
    assert conformal_rank(5, 1 - 1e-15) == 6


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, float("nan"), float("inf"), True, "ninety"])
def test_bad_levels(level):
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        conformal_rank(10, level)
    with pytest.raises(ValueError, match="probability must lie strictly between 0 and 1"):
        coverage_range(10, 0.5, level)


def test_coverage_range_is_the_quoted_one():
    low, high = coverage_range(50, 0.9)
    assert (round(low, 2), round(high, 2)) == (0.83, 0.96)
    assert coverage_range(5, 0.9) == (1.0, 1.0)
    assert coverage_range(50, 0.9, 0.99)[0] < low


def test_few_test_trajectories_widen_the_range():
    """Against simulation: a coverage of its law, then trajectories that are in or out."""
    rng = np.random.default_rng(0)
    rank, tests = conformal_rank(50, 0.9), 40
    shares = rng.binomial(tests, rng.beta(rank, 51 - rank, 200_000)) / tests
    low, high = coverage_range(50, 0.9, tests=tests)
    assert low < coverage_range(50, 0.9)[0] and high > coverage_range(50, 0.9)[1]
    np.testing.assert_allclose((low, high), np.quantile(shares, [0.05, 0.95]))
    many = coverage_range(50, 0.9, tests=10**6)
    np.testing.assert_allclose(many, coverage_range(50, 0.9), atol=1e-5)
    with pytest.raises(ValueError, match="at least one test trajectory"):
        coverage_range(50, 0.9, tests=0)


def scores(n, time=2, variable=3, seed=0):
    """Forecasts of mean 0 and spread 1, and truths whose distance from 0 is their score."""
    truth = np.random.default_rng(seed).normal(size=(n, time, variable)).astype(np.float32)
    return np.zeros_like(truth), np.ones_like(truth), truth


@pytest.mark.parametrize("n, level", [(9, 0.7), (19, 0.95), (1, 0.5), (30, 0.01)])
def test_thresholds_are_order_statistics(n, level):
    mean, std, truth = scores(n)
    conformal = Conformal.fit(mean, std, truth)
    rank, distance = conformal_rank(n, level), np.abs(truth)
    np.testing.assert_array_equal(conformal.threshold(level), np.sort(distance, axis=0)[rank - 1])
    largest = np.sort(distance.max(axis=(1, 2)))[rank - 1]
    np.testing.assert_array_equal(conformal.band_threshold(level), largest)
    assert conformal.trajectories == n


def test_too_few_trajectories_promise_nothing():
    mean, std, truth = scores(8)
    conformal = Conformal.fit(mean, std, truth)
    assert jnp.all(jnp.isfinite(conformal.threshold(0.88)))
    for std_new in (std[0], 0 * std[0]):
        for lower, upper in (
            conformal.interval(mean[0], std_new, 0.9),
            conformal.band(mean[0], std_new, 0.9),
        ):
            assert jnp.all(lower == -jnp.inf) and jnp.all(upper == jnp.inf)


def test_trajectories_that_ended_early_count_up_to_their_end():
    mean, std, truth = scores(9, time=4)
    ended = truth.copy()
    ended[:5, 2:] = np.nan
    found = Conformal.fit(mean, std, ended)
    short, long = (
        Conformal.fit(mean[a:, :b], std[a:, :b], truth[a:, :b]) for a, b in ((0, 2), (5, 4))
    )
    np.testing.assert_array_equal(found.threshold(0.7)[:2], short.threshold(0.7))
    np.testing.assert_array_equal(found.threshold(0.7)[2:], long.threshold(0.7)[2:])
    # The band up to a time is that of the trajectories that lasted so long.
    assert found.band_threshold(0.7, 1) == short.band_threshold(0.7)
    assert found.band_threshold(0.7) == long.band_threshold(0.7)
    assert jnp.isinf(found.band_threshold(0.85)) and jnp.isfinite(found.band_threshold(0.85, 1))


def test_a_gap_is_no_end():
    mean, std, truth = scores(3, time=4)
    truth[1, 1] = np.nan
    with pytest.raises(ValueError, match="the truth has NaN"):
        Conformal.fit(mean, std, truth)


def test_scores_without_spread():
    mean = jnp.array([1.0, 1.0, 1.0, 1.0])
    std = jnp.array([0.0, 0.0, 0.5, 1e-44])
    truth = jnp.array([1.0, 2.0, 2.0, 1.0])
    np.testing.assert_array_equal(normalised_score(mean, std, truth), [0, jnp.inf, 2, 0])


@given(
    st.lists(st.sampled_from([0.0, 1e-44, 1e-30, 1.0, 1e30]), min_size=12, max_size=12),
    st.lists(st.sampled_from([0.0, 1e-44, 1e-30, 1.0, 1e30]), min_size=12, max_size=12),
    st.sampled_from([0.1, 0.5, 0.9]),
)
@settings(deadline=None, derandomize=True, max_examples=50)
def test_nothing_is_ever_nan(spreads, errors, level):
    std = jnp.asarray(spreads, jnp.float32).reshape(3, 2, 2)
    truth = jnp.asarray(errors, jnp.float32).reshape(3, 2, 2)
    conformal = Conformal.fit(jnp.zeros_like(std), std, truth)
    for lower, upper in (
        conformal.interval(jnp.zeros_like(std), std, level),
        conformal.band(jnp.zeros_like(std), std, level),
    ):
        assert not jnp.any(jnp.isnan(lower) | jnp.isnan(upper))
        assert jnp.all(lower <= upper)


def test_intervals_scale_with_spread_and_take_batches():
    mean, std, truth = scores(19)
    conformal = Conformal.fit(mean, std, truth)
    lower, upper = conformal.interval(mean + 5, 3 * std, 0.9)
    reach = jnp.broadcast_to(3 * conformal.threshold(0.9), mean.shape)
    np.testing.assert_allclose(lower, 5 - reach, rtol=1e-6)
    np.testing.assert_allclose(upper, 5 + reach, rtol=1e-6)
    lower, upper = conformal.band(mean[0] + 5, 3 * std[0], 0.9)
    np.testing.assert_allclose(
        upper - 5, jnp.full((2, 3), 3 * conformal.band_threshold(0.9)), rtol=1e-6
    )


def test_intervals_work_under_jit_and_vmap():
    mean, std, truth = scores(19)
    conformal = Conformal.fit(mean, std, truth)
    one = jax.jit(lambda c, m, s: c.interval(m, s, 0.9))
    ours = jax.vmap(one, in_axes=(None, 0, 0))(conformal, mean, std)
    np.testing.assert_array_equal(ours, conformal.interval(mean, std, 0.9))


def test_float64_is_honoured():
    with jax.enable_x64(True):
        values = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4, 2, 2)))
        conformal = Conformal.fit(values[0], jnp.abs(values[1]), values[2])
        assert conformal.scores.dtype == conformal.maxima.dtype == jnp.float64
        assert conformal.interval(values[0], values[1], 0.5)[0].dtype == jnp.float64
        assert conformal.threshold(0.99).dtype == jnp.float64


@pytest.mark.parametrize("place, name", [(0, "mean"), (1, "standard deviation"), (2, "truth")])
@pytest.mark.parametrize("value", [jnp.nan, jnp.inf])
def test_fit_refuses_values_that_are_not_finite(place, name, value):
    arrays = list(scores(4))
    arrays[place][1, 0, 2] = value
    with pytest.raises(ValueError, match=f"the {name} has NaN or infinity"):
        Conformal.fit(*arrays)


def test_fit_refuses_bad_shapes_and_signs():
    mean, std, truth = scores(4)
    with pytest.raises(ValueError, match="share one"):
        Conformal.fit(mean, std, truth[:3])
    with pytest.raises(ValueError, match="share one"):
        Conformal.fit(mean[0], std[0], truth[0])
    with pytest.raises(ValueError, match="at least one"):
        Conformal.fit(mean[:0], std[:0], truth[:0])
    with pytest.raises(ValueError, match="at least one"):
        conformal_rank(0, 0.5)
    with pytest.raises(ValueError, match="negative"):
        Conformal.fit(mean, -std, truth)


def test_forecasts_of_another_shape_are_refused():
    mean, std, truth = scores(4)
    conformal = Conformal.fit(mean, std, truth)
    for method in (conformal.interval, conformal.band):
        with pytest.raises(ValueError, match=r"shape \(2, 3\)"):
            method(mean[:, :1], std[:, :1], 0.5)
        with pytest.raises(ValueError, match=r"shape \(2, 3\)"):
            method(mean, std[0], 0.5)


@pytest.mark.parametrize("n, level", [(9, 0.7), (19, 0.9), (19, 0.95), (50, 0.9)])
def test_coverage_follows_its_beta_law(n, level):
    """2000 independent entries are 2000 calibrations, of coverage known from the normal law."""
    conformal = Conformal.fit(*scores(n, 100, 20, seed=n))
    coverage = halfnorm.cdf(np.asarray(conformal.threshold(level)).ravel())
    rank = conformal_rank(n, level)
    law = beta(rank, n + 1 - rank)
    # A rank off by one shifts the mean by 1/(n + 1), over 15 of its standard deviations.
    np.testing.assert_allclose(coverage.mean(), rank / (n + 1), atol=4 * law.std() / 2000**0.5)
    assert 1 / (n + 1) > 15 * law.std() / 2000**0.5
    assert kstest(coverage, law.cdf).pvalue > 1e-3
    low, high = coverage_range(n, level)
    np.testing.assert_allclose(np.mean((low < coverage) & (coverage < high)), 0.9, atol=0.027)


def ar1(key, trajectories, steps=50, variables=2, memory=0.9):
    """Stationary AR(1) series of unit variance."""
    noise = jax.random.normal(key, (steps, trajectories, variables))

    def step(state, kick):
        state = memory * state + (1 - memory**2) ** 0.5 * kick
        return state, state

    series = jax.lax.scan(step, jax.random.normal(key, noise.shape[1:]), noise)[1]
    return jnp.swapaxes(series, 0, 1)


def test_band_covers_whole_series_and_intervals_do_not():
    n, level, tests, repeats = 19, 0.9, 50, 200
    draw = jax.jit(jax.vmap(lambda key: ar1(key, n + tests)))
    whole, pointwise = [], []
    for series in np.asarray(draw(jax.random.split(jax.random.key(0), repeats))):
        mean, std = np.zeros_like(series), np.ones_like(series)
        conformal = Conformal.fit(mean[:n], std[:n], series[:n])
        band = conformal.band(mean[n:], std[n:], level)
        interval = conformal.interval(mean[n:], std[n:], level)
        whole.append(simultaneous_coverage(*band, series[n:]))
        pointwise.append(simultaneous_coverage(*interval, series[n:]))
    rank = conformal_rank(n, level)
    # Variance over calibration sets, and of counting successes in each finite test set.
    law = beta(rank, n + 1 - rank)
    deviation = ((law.var() + law.mean() * (1 - law.mean()) / tests) / repeats) ** 0.5
    assert 4 * deviation < 0.5 / (n + 1), "the test could not tell a rank that is off by one"
    np.testing.assert_allclose(np.mean(whole), rank / (n + 1), atol=4 * deviation)
    assert np.mean(pointwise) < 0.25
