"""Data of one's own, from a file to a trusted forecast, as a user types it."""

import csv
import errno
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import spenn
from spenn import cli
from spenn.experiment import _evaluate

CONFIG = """
[fit]
width = 15
steps = 2000
race_steps = 200
races = 2
batch = 128
epinet_steps = 100
epinet_batch = 256
epinet_width = 5
prior_width = 5
prior_scale = 0.01
"""
LEARNED, CALIBRATION, TEST = 6, 9, 4


def _type(*words):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["spenn", *map(str, words)])
        cli.main()


def _refused(capsys, *words):
    """The one sentence with which a command ends."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        _type(*words)
    said = capsys.readouterr()
    assert stop.value.code == 2
    assert said.err.startswith("spenn: ") and said.err.count("\n") == 1, said.err
    return said.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of an oscillator, the last sets with trajectories that end early."""
    folder = tmp_path_factory.mktemp("own")
    _type("example", folder / "cases.nc", "--trajectories", LEARNED + CALIBRATION + TEST)
    whole = spenn.read(folder / "cases.nc")
    states = whole.states[:, :60].copy()
    states[LEARNED::3, 40:] = np.nan
    cases = spenn.Trajectories(
        whole.times[:60], states, names=whole.names, units=whole.units, time_unit="s"
    )
    sets = cases.split(LEARNED, CALIBRATION, TEST)
    for name, part in zip(("train", "calibration", "test"), sets, strict=True):
        spenn.write(part, folder / f"{name}.nc")
    (folder / "config.toml").write_text(CONFIG)
    model = folder / "model.spenn"
    _type("fit", folder / "train.nc", "--out", model, "--config", folder / "config.toml")
    return folder


@pytest.fixture(scope="module")
def calibrated(folder):
    out = folder / "calibrated.spenn"
    _type("calibrate", folder / "model.spenn", folder / "calibration.nc", "--out", out,
          "--level", 0.8, "--samples", 20)  # fmt: skip
    return out


@pytest.fixture(scope="module")
def evaluated(folder, calibrated):
    out = folder / "evaluated"
    _type("evaluate", calibrated, folder / "test.nc", "--out", out, "--samples", 20)
    return out


def test_fit_writes_one_file_and_a_verdict(folder, capsys):
    out = folder / "again.spenn"
    before = {path.name for path in folder.iterdir()}
    _type("fit", folder / "train.nc", "--out", out, "--config", folder / "config.toml")
    said = capsys.readouterr().out
    assert "the worst variable is" in said and "Energy is learned to" in said
    assert {path.name for path in folder.iterdir()} - before == {"again.spenn"}
    assert out.read_bytes() == (folder / "model.spenn").read_bytes()
    out.unlink()


def test_the_model_remembers(folder):
    model, train = spenn.load(folder / "model.spenn"), spenn.read(folder / "train.nc")
    assert model.names == ("q", "p", "eps") and model.units == ("m", "kg m/s", "J")
    assert model.time_unit == "s" and model.config.width == 15 and model.calibration is None
    assert model.provenance.trajectories == train.digests


def test_evaluation_leaves_results_report_and_figures(evaluated):
    assert {p.name for p in evaluated.iterdir()} == {
        "figures",
        "report.html",
        "report.npz",
        "results.json",
    }
    results = json.loads((evaluated / "results.json").read_text())
    assert set(results["methods"]) == {"base", "spenn-half-normal"}
    assert results["data"] == {
        "train": LEARNED,
        "calibration": CALIBRATION,
        "test": TEST,
        "steps": 59,
    }
    entry = results["methods"]["spenn-half-normal"]
    assert entry["samples"] == 20 and all(np.isfinite(list(entry["crps"].values())))
    assert len(entry["rl2e"]["q"]["per_trajectory"]) == TEST
    at = entry["coverage"]["levels"].index(0.5)
    assert all(0 <= entry["coverage"]["calibrated"][name][at] <= 1 for name in entry["crps"])


def test_the_report_is_made_again_from_its_numbers(evaluated):
    before = {p: p.read_bytes() for p in evaluated.rglob("*") if p.is_file()}
    (evaluated / "report.html").unlink()
    _type("report", evaluated)
    assert (evaluated / "report.html").read_bytes() == before[evaluated / "report.html"]
    assert {p for p in evaluated.rglob("*") if p.is_file()} == set(before)


def test_a_report_that_is_cut_short_leaves_the_results(evaluated, monkeypatch):
    before = (evaluated / "results.json").read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(SystemExit):
        _type("report", evaluated)
    assert (evaluated / "results.json").read_bytes() == before
    monkeypatch.undo()
    _type("report", evaluated)
    assert (evaluated / "report.html").exists()


def test_forecast_as_a_table(folder, calibrated, capsys):
    capsys.readouterr()
    _type("forecast", calibrated, "--start", "p=0, q=1, eps=0.5", "--until", 2, "--records", 5,
          "--samples", 20, "--level", 0.8)  # fmt: skip
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [float(row["time"]) for row in rows] == [0, 0.5, 1, 1.5, 2]
    assert float(rows[0]["q"]) == 1 and float(rows[0]["q lower"]) == float(rows[0]["q upper"]) == 1
    for row in rows[1:]:
        assert float(row["eps lower"]) < float(row["eps"]) < float(row["eps upper"])
        assert float(row["p std"]) > 0


