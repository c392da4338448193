"""`spenn inverse`, as a user types it."""

import json
import sys
import tomllib
from dataclasses import replace

import numpy as np
import pytest

from spenn import cli
from spenn.inverse import BENCHMARKS, _run


def _short(name):
    def make():
        benchmark = BENCHMARKS[name]()
        config = replace(benchmark.config, width=8, depth=1, steps=100)
        return replace(benchmark, config=config, samples=20)

    return make


def _type(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["spenn", "inverse", *map(str, words)])
    cli.main()


@pytest.fixture
def short(monkeypatch, tmp_path):
    """The same problems with tiny networks and little training."""
    monkeypatch.setattr(_run, "BENCHMARKS", {name: _short(name) for name in BENCHMARKS})


def test_both_methods_leave_everything_they_promise(short, monkeypatch, tmp_path, capsys):
    out = tmp_path / "run"
    options = ("--method", "all", "--chains", 2, "--warm-up", 20, "--draws", 8, "--out", out)
    _type(monkeypatch, "kraichnan-orszag", *options)
    assert sorted(p.name for p in out.iterdir()) == [
        "config.toml",
        "figures",
        "report.html",
        "results.json",
        "samples.npz",
    ]
    results = json.loads((out / "results.json").read_text())
    epinet, hmc = results["methods"]["epinet"], results["methods"]["hmc"]
    for entry in (epinet, hmc):
        assert set(entry["rl2e"]) == {"x1", "x2", "x3"} and entry["seconds"]["total"] > 0
        for name in ("a", "b"):
            parameter = entry["parameters"][name]
            low, high = parameter["interval95"]
            assert low <= parameter["mean"] <= high and parameter["truth"] == 1
    assert set(hmc["ess"]) == set(hmc["rhat"]) == {"a", "b"}
    assert results["paper"]["hmc"]["parameters"]["a"]["mean"] == 0.86
    with np.load(out / "samples.npz") as samples:
        assert samples["epinet/a"].shape == (20,) and samples["hmc/b"].shape == (16,)
        assert samples["epinet/a"].mean() == pytest.approx(epinet["parameters"]["a"]["mean"])
    assert tomllib.loads((out / "config.toml").read_text())["methods"] == ["epinet", "hmc"]
    said = capsys.readouterr().out
    assert "not converged" in said and "report.html" in said


def test_the_second_problem_and_the_same_seed(short, monkeypatch, tmp_path):
    for folder in ("one", "two"):
        _type(monkeypatch, "kdv", "--seed", 3, "--out", tmp_path / folder)
    one, two = (json.loads((tmp_path / f / "results.json").read_text()) for f in ("one", "two"))
    assert one["methods"]["epinet"]["parameters"] == two["methods"]["epinet"]["parameters"]
    assert set(one["methods"]["epinet"]["rl2e"]) == {"t = -1.5", "t = 0.4"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("burgers",), "there is no problem 'burgers'; choose from kraichnan-orszag, kdv."),
        (("kdv", "--method", "vi"), "there is no method 'vi'"),
        (("kdv", "--samples", "1"), "samples must be at least 2"),
        (("kdv", "--draws", "0"), "draws must be at least 4"),
        (("kdv", "--seed", "-1"), "seed must be at least 0"),
        (("kdv", "--data", "nowhere.mat"), "cannot read nowhere.mat: No such file or directory."),
    ],
)
def test_one_sentence_for_bad_input(short, monkeypatch, tmp_path, capsys, words, sentence):
    out = tmp_path / "run"
    with pytest.raises(SystemExit) as stop:
        _type(monkeypatch, *words, "--out", out)
    assert stop.value.code == 2 and not out.exists()
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1
