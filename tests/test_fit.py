"""From trajectories to a model: short, but real, training on the oscillator."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spenn.config import FitConfig
from spenn.data import Trajectories
from spenn.fitting import (
    add_uncertainty,
    find_step,
    fit,
    fit_deterministic,
    hold_out,
    learnable,
    shortened,
)
from spenn.generic import Coordinates, Deterministic
from spenn.model import Model
from spenn.physics import Physics
from spenn.systems import OSCILLATOR, simulate
from spenn.training import RANGE
from spenn.verdict import Verdict, judge

SMALL = FitConfig(
    width=8, depth=1, steps=20, batch=64, races=2, race_steps=20,
    dimension=2, epinet_width=4, epinet_steps=10, epinet_batch=64,
)  # fmt: skip
SHORT = FitConfig(
    width=16, steps=600, batch=256, races=2, race_steps=150,
    dimension=3, epinet_width=6, epinet_steps=150, epinet_batch=256,
    mean_weight=1.0, prior_scale=0.05,
)  # fmt: skip


def _data(count, every=1):
    data = simulate(OSCILLATOR, OSCILLATOR.draw(np.random.default_rng(0), count))
    return replace(
        data,
        times=data.times[::every],
        states=data.states[:, ::every],
        derivatives=data.derivatives[:, ::every],
    )


def test_same_seed_same_model():
    data = _data(4, every=20)
    one, again = (fit(data, seed=0, config=SMALL) for _ in range(2))
    jax.tree.map(np.testing.assert_array_equal, one.method, again.method)
    low, high = RANGE
    assert low <= float(one.method.amplitude) <= high * (1 + 1e-6)


def test_bad_requests():
    data = _data(2, every=100)
    with pytest.raises(ValueError, match="there is no index 'normal'"):
        fit(data, config=replace(SMALL, index="normal"))
    with pytest.raises(ValueError, match="seed must not be negative"):
        fit(data, seed=-1)
    with pytest.raises(ValueError, match="the bootstrap must be a number from 0 on"):
        fit(data, config=replace(SMALL, bootstrap=np.nan))
    with pytest.raises(ValueError, match="the bootstrap must be a number from 0 on"):
        fit(data, config=replace(SMALL, bootstrap=np.inf))
    with pytest.raises(ValueError, match="must hold at least 4"):
        fit(data, config=replace(SMALL, epinet_batch=3))
    with pytest.raises(ValueError, match="1 training trajectories are too few"):
        fit(data[:1], config=SMALL)


def test_held_out_trajectories_are_not_learned_from():
    data = _data(10, every=100)
    learning, held = hold_out(data, replace(SMALL, validation=0.2), seed=0)
    assert len(learning) == 8 and len(held) == 2
    starts = {tuple(x) for x in learning.states[:, 0]}
    assert not any(tuple(x) in starts for x in held.states[:, 0])


@pytest.mark.parametrize("every, worth, steps", [(1, 1.0, 1), (40, 1.0, 4), (40, 1.2, 1)])
def test_steps_are_as_short_as_the_model_is_good(x64, every, worth, steps):
    """Exact physics in long steps gains by shorter ones, up to the error of the data.

    With a wrong mass it gains nothing.
    """
    data = _data(5, every=every)
    wrong = Coordinates.of(np.zeros(3), np.array([1.0, worth, 1.0]), 1.0)
    base = Model.of(data, 0, wrong, Deterministic(OSCILLATOR.exact().blocks), SMALL)
    record = data.times[1]
    np.testing.assert_allclose(find_step(base, data), record / steps, rtol=1e-9)


@pytest.mark.parametrize(
    "errors, parts",
    [
        ([5.0, 4.0, 4.0, 4.0], 1),
        ([9.0, 2.0, 1.0, 1.0], 2),
        ([np.inf, np.inf, 2.0, 1.0], 4),  # stiff: shorter steps are what it takes
        ([np.inf, np.inf, np.inf, np.inf], 1),  # steps are not to blame
        ([99.0, 30.0, 9.0, 1.0], 8),
        ([0.0, 0.0, 0.0, 0.0], 1),
        ([2.0, np.inf, 2.0, 2.0], 1),  # one that diverges is no reason for shorter ones
    ],
)
def test_how_short_a_step_pays(errors, parts):
    of_steps = dict(zip((1.0, 0.5, 0.25, 0.125), errors, strict=True))
    assert shortened(1.0, lambda step: np.array([4.0, of_steps[step]])) == 1 / parts


@pytest.mark.parametrize(
    "times, step",
    [
        (np.append(np.arange(20.0), 90.0), 1.0),  # a gap
        (np.append(np.arange(10.0), 12.0), 1.0),  # one gap in ten
        (np.arange(20.0) + 0.2 * (np.arange(20) % 2), 1.2),  # jitter
        (np.ravel(10 * np.arange(4)[:, None] + 0.1 * np.arange(5)), 0.1),  # bursts
        (np.append(np.arange(20) / 1e6, 1.0), 1 / 20 / 20),  # a burst, and one record at the end
    ],
)
def test_the_typical_step_of_uneven_times(times, step):
    data = Trajectories(times, np.zeros((2, len(times), 1)), np.zeros((2, len(times), 1)))
    np.testing.assert_allclose(data.typical_step, step, rtol=1e-9)


@pytest.mark.parametrize("times", [np.geomspace(1e-8, 1e4, 200), np.append(np.arange(49.0), 1e8)])
def test_no_times_of_data_ask_for_endless_forecasts(times):
    data = Trajectories(times, np.zeros((2, len(times), 1)), np.zeros((2, len(times), 1)))
    steps = np.ceil(np.diff(times) / data.typical_step)
    assert steps.sum() <= 21 * len(steps)


def test_coordinates_are_those_of_the_derivatives_that_are_learned():
    """Of a coarse integrator's states, when the given ones are those of other equations."""
    data = _data(6)
    wrong = replace(data, derivatives=1.04 * data.derivatives)
    as_given = replace(SMALL, agreeing=False)
    cases = ((data, SMALL), (wrong, SMALL), (wrong, as_given))
    right, mended, kept = (fit_deterministic(some, 0, config) for some, config in cases)
    units = [model.coordinates.time_unit for model in (right, mended, kept)]
    np.testing.assert_allclose(units, units[0] / np.array([1, 1, 1.04]), rtol=1e-4)
    assert "of q, p, eps are learned from the states" in judge(mended, wrong).sentences[-1]
    assert judge(kept, wrong).contradicted == ()


