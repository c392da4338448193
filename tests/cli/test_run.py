"""`spenn run`, as a user types it."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spenn
from spenn import cli, experiment
from spenn.cli._session import Session
from spenn.experiment._data import RunData
from spenn.forecast import Diverged, Evaluation
from spenn.generic import without
from support import tiny

NAMES = ("q", "p", "eps")
SPENN = [sys.executable, "-m", "spenn"]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Folder of one small run through the command line."""
    folder = tmp_path_factory.mktemp("cli") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "preset", tiny)
        patch.setattr(sys, "argv", ["spenn", "run", "oscillator", "--out", str(folder)])
        cli.main()
    return folder


def test_run_leaves_everything_it_promises_and_nothing_else(out):
    assert sorted(p.name for p in out.iterdir()) == [
        "config.toml",
        "figures",
        "model.spenn",
        "report.html",
        "report.npz",
        "results.json",
    ]
    assert len(list((out / "figures").glob("*.png"))) >= 4


def test_results_have_the_documented_keys(out):
    results = json.loads((out / "results.json").read_text())
    assert results["data"] == {
        "train": 60,
        "calibration": 50,
        "test": 40,
        "outside": 2,
        "steps": 999,
        "dt": 0.015,
    }
    assert 0 < results["longest_step"] <= 0.0151
    assert spenn.load(out / "model.spenn").longest_step == results["longest_step"]
    assert set(results["methods"]) == {"base", "spenn-half-normal"}
    entry = results["methods"]["spenn-half-normal"]
    for key in ("mae", "crps", "crps_fair", "error_spread_correlation"):
        assert tuple(entry[key]) == NAMES
    assert len(entry["rl2e"]["q"]["per_trajectory"]) == 40
    coverage = entry["coverage"]
    assert {0.5, 0.8, 0.9, 0.95} <= set(coverage["levels"])
    assert all(
        len(coverage[kind]["q"]) == len(coverage["levels"]) for kind in ("raw", "calibrated")
    )
    assert (
        set(entry["laws_outside"])
        == set(entry["laws"])
        == {
            "max_energy_rate",
            "max_energy_drift",
            "min_entropy_rate",
            "min_entropy_step",
            "energy_violations",
            "entropy_violations",
            "diverged",
        }
    )
    assert set(entry["seconds"]) >= {"train_base", "train_epinet", "forecast", "compile", "total"}
    assert results["paper"]["deep-ensemble"]["energy_score"] == 6.8e-2
    assert results["floor"]["mae"]["q"] < 1e-4


def test_laws_hold_even_for_a_badly_trained_model(out):
    laws = json.loads((out / "results.json").read_text())["methods"]["spenn-half-normal"]["laws"]
    assert laws["max_energy_rate"] < 1e-5
    assert laws["max_energy_drift"] < 1e-4


def test_what_happens_out_of_distribution_is_audited_apart():
    def trajectories(n):
        return spenn.Trajectories(np.arange(3.0), np.zeros((n, 3, 1)), np.zeros((n, 3, 1)), ["x"])

    data = RunData(*map(trajectories, (1, 2, 3, 2)))
    lost = (Diverged(4, 0, 1), Diverged(6, 0, 1))
    evaluation = Evaluation(np.arange(7), lost, None, None)
    summary, diverged = data.audited(evaluation, inside=True)
    assert summary.tolist() == [0, 1, 2, 3, 4] and diverged == [lost[0]]
    summary, diverged = data.audited(evaluation, inside=False)
    assert summary.tolist() == [5, 6] and diverged == [lost[1]]


