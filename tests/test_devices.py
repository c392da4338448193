"""Any number of devices and processes: one answer, to rounding."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import spenn
from spenn.baselines import fit_ensemble
from spenn.forecast import evaluate
from spenn.generic import Coordinates
from spenn.training import attach_epinets
from support import random_spenn

SIZE, SMALL = 3, 0.02
TIMES = np.linspace(0, 0.3, 7)
UNITS = Coordinates.of([0.1, -0.2, 1.0], [1.0, 2.0, 0.5], 0.5)
CONFIG = spenn.FitConfig(
    depth=1, members=3, member_widths=(5, 3), member_steps=10, races=2, member_batch=32
)
TESTS = str(Path(__file__).parent)
SAVE = "import test_devices, sys; test_devices.save(sys.argv[1])"


def answers():
    """Forecasts and a tiny training, as arrays by name."""
    method = random_spenn(SIZE, 6, 1, gain=(1.0, 1.0))
    found = {}
    # More trajectories than devices, of which samples go far from the data; and fewer.
    for count, scale in ((11, SMALL), (3, 1.0)):
        initial = scale * np.random.default_rng(0).normal(size=(count, 1, SIZE))
        states = np.repeat(initial, len(TIMES), 1)
        data = spenn.Trajectories(TIMES, states, np.zeros_like(states))
        indices = method.draw(10, key=jax.random.key(0))
        result = evaluate(method, UNITS, data, indices, keep=2, required=0)
        leaves = jax.tree.leaves((result.summary, result.states, result.laws))
        found |= {f"{count}-{i}": leaf for i, leaf in enumerate(leaves)}
        found[f"{count}-lost"] = np.array(result.diverged, int).reshape(-1, 3)
    model = spenn.Model(("a", "b", "c"), UNITS, method, CONFIG)
    found["forecast"] = model.forecast([0.1, 0.2, 0.3], TIMES, samples=13).samples
    ensemble = fit_ensemble(_noise(), 0, CONFIG)
    return found | {f"fit-{i}": leaf for i, leaf in enumerate(jax.tree.leaves(ensemble.method))}


def _noise():
    states, derivatives = np.random.default_rng(1).normal(size=(2, 4, 20, SIZE))
    return spenn.Trajectories(np.arange(20.0), states, derivatives)


def save(path):
    np.savez(path, **answers())


@pytest.fixture(scope="module")
def alone():
    with jax.enable_x64(True):
        return answers()


def _environment(devices, **variables):
    return os.environ | {
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": "1",
        "PYTHONPATH": os.pathsep.join([TESTS, *sys.path]),
        **variables,
    }


def _two_processes(code, *arguments, **variables):
    """Exit code, output and errors of two processes that know of each other."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    cluster = {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": "2"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, *(a.replace("PROCESS", str(i)) for a in arguments)],
            env=_environment(2, **cluster, JAX_PROCESS_ID=str(i), **variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(2)
    ]
    try:
        said = [process.communicate(timeout=1800) for process in started]
    finally:
        for process in started:
            process.kill()
    return [(p.returncode, *both) for p, both in zip(started, said, strict=True)]


def _assert_same(path, expected):
    """To one part in a million of the largest entry of each array; rates of energy are rounding."""
    with np.load(path) as found:
        assert set(found.files) == set(expected)
        for name in found.files:
            error = 1e-12 + 1e-6 * np.nanmax(np.abs(expected[name]), initial=0)
            np.testing.assert_allclose(found[name], expected[name], 0, error, err_msg=name)


def test_some_samples_are_lost_and_some_are_not(alone):
    """Or nothing would be said of them below."""
    assert len(alone["3-lost"]) == 0 and 0 < len(alone["11-lost"]) < 110


def test_eight_devices_give_the_answer_of_one(alone, tmp_path):
    path = tmp_path / "answers.npz"
    subprocess.run([sys.executable, "-c", SAVE, str(path)], env=_environment(8), check=True)
    _assert_same(path, alone)


def test_two_processes_of_two_devices_give_the_answer_of_one(alone, tmp_path):
    code = "from spenn.devices import start; start(); " + SAVE
    path = tmp_path / "answers-PROCESS.npz"
    for i, (exit_code, _, error) in enumerate(_two_processes(code, str(path))):
        assert exit_code == 0, error
        _assert_same(str(path).replace("PROCESS", str(i)), alone)


def test_bad_input_is_said_once_and_ends_all_processes():
    code = "from spenn import cli; cli.main()"
    ended = _two_processes(code, "run", "moon", "--distributed")
    assert [exit_code for exit_code, *_ in ended] == [2, 2]
    first, second = (error for *_, error in ended)
    assert "spenn: there is no system 'moon'" in first and "spenn:" not in second


def test_a_problem_of_the_first_process_ends_all():
    code = "from spenn import cli; cli.main()"
    ended = _two_processes(code, "--distributed", "run", "oscillator", "--out", "/proc/nowhere")
    assert [exit_code for exit_code, *_ in ended] == [2, 2]
    first, second = (error for *_, error in ended)
    assert "spenn: cannot write to /proc/nowhere" in first and "spenn:" not in second


def test_alone_distributed_says_what_is_missing():
    command = [sys.executable, "-m", "spenn", "run", "oscillator", "--distributed"]
    done = subprocess.run(command, env=_environment(1), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "spenn: --distributed found no other processes" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_forecast_in_two_processes_is_that_of_one(tmp_path):
    key, model = jax.random.key(0), tmp_path / "model.spenn"
    blocks = spenn.Physics().blocks(UNITS, SIZE, CONFIG.width, CONFIG.depth, key=key)
    method = attach_epinets(blocks, 0.1, CONFIG, key=key)
    spenn.Model(("a", "b", "c"), UNITS, method, CONFIG).save(model)
    start = ("--start", "a=0.1,b=0.2,c=0.3", "--until", "0.3", "--records", "7", "--samples", "13")
    arguments = ("forecast", str(model), *start, "--out")
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    code = "from spenn import cli; cli.main()"
    command = [sys.executable, "-c", code, *arguments, str(one)]
    done = subprocess.run(command, env=_environment(1), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (ended, said, error), (other_ended, *other) = _two_processes(
        code, *arguments, str(two), "--distributed"
    )
    assert (ended, other_ended) == (0, 0), error
    assert "Wrote 1 forecasts of 13 samples" in said and other[0] == ""
    first, second = (np.genfromtxt(f, delimiter=",", skip_header=1) for f in (one, two))
    np.testing.assert_allclose(second, first, rtol=1e-6, atol=1e-9)
