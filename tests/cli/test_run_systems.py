"""`spenn run` of the systems beside the oscillator: small, but everything."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import spenn
from spenn import cli, experiment
from spenn.systems import SYSTEMS
from support import tiny


@pytest.fixture(scope="module", params=["chemical-motor", "viscoplastic"])
def run(request, tmp_path_factory):
    """Folder of a run with a few short trajectories."""
    name = request.param
    folder = tmp_path_factory.mktemp("systems") / name
    with pytest.MonkeyPatch.context() as patch:
        small = replace(SYSTEMS[name], split=(10, 5, 3), records=80)
        patch.setitem(SYSTEMS, name, small)
        patch.setattr(experiment, "preset", tiny)
        patch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))
        arguments = ["spenn", "run", name, "--reference", "converged", "--out", str(folder)]
        patch.setattr(sys, "argv", arguments)
        cli.main()
    return small, folder


def test_results_hold_every_variable_of_the_system_and_the_papers(run):
    system, folder = run
    results = json.loads((folder / "results.json").read_text())
    entry = results["methods"]["spenn-half-normal"]
    for key in ("mae", "crps", "crps_fair", "error_spread_correlation", "spread_outside"):
        assert tuple(entry[key]) == system.names
    for figures in results["paper"].values():
        assert tuple(figures["crps"]) == system.names
    assert all(np.isfinite(v) and v > 0 for v in entry["crps"].values())
    floor, mae = results["floor"]["mae"], results["methods"]["base"]["mae"]
    assert all(0 <= floor[name] < mae[name] for name in system.names)


def test_laws_hold_along_every_sample(run):
    laws = json.loads((run[1] / "results.json").read_text())["methods"]["spenn-half-normal"]["laws"]
    assert laws["diverged"] == 0
    assert laws["max_energy_rate"] < 1e-5
    assert laws["min_entropy_rate"] > -1e-6


def test_fields_get_their_panels_and_points_do_not(run):
    system, folder = run
    drawn = list((folder / "figures").glob("fields-*.png"))
    assert len(drawn) == (1 if system.name == "viscoplastic" else 0)


def test_the_model_can_be_read_again(run):
    system, folder = run
    model = spenn.load(folder / "model.spenn")
    assert len(model.names) == model.method.domain.size(len(system.names))
