"""`spenn run viscoplastic`: few and short trajectories, but everything of a field."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import spenn
from spenn import cli, experiment
from spenn.systems import SYSTEMS, VISCOPLASTIC, simulate
from support import tiny

SMALL = replace(VISCOPLASTIC, split=(6, 4, 2), records=40)


def _preset(name, system):
    config = tiny(name, system)
    return replace(config, fit=replace(config.fit, prior_scale=1e-3))


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Folder of one small run."""
    folder = tmp_path_factory.mktemp("systems") / "bar"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SYSTEMS, SMALL.name, SMALL)
        patch.setattr(experiment, "preset", _preset)
        arguments = ["spenn", "run", SMALL.name, "--reference", "converged", "--out", str(folder)]
        patch.setattr(sys, "argv", arguments)
        cli.main()
    return folder


def test_results_hold_every_variable_and_the_papers(out):
    results = json.loads((out / "results.json").read_text())
    entry = results["methods"]["spenn-half-normal"]
    for key in ("mae", "crps", "crps_fair", "error_spread_correlation", "spread_outside"):
        assert tuple(entry[key]) == SMALL.names
    for figures in results["paper"].values():
        assert tuple(figures["crps"]) == SMALL.names
    assert all(np.isfinite(v) and v > 0 for v in entry["crps"].values())
    floor, mae = results["floor"]["mae"], results["methods"]["base"]["mae"]
    assert all(0 <= floor[name] < mae[name] for name in SMALL.names)


def test_laws_hold_along_every_sample_and_in_every_cell(out):
    laws = json.loads((out / "results.json").read_text())["methods"]["spenn-half-normal"]["laws"]
    assert laws["diverged"] == 0
    assert laws["max_energy_rate"] < 1e-5
    assert laws["max_energy_drift"] < 1e-3
    assert laws["min_entropy_rate"] > -1e-6


def test_fields_get_their_panels(out):
    assert len(list((out / "figures").glob("fields-*.png"))) == 1


def test_the_saved_model_forecasts_a_bar_with_prescribed_ends(out):
    model = spenn.load(out / "model.spenn")
    (truth,) = simulate(SMALL, np.array([[0.015]]), "converged").states
    where = list(model.method.domain.prescribed)
    options = {"times": SMALL.times, "samples": 3}
    start = truth[0].copy()
    start[where] = 1e6  # what is prescribed wins
    forecast = model.forecast(start, prescribed=truth[:, where], **options)
    assert forecast.samples.shape == (3, *truth.shape)
    np.testing.assert_allclose(forecast.mean[:, where], truth[:, where], rtol=1e-4, atol=1e-6)
    free = model.method.domain.free(truth.shape[1])
    np.testing.assert_array_equal(forecast.samples[:, 0, free], [truth[0, free]] * 3)
    lower, upper = forecast.interval(0.5)
    assert np.all(lower <= forecast.mean) and np.all(forecast.mean <= upper)
    with pytest.raises(ValueError, match="prescribed"):
        model.forecast(truth[0], **options)
