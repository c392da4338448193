"""What `spenn inspect` sees: sizes, grids, noise, conserved combinations, and what is doubtful."""

import numpy as np
import pytest

import spenn
from spenn.data._conserved import conserved_combinations
from spenn.data._inspect import inspect, split_sizes

TIMES = np.linspace(0, 5, 60)


def _reactions(count=60, seed=0):
    """A -> B -> C in grams, kilograms and grams, and a clock: the total amount stays."""
    first, second = np.random.default_rng(seed).uniform(0.5, 2, (2, count, 1))
    a = first * np.exp(-TIMES)
    b = second * np.exp(-0.5 * TIMES) + first * (np.exp(-0.5 * TIMES) - np.exp(-TIMES))
    c = 1 + first + second - a - b
    return np.stack([a, b / 1000, c], axis=2)


def _report(tmp_path, *arguments, suffix=".nc", **options):
    path = tmp_path / f"data{suffix}"
    spenn.write(spenn.Trajectories(*arguments, **options), path)
    return str(inspect(path))


def test_a_good_file(tmp_path):
    report = _report(
        tmp_path, TIMES, _reactions(), names=("a", "b", "c"), units=("g", "kg", ""), time_unit="s"
    )
    assert "NetCDF, 60 trajectories of 3 variables" in report
    assert "60 of each trajectory" in report
    assert "0 to 5 s, one grid for all, in steps of 0.0847458" in report
    assert "splines of degree 5" in report and "none seen" in report
    assert "0.001 a + b + 0.001 c" in report
    assert "36 to learn from, 12 to calibrate, 12 to test" in report
    assert "supports levels up to 90%" in report and "Nothing looks wrong." in report


def test_trajectories_of_their_own_lengths_and_times(tmp_path):
    states = list(_reactions(30))
    states[3] = states[3][:20]
    times = [TIMES**1.5 + i for i in range(30)]
    times[3] = times[3][:20]
    report = _report(tmp_path, times, states, suffix=".csv")
    assert "CSV" in report and "20 to 60 of a trajectory, median 60, 1760 in all" in report
    assert "every trajectory has times of its own, in steps from" in report


def test_noise_is_measured_and_conserved_within_it(tmp_path):
    noise = 0.003 * np.random.default_rng(1).standard_normal((60, 60, 3)) * [1, 1e-3, 1]
    report = _report(tmp_path, TIMES, _reactions() + noise, names=("a", "b", "c"))
    assert "none seen" not in report and "0.003" in report
    assert "Never changes along any trajectory" in report


@pytest.mark.parametrize("scale", [1.0, 1e-12, 1e12])
def test_combinations_in_any_units(scale):
    states = _reactions() * [1, 1000, 1]
    extra = np.sin(TIMES) * np.arange(60)[:, None]
    states = np.concatenate([states, extra[..., None], 0 * extra[..., None]], 2)
    data = spenn.Trajectories(TIMES, states * [scale, 1, 1, 1, 1])
    found = conserved_combinations(data, np.zeros(5))
    assert found.shape == (1, 5)
    np.testing.assert_allclose(found[0] / found[0, 1], [1 / scale, 1, 1, 0, 0], rtol=1e-6)


def test_no_combination_is_found_where_there_is_none():
    times = TIMES
    states = np.stack([np.sin(times), np.cos(times), times], 1)[None] * np.ones((4, 1, 1))
    assert len(conserved_combinations(spenn.Trajectories(times, states), np.zeros(3))) == 0


def test_two_combinations_come_apart():
    rng = np.random.default_rng(2)
    a, b = (np.cumsum(rng.standard_normal((5, 60)), axis=1) for _ in range(2))
    states = np.stack([a, 3 - a, b, -2 * b], 2)
    found = conserved_combinations(spenn.Trajectories(TIMES, states, states), np.zeros(4))
    assert len(found) == 2 and all(np.count_nonzero(row) == 2 for row in found)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s[:2], "three at the very least"),
        (lambda s: s[:20], "4 trajectories to calibrate with cannot support intervals of 90 %"),
        (lambda s: np.concatenate([s, s[4:5]]), "trajectories 4 and 60 are the same"),
        (lambda s: s * [1, 1, 0], "x3 never changes along a trajectory"),
        (lambda s: s[:, :, :2] * np.sin(20 * TIMES)[:, None], "record more often"),
    ],
)
def test_doubts(change, words, tmp_path):
    report = _report(tmp_path, TIMES, change(_reactions()))
    assert "Worth a look" in report and words in report


def test_short_trajectories_are_said_to_be_short(tmp_path):
    report = _report(tmp_path, TIMES[:10], _reactions()[:, :10])
    assert "60 trajectories have fewer than 17 records" in report


def test_given_derivatives_are_compared_with_the_states(tmp_path):
    states = np.stack([np.sin(TIMES + i) for i in range(50)])[..., None]
    rates = np.stack([np.cos(TIMES + i) for i in range(50)])[..., None]
    assert "Nothing looks wrong" in _report(tmp_path, TIMES, states, rates)
    wrong = _report(tmp_path, TIMES, states, 60 * rates)
    assert "given derivatives are not those of the states: x1" in wrong
    slightly = _report(tmp_path, TIMES, states, 1.001 * rates)
    assert "given; for x1 the states tell others, which a fit learns" in slightly


@pytest.mark.parametrize(
    ("count", "shares", "sizes"),
    [
        (60, (0.6, 0.2, 0.2), [36, 12, 12]),
        (3, (0.6, 0.2, 0.2), [1, 1, 1]),
        (7, (0.9, 0.05, 0.05), [5, 1, 1]),
        (101, (0.5, 0.25, 0.25), [51, 25, 25]),
    ],
)
def test_sizes_of_a_split(count, shares, sizes):
    assert split_sizes(count, shares) == sizes


def test_every_count_can_be_split():
    for count in range(3, 200):
        sizes = split_sizes(count)
        assert sum(sizes) == count and min(sizes) >= 1


@pytest.mark.parametrize("shares", [(0.5, 0.5, 0.5), (1.0, 0.0), (np.nan, 0.5), (1.0,)])
def test_shares_that_do_not_add_up(shares):
    with pytest.raises(ValueError, match="add up to 1"):
        split_sizes(10, shares)
