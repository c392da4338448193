"""Derivatives from records, against closed forms: order of convergence, noise, honest errors."""

import time

import numpy as np
import pytest
from scipy.interpolate import make_interp_spline

from spenn.data._derivatives import estimate_derivatives


def _oscillation(count, end=10.0):
    times = np.linspace(0, end, count)
    decay = np.exp(-0.2 * times)
    states = np.stack([decay * np.cos(2 * times), 1 - np.exp(-times)], 1)
    rates = np.stack(
        [decay * (-0.2 * np.cos(2 * times) - 2 * np.sin(2 * times)), np.exp(-times)], 1
    )
    return times, states, rates


def _error(found, true):
    return np.sqrt(np.mean((found - true) ** 2, axis=0) / np.mean(true**2, axis=0))


def test_clean_records_converge_with_the_order_of_the_spline():
    errors = []
    for count in (101, 201):
        times, states, rates = _oscillation(count)
        estimate = estimate_derivatives(times, states)
        np.testing.assert_array_equal(estimate.states, states)
        assert estimate.order == 5
        errors.append(_error(estimate.derivatives, rates))
    assert np.all(np.log2(errors[0] / errors[1]) > 4.5)


@pytest.mark.parametrize("count", [40, 150, 600])
def test_the_stated_error_of_clean_records_is_about_the_true_one(count):
    times, states, rates = _oscillation(count)
    estimate = estimate_derivatives(times, states)
    ratio = estimate.error / _error(estimate.derivatives, rates)
    assert np.all((ratio > 0.5) & (ratio < 20))


@pytest.mark.parametrize(("noise", "gain"), [(1e-1, 10), (1e-3, 5), (1e-6, 2)])
def test_noise_is_found_and_smoothed(noise, gain):
    times, states, rates = _oscillation(400)
    noisy = states + noise * np.random.default_rng(0).standard_normal(states.shape)
    estimate = estimate_derivatives(times, noisy)
    np.testing.assert_allclose(estimate.noise, noise, rtol=0.25)
    assert np.all(_error(estimate.states, states) < 0.8 * _error(noisy, states))
    true = _error(estimate.derivatives, rates)
    through = make_interp_spline(times, noisy, k=5).derivative()(times)
    assert np.all(true < _error(through, rates) / gain)
    assert np.all((estimate.error / true > 0.3) & (estimate.error / true < 3))


def test_a_noisy_and_a_clean_variable_do_not_mind_each_other():
    times, states, rates = _oscillation(300)
    states = states.copy()
    states[:, 1] += 0.01 * np.random.default_rng(1).standard_normal(300)
    estimate = estimate_derivatives(times, states)
    np.testing.assert_array_equal(estimate.states[:, 0], states[:, 0])
    assert np.any(estimate.states[:, 1] != states[:, 1])
    assert _error(estimate.derivatives, rates)[0] < 1e-5


def test_records_that_resolve_only_just_are_not_taken_for_noise():
    times = np.arange(200.0)
    states = np.sin(0.8 * times)[:, None]
    estimate = estimate_derivatives(times, states)
    assert _error(estimate.derivatives, 0.8 * np.cos(0.8 * times)[:, None])[0] < 0.02


def test_uneven_times():
    rng = np.random.default_rng(2)
    times = np.sort(rng.uniform(0, 10, 300))
    states = np.sin(times)[:, None]
    clean = estimate_derivatives(times, states)
    assert _error(clean.derivatives, np.cos(times)[:, None])[0] < 1e-4
    noisy = estimate_derivatives(times, states + 0.01 * rng.standard_normal(states.shape))
    np.testing.assert_allclose(noisy.noise, 0.01, rtol=0.3)
    assert _error(noisy.derivatives, np.cos(times)[:, None])[0] < 0.05


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7, 23])
def test_splines_through_a_handful_of_records_do_not_claim_to_be_exact(count):
    times = np.linspace(0, 2, count)
    estimate = estimate_derivatives(times, np.exp(times)[:, None])
    true = _error(estimate.derivatives, np.exp(times)[:, None])
    assert np.all(estimate.error > 0.5 * true) and np.all(estimate.error <= 1)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_few_records_give_splines_of_lower_degree(count):
    times = np.linspace(0, 1, count)
    degree = min(5, count - 1)
    estimate = estimate_derivatives(times, times[:, None] ** degree)
    assert estimate.order == degree
    expected = degree * times[:, None] ** (degree - 1)
    np.testing.assert_allclose(estimate.derivatives, expected, atol=1e-12)


def test_what_does_not_change_has_no_derivative():
    estimate = estimate_derivatives(np.linspace(0, 1, 50), np.full((50, 1), 0.1))
    assert np.all(estimate.derivatives == 0) and estimate.error[0] == 0 and estimate.noise[0] == 0


def test_units_change_nothing():
    times, states, _ = _oscillation(200)
    states = states + 0.01 * np.random.default_rng(3).standard_normal(states.shape)
    one = estimate_derivatives(times, states)
    other = estimate_derivatives(1e9 * times, 1e-12 * states + 1e-12)
    np.testing.assert_allclose(other.derivatives * 1e21, one.derivatives, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(other.error, one.error, rtol=1e-3)


@pytest.mark.parametrize(
    ("times", "size"),
    [([0, 1e-300, 1, 2, 3, 4, 5], 1), (range(7), 1e308), ([0, 1e308, 1.7e308], 1)],
)
def test_what_no_float_can_hold_is_refused_or_finite(times, size):
    times = np.asarray(times, np.float64)
    states = size * np.sign(np.sin(3 * np.arange(len(times))))[:, None]
    try:
        estimate = estimate_derivatives(times, states)
    except ValueError as error:
        assert "choose other units" in str(error)
    else:
        assert np.all(np.isfinite(estimate.derivatives))


def test_a_hundred_trajectories_take_seconds():
    times = np.linspace(0, 1, 400)
    states = np.sin(times[:, None] * np.arange(1, 11))
    states = states + 1e-3 * np.random.default_rng(4).standard_normal(states.shape)
    start = time.process_time()
    for _ in range(25):
        estimate_derivatives(times, states)
    assert time.process_time() - start < 4
