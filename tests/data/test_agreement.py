"""Derivatives that contradict their states: whose are learned."""

from dataclasses import replace

import numpy as np
import pytest

from spenn import Trajectories
from spenn.data import agreeing, differing

STEP = 0.05
EACH, TOGETHER = np.arange(2), np.zeros(2, int)


def _rotation(rate=1.0, noise=0.0, step=STEP):
    """Points on circles that turn at some rate, with the derivatives of those that turn at one."""
    times = np.arange(0, 10, step)
    angles = rate * times + np.array([[0.3], [1.2], [2.5]])
    states = np.stack([np.cos(angles), -np.sin(angles)], -1) * np.array([[[1.0]], [[0.7]], [[2.0]]])
    rates = np.stack([states[..., 1], -states[..., 0]], -1)
    states = states + noise * np.random.default_rng(0).standard_normal(states.shape)
    return Trajectories(times, states, rates, names=("q", "p"))


def _midpoint():
    """What implicit midpoint makes of an oscillator: it turns a little too slowly."""
    return _rotation(2 / STEP * np.arctan(STEP / 2))


def test_derivatives_of_exact_equations_give_way_to_those_of_an_integrators_states():
    data = _midpoint()
    made = agreeing(data, EACH, TOGETHER)
    slower = 2 / STEP * np.arctan(STEP / 2)
    assert 1 - slower > 1e-4
    np.testing.assert_allclose(made.derivatives, slower * data.derivatives, atol=1e-7)
    np.testing.assert_array_equal(made.states, data.states)
    np.testing.assert_array_equal(made.smoothed, data.states)


def _short(records, noise):
    """The first records alone, and of other turns too."""
    data = _rotation(1.0002, noise)
    rows = [data.states[:, i : i + records] for i in range(0, 180, 20)]
    rates = [data.derivatives[:, i : i + records] for i in range(0, 180, 20)]
    return Trajectories(data.times[:records], np.concatenate(rows), np.concatenate(rates))


def _stiff(rate):
    """What falls onto a slow curve, far faster than it is recorded."""
    times, start = np.arange(0, 10, 0.1), np.array([[1.0], [2.0]])
    fall = start * np.exp(-rate * times)
    states, rates = np.cos(times) + fall, -np.sin(times) - rate * fall
    return Trajectories(times, np.stack([states] * 2, -1), np.stack([rates] * 2, -1))


@pytest.mark.parametrize(
    "data",
    [
        _rotation(),
        replace(_rotation(), derivatives=_rotation().derivatives.round(6)),
        _rotation(1.0002, noise=1e-2),
        _rotation(1.0002, step=1.0),
        _rotation(step=6.4),
        _rotation(1.07),
        *(_short(records, noise) for records in (2, 3, 4, 5, 16) for noise in (0.0, 1e-2)),
        _stiff(1e3),
        _stiff(1e5),
    ],
)
def test_derivatives_stay_where_the_states_do_not_know_better(data):
    """Right to the last digit; or noisy, coarse, hardly one record a turn, far off, few, stiff."""
    assert agreeing(data, EACH, TOGETHER) is data


def test_derivatives_stay_where_they_are_off_at_a_few_records():
    """An event, or a sensor that slipped: no integrator of other equations."""
    data = _rotation()
    rates = data.derivatives.copy()
    rates[:, ::10] *= 1.05
    data = replace(data, derivatives=rates)
    assert agreeing(data, EACH, TOGETHER) is data


def test_a_trajectory_that_alone_is_noisy_keeps_its_derivatives():
    data, noise = _midpoint(), np.zeros((3, 200, 2))
    noise[1] = 1e-2 * np.random.default_rng(0).standard_normal((200, 2))
    made = agreeing(replace(data, states=data.states + noise), EACH, TOGETHER)
    changed = np.any(made.derivatives != data.derivatives, (1, 2))
    np.testing.assert_array_equal(changed, [True, False, True])


def test_a_variable_that_never_changes_contradicts_nothing():
    data = _midpoint()
    states, rates = data.states.copy(), data.derivatives.copy()
    states[..., 1], rates[..., 1] = 1.0, 1e-17
    made = agreeing(replace(data, states=states, derivatives=rates), EACH, TOGETHER)
    assert np.any(made.derivatives[..., 0] != rates[..., 0])
    np.testing.assert_array_equal(made.derivatives[..., 1], rates[..., 1])


def test_equations_change_together_or_not_at_all():
    """One right rate beside a wrong one, and one that records do not tell."""
    data = _midpoint()
    right = agreeing(data, EACH, TOGETHER).derivatives
    half = replace(data, derivatives=np.stack([right[..., 0], data.derivatives[..., 1]], -1))
    np.testing.assert_array_equal(agreeing(half, EACH, TOGETHER).derivatives, right)
    assert differing(half, agreeing(half, EACH, EACH)) == ("p",)
    noise = 1e-2 * np.random.default_rng(0).standard_normal(data.states.shape[:2])
    noisy = replace(data, states=data.states + np.stack([0 * noise, noise], -1))
    assert agreeing(noisy, EACH, TOGETHER) is noisy
    assert differing(noisy, agreeing(noisy, EACH, EACH)) == ("q",)


def test_a_field_is_one_variable_of_many_entries():
    data = _midpoint()
    right = agreeing(data, EACH, TOGETHER).derivatives
    half = replace(data, derivatives=np.stack([right[..., 0], data.derivatives[..., 1]], -1))
    np.testing.assert_array_equal(agreeing(half, TOGETHER, TOGETHER).derivatives, right)


def test_a_few_long_trajectories_do_not_speak_for_many_short_ones():
    long = _midpoint()
    cut = [0, 1, 2, 0, 1, 2], [200, 16, 16, 16, 16, 16]
    pieces = (
        [a[i, :n] for i, n in zip(*cut, strict=True)] for a in (long.states, long.derivatives)
    )
    times = [long.times[:n] for n in cut[1]]
    data = Trajectories(times, *pieces)
    assert agreeing(data, EACH, TOGETHER) is data


def test_derivatives_stay_where_most_trajectories_do_not_know_better():
    data = _midpoint()
    noise = 1e-2 * np.random.default_rng(0).standard_normal(data.states.shape)
    noise[0] = 0
    noisy = replace(data, states=data.states + noise)
    assert agreeing(noisy, EACH, TOGETHER) is noisy


def test_trajectories_of_unequal_lengths_and_times_keep_their_tails():
    data = _midpoint()
    rows = [(data.times[:n] + i, x[:n], d[:n]) for i, (x, d, n) in enumerate(_cut(data))]
    times, states, rates = zip(*rows, strict=True)
    uneven = Trajectories(times, states, rates, names=("q", "p"))
    made = agreeing(uneven, EACH, TOGETHER)
    np.testing.assert_array_equal(made.lengths, [200, 150, 90])
    np.testing.assert_array_equal(np.isnan(made.derivatives), np.isnan(uneven.derivatives))
    assert np.nanmax(np.abs(made.derivatives - uneven.derivatives)) > 1e-4


def _cut(data):
    return zip(data.states, data.derivatives, (200, 150, 90), strict=True)


def test_states_that_no_spline_can_follow_contradict_nothing():
    times = np.array([0.0, 1e-300, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    states = np.random.default_rng(0).uniform(size=(2, 8, 2)) * 1e200
    data = Trajectories(times, states, np.ones_like(states))
    assert agreeing(data, EACH, TOGETHER) is data