def test_entropy_never_falls_even_in_a_badly_trained_model(out):
    """Beyond rounding, that is, of the slopes whose difference it is made of."""
    model = spenn.load(out / "model.spenn")

    @jax.jit
    @jax.vmap
    def rates(states, z):
        field = model.method.realise(z)

        def rate(x):
            slope = jax.grad(field.entropy)(x)
            force = without(jax.grad(field.energy)(x), slope)
            parts = (field.dissipation_slope(x, y) for y in (force, jnp.zeros_like(x)))
            velocity = field.velocity(x)
            sizes = sum(map(jnp.linalg.norm, parts)) + jnp.linalg.norm(velocity)
            return jnp.sum(slope * velocity), jnp.linalg.norm(slope) * sizes

        return jax.vmap(rate)(states)

    for start in ([0.5, 0.2, 0.0], [1.8, -1.7, 0.0]):
        forecast = model.forecast(start, 0.015 * np.arange(1000), samples=20)
        rate, size = rates(model.coordinates.scaled(forecast.samples), forecast.indices)
        assert np.all(rate >= -8 * np.finfo(np.float32).eps * size)


def test_configuration_is_written_as_it_was_used(out):
    config = tomllib.loads((out / "config.toml").read_text())
    assert config["system"] == "oscillator"
    assert config["samples"] == 6
    assert config["fit"]["epinet_steps"] == 200
    assert "prior_scale" not in config["fit"]


def test_saved_model_forecasts_with_calibrated_intervals(out):
    model = spenn.load(out / "model.spenn")
    times = 0.015 * np.arange(1000)
    forecast = model.forecast([0.5, 0.2, 0.0], times, samples=4)
    lower, upper = forecast.interval(0.9)
    assert np.all(lower <= forecast.mean) and np.all(forecast.mean <= upper)
    assert np.all(np.isfinite(upper))
    narrow, wide = forecast.interval(0.9), forecast.band(0.9)
    assert np.mean(wide[1] - wide[0]) > np.mean(narrow[1] - narrow[0])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["run", "moon"],
            "there is no system 'moon'; choose from oscillator, chemical-motor, viscoplastic.",
        ),
        (["run", "oscillator", "--preset", "slow"], "there is no preset 'slow'"),
        (["run", "oscillator", "--methods", "magic"], "there is no method 'magic'"),
        (["run", "oscillator", "--reference", "x"], "there is no reference 'x'"),
        (["run", "oscillator", "--samples", "0"], "must be at least 2; it is 0."),
        (["run", "oscillator", "--samples", "many"], "--samples"),
        (["run", "oscillator", "--seed", "-1"], "must not be negative; it is -1."),
        (["run", "oscillator", "--out", "/proc/nowhere"], "cannot write to /proc/nowhere"),
        (["run"], "system"),
        (["fly"], "No such command 'fly'"),
    ],
)
def test_bad_input_gets_one_sentence_and_code_2(arguments, says, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["spenn", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    message = capsys.readouterr().err
    assert message.startswith("spenn: ") and says in message
    assert message.count("\n") == 1 and "Traceback" not in message


def test_help_has_an_example_and_does_not_wait_for_jax():
    done = subprocess.run([*SPENN, "run", "--help"], capture_output=True, text=True, check=True)
    assert "Example:" in done.stdout and "--preset" in done.stdout
    code = "import sys, spenn.cli; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_programs_are_kept_where_the_user_keeps_such_things(tmp_path, monkeypatch):
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = jax.config.values["jax_compilation_cache_dir"]
    try:
        Session()
        assert jax.config.values["jax_compilation_cache_dir"] == str(tmp_path / "spenn" / "jax")
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_interrupt_leaves_nothing_behind(tmp_path):
    folder = tmp_path / "run"
    # What is cut off in the middle of a write to the cache is not for other tests.
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")}
    # Processes that a shell starts in the background ignore Ctrl-C, and so do their children.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    program = [sys.executable, "-c", listen + "from spenn import cli; cli.main()"]
    process = subprocess.Popen(
        [*program, "run", "oscillator", "--out", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    deadline = time.monotonic() + 120
    while not folder.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted; what was reached is kept" in error and "Traceback" not in error
    assert not folder.exists()