def test_a_forecast_in_a_process_of_its_own_says_all_of_it(folder, calibrated, capsys):
    """It runs on all cores and ends in a hurry."""
    words = ("forecast", calibrated, "--start", "q=1,p=0,eps=0.5", "--until", 2, "--samples", 7)
    capsys.readouterr()
    _type(*words)
    here = np.loadtxt(io.StringIO(capsys.readouterr().out), delimiter=",", skiprows=1)
    command = [sys.executable, "-m", "spenn", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    there = np.loadtxt(io.StringIO(done.stdout), delimiter=",", skiprows=1)
    np.testing.assert_allclose(there, here, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("suffix", [".npz", ".nc", ".csv"])
def test_forecasts_of_a_file_in_every_format(folder, calibrated, suffix):
    out = folder / f"forecast{suffix}"
    _type("forecast", calibrated, "--data", folder / "test.nc", "--samples", 20, "--level", 0.8,
          "--out", out)  # fmt: skip
    if suffix == ".npz":
        with np.load(out) as file:
            assert file["samples"].shape == (TEST, 20, 60, 3)
            assert file["mean"].shape == file["upper"].shape == (TEST, 60, 3)
            np.testing.assert_allclose(file["samples"].mean(1), file["mean"], rtol=1e-4, atol=1e-5)
            assert np.all(file["lower"] <= file["upper"])
    elif suffix == ".nc":
        xarray = pytest.importorskip("xarray")
        with xarray.open_dataset(out, engine="h5netcdf") as file:
            assert file["samples"].dims == ("trajectory", "sample", "time", "variable")
            assert list(file["variable"].values) == ["q", "p", "eps"]
    else:
        assert len(out.read_text().splitlines()) == 1 + TEST * 60


def test_without_calibration_there_are_no_intervals(folder, capsys):
    capsys.readouterr()
    model = folder / "model.spenn"
    _type("forecast", model, "--start", "q=1,p=0,eps=0.5", "--until", 1, "--samples", 20)
    said = capsys.readouterr()
    assert "is not calibrated: the forecast has no intervals" in said.err
    assert "lower" not in said.out.splitlines()[0] and "q std" in said.out.splitlines()[0]


def test_check_finds_no_violation(folder, capsys):
    few = ("--pairs", 2000, "--samples", 2)
    _type("check", folder / "model.spenn", *few)
    said = capsys.readouterr().out
    assert "2,000 random pairs of a state and an index: no violation" in said
    assert "rk4, 1,000 records: energy kept to" in said
    kept = re.search(
        r"discrete-gradient, 1,000 records: energy kept to (\S+) of its range (.*)", said
    )
    assert kept and float(kept[1]) < 1e-12
    assert kept[2].count("(0 ") == 2 and "0 samples lost. Sweeps per step" in kept[2]
    given = ("--data", folder / "test.nc", "--integrators", "none")
    _type("check", folder / "model.spenn", *few, *given)
    said = capsys.readouterr().out
    assert "no violation" in said and "rk4" not in said


def test_rollouts_are_audited_in_the_steps_of_forecasts(folder):
    model, data = spenn.load(folder / "model.spenn"), spenn.read(folder / "test.nc")[:1]
    fine = replace(model, longest_step=model.longest_step / 4)
    coarse, fine = (_evaluate.audit_rollouts(m, "rk4", data, 2, 0) for m in (model, fine))
    assert fine["max_energy_drift"] < 0.1 * coarse["max_energy_drift"]
    assert fine["records"] == coarse["records"]


def test_rollouts_from_random_states_take_no_finer_steps_than_forecasts(folder):
    model = spenn.load(folder / "model.spenn")
    step = float(model.coordinates.time_unit) / 4
    coarse = replace(model, longest_step=step)
    usual, long = (_evaluate.audit_rollouts(m, "rk4", None, 2, 0) for m in (model, coarse))
    assert long["max_energy_drift"] > 10 * usual["max_energy_drift"]


def test_a_violation_ends_with_exit_code_one(folder, monkeypatch, capsys):
    lost = {"max_energy_drift": None, "diverged": 2, "energy_violations": 0}
    monkeypatch.setattr(_evaluate, "audit_rollouts", lambda *_: lost | {"entropy_violations": 0})
    few = ("--pairs", 100, "--integrators", "discrete-gradient")
    with pytest.raises(SystemExit) as stop:
        _type("check", folder / "model.spenn", *few)
    assert stop.value.code == 1
    assert "discrete-gradient: all 2 rollouts were lost." in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, sentence",
    [
        ("calibrate {model} {train}", "has learned from 6 of the 6 trajectories of"),
        ("calibrate {model} {calibration} --level 0.95", "it takes 19, or a level of 0.90 or less"),
        ("calibrate {model} {calibration} --level 2", "must lie strictly between 0 and 1"),
        ("calibrate {model} {calibration} --samples 0", "number of samples must be at least 1"),
        ("calibrate {model} {calibration} --level 0.8 --integrator euler", "no integrator 'euler'"),
        ("check {model} --integrators rk4,euler", "no integrator 'euler'; choose from rk4"),
        ("calibrate {model} {other}", "has the variables a, b, c, and the model those named q, p"),
        ("calibrate {model} {missing}", "missing.nc"),
        ("calibrate {missing} {calibration}", "missing.nc cannot be read"),
        ("calibrate {model} {calibration} --level 0.8 --out {folder}", "is a folder: name a file"),
        ("evaluate {model} {test} --out {new}", "is not calibrated: run spenn calibrate first"),
        ("evaluate {calibrated} {train} --out {new}", "has learned from 6"),
        ("evaluate {calibrated} {other} --out {new}", "has the variables a, b, c"),
        ("evaluate {calibrated} {long} --out {new}", "calibrated up to 4.425 .* goes on to 8.85"),
        ("evaluate {calibrated} {test} --out {new} --samples 0", "at least 1"),
        ("evaluate {calibrated} {test} --out {model}", "cannot write to"),
        ("forecast {calibrated}", "either --start or --data"),
        ("forecast {calibrated} --start q=1,p=0 --level 0.8", "name each of q, p, eps once"),
        ("forecast {calibrated} --start q=1,p=0,eps=x --level 0.8", "must name every variable"),
        ("forecast {calibrated} --start q=1,q=1,p=0,eps=0 --level 0.8", "each of q, p, eps once"),
        ("forecast {calibrated} --start q=nan,p=0,eps=0 --level 0.8", "3 finite numbers"),
        ("forecast {calibrated} --start q=1,p=0,eps=0 --level 0.95", "it takes 19"),
        ("forecast {calibrated} --start q=1,p=0,eps=0 --level 0.8 --until -1", "above zero"),
        ("forecast {calibrated} --start q=1,p=0,eps=0 --level 0.8 --until 99", "calibrated up to"),
        ("forecast {calibrated} --start q=1,p=0,eps=0 --level 0.8 --until 1 --records 1", "from 2"),
        ("forecast {calibrated} --start q=1,p=0,eps=0 --level 0.8 --out {new}", "no suffix"),
        ("forecast {calibrated} --start q=1,p=0,eps=0 --out {new}/f.csv", "there is no folder"),
        ("forecast {model} --start q=1,p=0,eps=0", "say until when"),
        ("check {model} --pairs 0", "at least 1"),
        ("check {train}", "is not a spenn file"),
        ("check {model} --data {other}", "has the variables a, b, c"),
        ("report {folder}", "holds no results.json"),
        ("report {missing}", "holds no results.json"),
        ("report {new}/deep", "holds no results.json"),
        ("fit {train} --out {new}/model.spenn", "there is no folder"),
        ("fit {train} --out {folder}", "is a folder: name a file"),
        ("fit {missing} --out {new}", "missing.nc"),
        ("fit {train} --out {new} --config {missing}", "missing.nc cannot be read"),
        ("fit {train} --out {new} --config {train}", "is no TOML file"),
        ("fit {train} --out {new} --config {typo}", r"no 'widht' \(did you mean 'width'\?\)"),
        ("fit {train} --out {new} --config {kind}", "steps in .fit. cannot be 'many'"),
        ("fit {train} --out {new} --config {table}", r"the tables are \[fit\] and \[physics\]"),
        ("fit {train} --out {new} --seed -1", "seed must not be negative"),
        ("fit {one} --out {new}", "1 training trajectories are too few"),
    ],
)
def test_one_sentence_for_bad_input(folder, calibrated, capsys, words, sentence):
    _wrong_files(folder)
    names = ("train", "calibration", "test", "missing", "other", "long", "one")
    places = {name: folder / f"{name}.nc" for name in names}
    places |= {name: folder / f"{name}.toml" for name in ("typo", "kind", "table")}
    places |= {"model": folder / "model.spenn", "calibrated": calibrated, "folder": folder}
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*") if "cache" not in p.parts}
    typed = [word.format(**places, new=folder / "new") for word in words.split()]
    error = _refused(capsys, *typed)
    assert re.search(sentence, error), error
    after = {p: p.stat().st_mtime_ns for p in folder.rglob("*") if "cache" not in p.parts}
    assert {p: t for p, t in after.items() if not p.is_dir()} == {
        p: t for p, t in before.items() if not p.is_dir()
    }
    assert not (folder / "new").exists()


def _wrong_files(folder):
    if (folder / "one.nc").exists():
        return
    test = spenn.read(folder / "test.nc")
    spenn.write(replace(test, names=("a", "b", "c")), folder / "other.nc")
    spenn.write(replace(test, times=2 * test.times), folder / "long.nc")
    spenn.write(spenn.read(folder / "train.nc")[:1], folder / "one.nc")
    (folder / "typo.toml").write_text("[fit]\nwidht = 3\n")
    (folder / "kind.toml").write_text("[fit]\nsteps = 'many'\n")
    (folder / "table.toml").write_text("[fits]\nsteps = 3\n")
