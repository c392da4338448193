"""The object a user holds: forecasts, intervals, and sentences for what is asked wrongly."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spenn.config import FitConfig
from spenn.data import Trajectories
from spenn.generic import Coordinates
from spenn.integrate import Adaptive, RungeKutta
from spenn.model import Model
from support import random_spenn

SIZE = 3
SAMPLES = 7  # everywhere the same, so that one compilation serves most tests
TIMES = np.linspace(0, 0.2, 6)


@pytest.fixture(scope="module")
def model():
    units = Coordinates.of([0.1, -0.2, 1.0], [1.0, 2.0, 0.5], 0.5)
    return Model(
        ("a", "b", "c"), units, random_spenn(SIZE, 6, 1, seed=4, gain=(1.0, 1.0)), FitConfig()
    )


@pytest.fixture(scope="module")
def calibrated(model):
    """On what one of its own realisations does."""
    rng = np.random.default_rng(0)
    starts = rng.normal(size=(30, SIZE))
    states = np.stack(
        [model.forecast(x, TIMES, samples=SAMPLES, seed=9).samples[0] for x in starts]
    )
    states[:, 1:] += 1e-3 * rng.normal(size=states[:, 1:].shape)
    return model.calibrate(Trajectories(TIMES, states, names=("a", "b", "c")), samples=SAMPLES)


def test_forecast(model):
    forecast = model.forecast([0.1, 0.2, 0.3], TIMES, samples=SAMPLES, seed=3)
    assert forecast.samples.shape == (SAMPLES, 6, SIZE) and forecast.indices.shape == (SAMPLES, 3)
    assert forecast.mean.shape == forecast.std.shape == (6, SIZE)
    assert forecast.diverged == () and forecast.names == ("a", "b", "c")
    start = np.array([0.1, 0.2, 0.3], forecast.samples.dtype)
    np.testing.assert_array_equal(forecast.samples[:, 0], np.tile(start, (SAMPLES, 1)))
    np.testing.assert_array_equal(forecast.indices, model.draw(np.int64(SAMPLES), seed=3))
    again = model.forecast([0.1, 0.2, 0.3], TIMES, samples=SAMPLES, seed=3)
    np.testing.assert_array_equal(forecast.samples, again.samples)


def test_steps_are_no_longer_than_the_model_asks_for(model):
    x, careful = [0.1, 0.2, 0.3], replace(model, longest_step=0.04)
    fine = careful.forecast(x, TIMES, samples=SAMPLES).samples
    np.testing.assert_array_equal(fine, model.forecast(x, TIMES, samples=SAMPLES).samples)
    coarse = careful.forecast(x, TIMES[::5], samples=SAMPLES).samples
    np.testing.assert_allclose(coarse, fine[:, ::5], rtol=1e-5, atol=1e-6)
    one_step = model.forecast(x, TIMES[::5], samples=SAMPLES).samples
    assert np.max(np.abs(one_step - fine[:, ::5])) > 1e-4


def test_integrators_that_find_their_own_steps_are_left_alone(model):
    careful = replace(model, longest_step=0.04)
    assert isinstance(careful.integrator_for(TIMES[::5], "adaptive"), Adaptive)
    assert isinstance(careful.integrator_for(TIMES), RungeKutta)
    for own in (RungeKutta(), "rk4"):
        divided = careful.integrator_for(TIMES[::5], own)
        np.testing.assert_allclose(divided.longest, 0.04 / 0.5)  # in the model's time
    with pytest.raises(
        ValueError, match="would take 5e\\+06 steps, and 1000000 is most: forecast at"
    ):
        careful.integrator_for(5e6 * TIMES)


def test_values_are_in_the_users_units(model):
    x, z = np.array([0.1, 0.2, 0.3]), model.draw(SAMPLES, seed=0)[0]

    @jax.jit
    def values(x, z):
        return model.velocity(x, z), model.energy(x, z), model.entropy(x, z)

    velocity, energy, entropy = values(x, z)
    sample = model.forecast(x, TIMES / 40, samples=SAMPLES, seed=0).samples[0]
    np.testing.assert_allclose((sample[1] - sample[0]) / 1e-3, velocity, rtol=2e-2, atol=2e-3)
    field, scaled = model.method.realise(z), model.coordinates.scaled(x)
    np.testing.assert_allclose(energy, field.energy(scaled), rtol=1e-5)
    np.testing.assert_allclose(entropy, field.entropy(scaled), rtol=1e-5)


def test_amplitude_zero_and_base_agree(model):
    x = [0.1, 0.2, 0.3]
    still = model.with_prior_scale(0.0).forecast(x, TIMES, samples=SAMPLES)
    base = model.base.forecast(x, TIMES, samples=SAMPLES)
    np.testing.assert_allclose(still.samples, base.samples, rtol=1e-5, atol=1e-6)
    assert np.max(model.forecast(x, TIMES, samples=SAMPLES).std) > 1e-3
    assert base.indices.shape == (SAMPLES, 0)
    assert model.prior_scale == 0.5 and model.base.prior_scale == 0


@pytest.mark.parametrize("kind", ["interval", "band"])
def test_intervals(calibrated, kind):
    forecast = calibrated.forecast([0.1, 0.2, 0.3], TIMES, samples=SAMPLES)
    narrow, wide = (getattr(forecast, kind)(level) for level in (0.5, 0.9))
    for low, high in (narrow, wide):
        assert low.shape == high.shape == (6, SIZE)
        np.testing.assert_array_equal(low[0], high[0])
        assert np.all(low[1:] < high[1:])
    assert np.all(wide[0][1:] <= narrow[0][1:]) and np.all(wide[1][1:] >= narrow[1][1:])


def test_bands_are_wider_than_intervals(calibrated):
    forecast = calibrated.forecast([0.1, 0.2, 0.3], TIMES, samples=SAMPLES)
    interval, band = forecast.interval(0.8), forecast.band(0.8)
    assert np.mean(band[1] - band[0]) > np.mean(interval[1] - interval[0])


@pytest.mark.parametrize("kind", ["interval", "band"])
def test_intervals_ask_for_calibration_up_to_their_time(model, calibrated, kind):
    with pytest.raises(ValueError, match=r"not calibrated: call model\.calibrate"):
        getattr(model.forecast(np.zeros(SIZE), TIMES, samples=SAMPLES), kind)(0.9)
    other = calibrated.forecast(np.zeros(SIZE), 2 * TIMES, samples=SAMPLES)
    with pytest.raises(ValueError, match=r"calibrated up to 0\.2 .* goes on to 0\.4"):
        getattr(other, kind)(0.9)


def test_intervals_between_the_calibrated_times(calibrated):
    """Half-widths over spread lie between those of the neighbouring records, later starts agree."""
    x = [0.1, 0.2, 0.3]
    times = 7 + np.array([0, 0.06, 0.08, 0.1, 0.11, 0.12])
    fine = calibrated.forecast(x, times, samples=SAMPLES)
    whole = calibrated.forecast(x, TIMES, samples=SAMPLES)
    reaches = [(f.interval(0.8)[1] - f.mean)[1:] / f.std[1:] for f in (fine, whole)]
    np.testing.assert_allclose(reaches[0][1], reaches[1][1], rtol=1e-2)
    np.testing.assert_allclose(reaches[0][2], (reaches[1][1] + reaches[1][2]) / 2, rtol=1e-2)
    np.testing.assert_allclose(reaches[0][4], reaches[1][2], rtol=1e-2)
    bands = [(f.band(0.8)[1] - f.mean)[1:] / f.std[1:] for f in (fine, whole)]
    assert np.all(bands[0] <= 1.01 * bands[1].max())  # shorter, hence no wider


def test_calibration_belongs_to_the_family(calibrated):
    assert calibrated.calibration is not None
    assert calibrated.base.calibration is None


@pytest.mark.parametrize(
    "x0, times, samples, message",
    [
        ([0.0, 0.0], TIMES, 2, "x0 must hold 3 finite numbers"),
        ([0.0, 0.0, np.nan], TIMES, 2, "x0 must hold 3 finite numbers"),
        ([0.0] * 3, [0.0], 2, "times must be at least two numbers"),
        ([0.0] * 3, [0.0, 0.0], 2, "strictly increasing"),
        ([0.0] * 3, [0.0, np.nan], 2, "strictly increasing"),
        ([0.0] * 3, TIMES, 0, "number of samples must be at least 1"),
    ],
)
def test_bad_requests(model, x0, times, samples, message):
    with pytest.raises(ValueError, match=message):
        model.forecast(x0, times, samples=samples)


def test_negative_index_is_refused(model):
    with pytest.raises(ValueError, match="must not be negative"):
        model.velocity(np.zeros(SIZE), -jnp.ones(3))