def test_what_is_known_goes_with_the_derivatives_that_are_given():
    data = _data(6)
    wrong = replace(data, derivatives=1.04 * data.derivatives)
    assert learnable(wrong, SMALL, Physics()) is not wrong
    known = Physics(poisson=lambda x: jnp.zeros((3, 3)))
    assert learnable(wrong, SMALL, known) is wrong


def test_stage_two_learns_whose_derivatives_its_base_has_learned():
    data = _data(6)
    wrong = replace(data, derivatives=1.04 * data.derivatives)
    given, other = (replace(SMALL, prior_scale=0.01, agreeing=a) for a in (False, True))
    base = fit_deterministic(wrong, 0, given)
    one, two = (add_uncertainty(base, wrong, 0, config).method for config in (given, other))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_verdict_names_a_few_variables():
    names = tuple(f"x{i}" for i in range(30))
    said = Verdict(2, {name: 0.1 for name in names}, 0.0, 0.0, names).sentences[-1]
    assert "of x0, x1, x2, x3, x4, x5, x6, x7, x8, x9 and others are learned" in said


@pytest.fixture(scope="module")
def fitted():
    """A deterministic model, epinets on it, and the losses on the way."""
    losses = {"base": [], "epinet": []}

    def report(stage, steps, loss):
        losses[stage].append(loss)

    data = _data(20)
    base = fit_deterministic(data, 0, SHORT, report=report)
    return base, add_uncertainty(base, data, 0, SHORT, report=report), losses


@pytest.mark.slow
class TestOscillator:
    def test_losses_fall(self, fitted):
        _, _, losses = fitted
        assert losses["base"][-1] < 1e-3
        assert losses["epinet"][-1] < losses["epinet"][0]

    def test_forecast_is_close_and_lawful(self, fitted):
        _, model, _ = fitted
        truth = simulate(OSCILLATOR, np.array([[0.8, -0.5, 0.0]])).states[0]
        forecast = model.forecast(truth[0], OSCILLATOR.times, samples=10)
        assert np.max(np.abs(forecast.mean - truth)) < 0.1

        @jax.jit
        @jax.vmap
        def values(states, z):
            field = model.method.realise(z)
            return jax.vmap(field.energy)(states), jax.vmap(field.entropy)(states)

        scaled = model.coordinates.scaled(forecast.samples)
        energy, entropy = values(scaled, forecast.indices)
        size = np.max(np.abs(entropy))
        assert np.max(np.abs(energy - energy[:, :1])) < 1e-4 * max(1, np.max(np.abs(energy)))
        assert np.min(np.diff(entropy, axis=1)) >= -1e-6 * size
        assert np.all(entropy[:, -1] > entropy[:, 0] + 1e-2 * size)

    def test_base_is_untouched_by_stage_two(self, fitted):
        base, model, _ = fitted
        jax.tree.map(np.testing.assert_array_equal, base.method.base, model.method.base)
