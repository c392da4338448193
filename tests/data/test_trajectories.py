"""What a user may bring, and the one sentence for what not."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spenn.data import Trajectories, concatenate
from spenn.systems import OSCILLATOR, simulate

TIMES = np.linspace(0, 1, 5)
STATES = np.random.default_rng(0).normal(size=(3, 5, 2))


def _with(array, position, value):
    array = array.copy()
    array[position] = value
    return array


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"states": STATES[0]}, r"states must have the axes .* they have shape \(5, 2\)"),
        ({"states": [STATES[0], STATES[1, :, :1]]}, "same variables in all trajectories"),
        ({"states": "qp"}, "states must be numbers"),
        ({"states": STATES[:0]}, "states are empty"),
        ({"times": TIMES[:-1]}, r"per record: 5 records of 3 trajectories, times of shape \(4,\)"),
        ({"times": np.stack([TIMES] * 2)}, "one number per record"),
        ({"times": TIMES[::-1]}, "increasing: record 1 has the time 0.75, after 1"),
        ({"times": np.zeros(5)}, "increasing: record 1 has the time 0, after 0"),
        ({"times": [TIMES, TIMES, -TIMES]}, "times of trajectory 2 must be strictly increasing"),
        ({"times": TIMES[:1], "states": STATES[:, :1]}, "trajectory 0 has fewer than two records"),
        ({"states": [STATES[0], STATES[1, :1], STATES[2]]}, "trajectory 1 has fewer than two"),
        ({"derivatives": STATES[:, :4]}, r"derivatives have shape \(3, 4, 2\) and states"),
        (
            {"states": _with(STATES, (1, 2, 0), np.nan), "derivatives": STATES},
            "states hold a value that is not finite, at trajectory 1, record 2, variable x1",
        ),
        ({"states": _with(STATES, (1, 2), np.nan)}, "trajectory 1, record 2, variable x1"),
        ({"states": _with(STATES, (1, 4, 1), np.nan)}, "trajectory 1, record 4, variable x2"),
        ({"states": _with(STATES, (1, 4), np.inf)}, "trajectory 1, record 4, variable x1"),
        (
            {"derivatives": _with(STATES, (0, 4, 1), np.inf)},
            "derivatives hold a value that is not finite, at trajectory 0, record 4, variable x2",
        ),
        ({"times": _with(TIMES, 4, np.inf), "derivatives": STATES}, "times hold a value"),
        ({"names": ["q"]}, r"names must be 2 words, one per variable; they are \('q',\)"),
        ({"names": "qp"}, r"names must be 2 words, one per variable; they are \('qp',\)"),
        ({"names": ["q", "q"]}, "names must be different words"),
        ({"names": ["q", ""]}, "the name '' is no plain word"),
        ({"names": ["q", "../p"]}, "the name '../p' is no plain word"),
        ({"names": ["q", "p\n"]}, "is no plain word"),
        ({"units": ["m"]}, "units must be 2 words, one per variable"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message) as error:
        Trajectories(**({"times": TIMES, "states": STATES} | arguments))
    text = str(error.value)
    assert text.endswith(".") and "\n" not in text


def test_given_arrays_are_kept():
    data = Trajectories(list(TIMES), STATES.tolist(), -STATES, ["q", "p"])
    np.testing.assert_array_equal(data.states, STATES)
    np.testing.assert_array_equal(data.derivatives, -STATES)
    assert data.names == ("q", "p") and len(data) == 3
    assert Trajectories(TIMES, STATES).names == ("x1", "x2")


def test_some_trajectories():
    data = Trajectories(TIMES, STATES, -STATES)[1:]
    np.testing.assert_array_equal(data.states, STATES[1:])
    np.testing.assert_array_equal(data.derivatives, -STATES[1:])


def test_unequal_lengths_on_one_grid():
    lengths = (5, 3, 4)
    parts = [x[:n] for x, n in zip(STATES, lengths, strict=True)]
    for data in (
        Trajectories([TIMES[:n] for n in lengths], parts),
        Trajectories(TIMES, parts),
        Trajectories([TIMES] * 3, _with(_with(STATES, np.s_[1, 3:], np.nan), np.s_[2, 4], np.nan)),
    ):
        np.testing.assert_array_equal(data.lengths, lengths)
        np.testing.assert_array_equal(data.times, TIMES)
        assert data.on_one_grid() is data
        states, derivatives = data.records()
        np.testing.assert_array_equal(states, np.concatenate(parts))
        assert derivatives.shape == states.shape and np.isfinite(derivatives).all()
        np.testing.assert_array_equal(data[1:].lengths, lengths[1:])


def test_other_times_are_brought_onto_one_grid():
    rng = np.random.default_rng(1)
    times = [start + np.sort(np.append(rng.uniform(0, 6, 80), [0, 6])) for start in (0, 10, -3)]
    states = [np.stack([np.sin(t - t[0]), np.cos(t - t[0])], -1) for t in times]
    states[1], times[1] = states[1][:40], times[1][:40]
    data = Trajectories(times, states)
    assert data.times.shape == (3, 82) and len(data.records()[0]) == 82 + 40 + 82
    whole = data.on_one_grid()
    assert whole.times[0] == 0 and whole.times[-1] == 6 and whole.times.ndim == 1
    inside = np.isfinite(whole.states[1, :, 0])
    end = times[1][-1] - times[1][0]
    np.testing.assert_array_equal(inside, whole.times <= end)
    for row in whole.states[[0, 2]]:
        np.testing.assert_allclose(row[:, 0], np.sin(whole.times), atol=1e-3)
    np.testing.assert_allclose(whole.states[1, inside, 1], np.cos(whole.times[inside]), atol=1e-3)


def test_digests_tell_trajectories_apart():
    data = Trajectories(TIMES, STATES)
    later = Trajectories(TIMES + 5, [*STATES[1:], STATES[0, :3]])
    assert len(set(data.digests)) == 3
    assert later.digests[:2] == data.digests[1:] and later.digests[2] not in data.digests


def test_sets_on_different_grids_are_joined():
    one, other = Trajectories(TIMES, STATES), Trajectories(2 * TIMES, STATES[:2])
    joined = concatenate(one, other)
    assert len(joined) == 5 and joined.times.shape == (5, 5)
    np.testing.assert_array_equal(joined[3:].states, other.states)
    np.testing.assert_array_equal(concatenate(one, one).times, TIMES)


def _numbered(count):
    """Trajectory i holds the value i alone."""
    states = np.broadcast_to(np.arange(float(count))[:, None, None], (count, 5, 2))
    return Trajectories(TIMES, states, 10 * states)


@given(seed=st.none() | st.integers(0, 1000), sizes=st.lists(st.integers(1, 4), min_size=1))
def test_splits_are_disjoint_and_whole(seed, sizes):
    data = _numbered(sum(sizes) + 1)
    parts = data.split(*sizes, seed=seed)
    assert [len(p) for p in parts] == sizes
    chosen = np.concatenate([p.states[:, 0, 0] for p in parts])
    assert len(set(chosen)) == sum(sizes)
    for part in parts:
        np.testing.assert_array_equal(part.derivatives, 10 * part.states)


def test_split_is_in_order_or_follows_the_seed():
    data = _numbered(20)
    first, second = data.split(5, 5)
    np.testing.assert_array_equal(first.states[:, 0, 0], np.arange(5))
    np.testing.assert_array_equal(second.states[:, 0, 0], np.arange(5, 10))
    one, again, other = (data.split(10, seed=s)[0].states[:, 0, 0] for s in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("sizes", [(2, 2), (4,), (0, 1), (-1, 2)])
def test_impossible_splits(sizes):
    with pytest.raises(ValueError, match="cannot split 3 trajectories"):
        Trajectories(TIMES, STATES).split(*sizes)


def test_derivatives_from_a_spline():
    initial = OSCILLATOR.draw(np.random.default_rng(0), 3)
    exact = simulate(OSCILLATOR, initial, "converged")
    ours = Trajectories(exact.times, exact.states)
    np.testing.assert_allclose(ours.derivatives, exact.derivatives, atol=3e-6)
    np.testing.assert_allclose(ours.derivatives[:, 5:-5], exact.derivatives[:, 5:-5], atol=1e-8)


def test_smoothed_states_stay_with_their_trajectories():
    rng = np.random.default_rng(0)
    times = np.linspace(0, 6, 200)
    noisy = np.sin(times + rng.uniform(0, 6, (4, 1)))[..., None] + 0.05 * rng.normal(
        size=(4, 200, 1)
    )
    data = Trajectories(times, noisy)
    assert 0.01 < np.std(data.smoothed - data.states) < 0.1
    part = concatenate(data[2:], data[:2])
    np.testing.assert_array_equal(part.smoothed, data.smoothed[[2, 3, 0, 1]])
    np.testing.assert_array_equal(part.states, data.states[[2, 3, 0, 1]])
    other = replace(data, states=-noisy, derivatives=-data.derivatives)
    np.testing.assert_array_equal(other.smoothed, -noisy)
