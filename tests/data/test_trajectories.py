"""What a user may bring, and the one sentence for what not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spenn.data import Trajectories
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
        ({"times": TIMES[:-1]}, r"one number per record: 5 records, times of shape \(4,\)"),
        ({"times": np.stack([TIMES] * 3)}, "one number per record"),
        ({"times": TIMES[::-1]}, "strictly increasing"),
        ({"times": np.zeros(5)}, "strictly increasing"),
        ({"times": TIMES[:1], "states": STATES[:, :1]}, "at least two records"),
        ({"derivatives": STATES[:, :4]}, r"derivatives have shape \(3, 4, 2\) and states"),
        (
            {"states": _with(STATES, (1, 2, 0), np.nan), "derivatives": STATES},
            r"states hold a value that is not finite, at position \(1, 2, 0\)",
        ),
        (
            {"derivatives": _with(STATES, (0, 4, 1), np.inf)},
            r"derivatives hold a value that is not finite, at position \(0, 4, 1\)",
        ),
        ({"times": _with(TIMES, 4, np.inf), "derivatives": STATES}, "times hold a value"),
        ({"names": ["q"]}, r"names must be 2 different words; they are \('q',\)"),
        ({"names": ["q", "q"]}, "names must be 2 different words"),
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
