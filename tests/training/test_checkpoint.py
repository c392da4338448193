"""Cut off anywhere, training goes on and ends with the same bits; what is kept stays."""

import errno
import os
import resource
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spenn
from spenn import fitting, folders
from spenn.baselines import fit_ensemble
from spenn.config import FitConfig
from spenn.data import Trajectories
from spenn.fitting import add_uncertainty, fit, fit_deterministic, open_checkpoint
from spenn.generic import Coordinates
from spenn.physics import Physics
from spenn.training import NOTHING, Checkpoint, Samples, _checkpoint, _loop, advance, begin
from spenn.training._checkpoint import fingerprint_of
from spenn.training._loop import over_members, share_out

CHUNK = 5
CONFIG = FitConfig(
    width=6, depth=1, steps=20, batch=32, races=2, race_steps=10,
    dimension=2, epinet_width=3, prior_width=3, epinet_steps=15, epinet_batch=32,
    members=2, member_widths=(4, 5), member_steps=100, member_batch=16, dropout_width=4,
)  # fmt: skip
RNG = np.random.default_rng(0)
ARRAYS = (jnp.asarray(RNG.normal(size=(64, 2)), jnp.float32) for _ in range(3))
SAMPLES = Samples(*ARRAYS, jnp.arange(64) // 8)
START = {"w": jnp.stack([jnp.eye(2), 2 * jnp.eye(2)]), "b": jnp.zeros((2, 2))}


class Cut(Exception):
    """Stands for whatever ends a process."""


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    monkeypatch.setattr(_loop, "CHUNK", CHUNK)
    monkeypatch.setattr(_checkpoint, "SHORTEST", 0.0)
    monkeypatch.setattr(_checkpoint, "SHARE", np.inf)


def data(scale=1.0):
    """A few turns of a damped oscillator."""
    times = np.linspace(0, 3, 21)
    phase = times + np.array([0.0, 0.7, 1.9, 3.0])[:, None]
    decay = np.exp(-0.1 * times)
    states = scale * np.stack([decay * np.sin(phase), decay * np.cos(phase), 1 - decay + phase], -1)
    return Trajectories(times, states, np.gradient(states, times, axis=1), ["q", "p", "s"])


def cut_after(count):
    """A report that ends the work at its call with that number."""
    calls = []

    def report(*_):
        calls.append(1)
        if len(calls) > count:
            raise Cut

    return report


def assert_same_bits(one, other):
    def same(a, b):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()

    jax.tree.map(same, one, other)


def loss(parameters, samples, key):
    noise = jax.random.normal(key, samples.states.shape)
    residual = samples.states @ parameters["w"] + parameters["b"] - samples.velocities
    return jnp.mean((residual + 0.1 * noise) ** 2)


def run(checkpoint=NOTHING, report=lambda *_: None, function=loss, until=4 * CHUNK):
    return advance(
        function,
        over_members(share_out, begin(START)),
        {"w": None, "b": None},
        SAMPLES,
        until=until,
        total=4 * CHUNK,
        batch=16,
        learning_rate=1e-2,
        key=jax.random.key(0),
        report=report,
        checkpoint=checkpoint,
    )


@pytest.mark.parametrize("chunks", [0, 1, 3])
def test_the_loop_goes_on_where_it_was_cut(tmp_path, chunks):
    with pytest.raises(Cut):
        run(Checkpoint(tmp_path), cut_after(chunks))
    reported = []
    resumed = run(Checkpoint(tmp_path), lambda steps, _: reported.append(steps))
    assert reported == [(chunks + 1) * CHUNK] + (3 - chunks) * [CHUNK]
    assert_same_bits(resumed, run())


def test_going_on_is_the_same_program(tmp_path):
    traces = []

    def counted(*arguments):
        traces.append(1)
        return loss(*arguments)

    with pytest.raises(Cut):
        run(Checkpoint(tmp_path), cut_after(0), counted)
    once = len(traces)
    run(Checkpoint(tmp_path), function=counted)
    assert len(traces) == once > 0


TWO_DEVICES = """
import sys, jax, pytest
from spenn.training import Checkpoint, _checkpoint, _loop
import test_checkpoint as here

assert jax.device_count() == 2
_loop.CHUNK, _checkpoint.SHORTEST = here.CHUNK, 0.0
folder = here.Path(sys.argv[1])
with pytest.raises(here.Cut):
    here.run(Checkpoint(folder), here.cut_after(1))
resumed, whole = here.run(Checkpoint(folder)), here.run()
here.assert_same_bits(resumed, whole)
shardings = (jax.tree.map(lambda a: a.sharding, r[0].trainable) for r in (resumed, whole))
assert next(shardings) == next(shardings)
"""


def test_members_come_back_to_their_devices(tmp_path):
    flags = "--xla_force_host_platform_device_count=2"
    environment = {**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", TWO_DEVICES, str(tmp_path)]
    subprocess.run(command, env=environment, check=True)


def test_numbers_are_found_once(tmp_path):
    found = [Checkpoint(tmp_path).number("one", lambda value=value: value) for value in (1 / 3, 2)]
    assert found == [1 / 3, 1 / 3]
    assert [NOTHING.number("one", lambda value=value: value) for value in (1.0, 2.0)] == [1, 2]


def test_the_longest_step_is_kept_with_the_training(tmp_path, monkeypatch):
    base = fit_deterministic(data(), 0, CONFIG, checkpoint=tmp_path)
    monkeypatch.setattr(fitting, "find_step", lambda *_: pytest.fail("found again"))
    again = fit_deterministic(data(), 0, CONFIG, checkpoint=tmp_path)
    assert again.longest_step == base.longest_step


def test_losses_that_are_no_numbers_come_back(tmp_path):
    wild = lambda p, s, k: loss(p, s, k) + jnp.where(p["w"][0, 0] > 1.5, jnp.nan, 0.0)  # noqa: E731
    first, again = (run(Checkpoint(tmp_path), function=wild)[1] for _ in range(2))
    assert np.isnan(first).tolist() == [False, True]
    assert_same_bits(first, again)


def test_an_interrupt_is_kept_whole_and_at_once(tmp_path, monkeypatch):
    """Between two times of keeping, and even between weights and their losses."""
    monkeypatch.setattr(_checkpoint, "SHORTEST", 1e6)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        calls, mean = [], np.mean

        def interrupted(*arguments):
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return mean(*arguments)

        patch.setattr(_loop.np, "mean", interrupted)
        run(Checkpoint(tmp_path))
    reported = []
    resumed = run(Checkpoint(tmp_path), lambda steps, _: reported.append(steps))
    assert reported == [2 * CHUNK, CHUNK, CHUNK]
    assert_same_bits(resumed, run())


def train(kind, report=lambda *_: None, checkpoint=None, config=CONFIG, trajectories=None):
    method = {"fit": fit, "ensemble": fit_ensemble}[kind]
    given = data() if trajectories is None else trajectories
    return method(given, 0, config, report=report, checkpoint=checkpoint)


@pytest.mark.parametrize("kind", ["fit", "ensemble"])
def test_cut_at_every_report_training_ends_with_the_same_bits(tmp_path, kind):
    """Base, race, heats, both searches for an amplitude: all stages come up."""
    stages = []
    whole = train(kind, lambda stage, steps, _: stages.append(stage))
    resumed, cuts = None, 0
    while resumed is None:
        assert cuts < 200
        try:
            resumed = train(kind, cut_after(cuts % 3 + len(set(stages))), tmp_path)
        except Cut:
            cuts += 1
    assert cuts >= 2
    assert_same_bits(resumed.method, whole.method)
    # All of it is there: asked once more, nothing is trained.
    assert_same_bits(train(kind, checkpoint=tmp_path).method, whole.method)


def test_what_is_finished_is_not_done_again(tmp_path, monkeypatch):
    whole = train("fit", checkpoint=tmp_path)
    monkeypatch.setattr(_loop, "_chunk", pytest.fail)
    monkeypatch.setattr("spenn.fitting._judge", pytest.fail)
    assert_same_bits(train("fit", checkpoint=tmp_path).method, whole.method)


def test_stage_two_goes_on_with_a_base_from_a_file(tmp_path):
    base = fit_deterministic(data(), 0, CONFIG)
    base.save(tmp_path / "base.spenn")
    with pytest.raises(Cut):
        add_uncertainty(base, data(), 0, CONFIG, cut_after(1), tmp_path / "kept")
    reported = []
    resumed = add_uncertainty(
        spenn.load(tmp_path / "base.spenn"),
        data(),
        0,
        CONFIG,
        lambda stage, steps, loss: reported.append(steps),
        tmp_path / "kept",
    )
    assert reported[0] == 2 * CHUNK
    assert_same_bits(resumed.method, add_uncertainty(base, data(), 0, CONFIG).method)


def test_other_work_is_neither_used_nor_lost(tmp_path):
    with pytest.raises(Cut):
        train("fit", cut_after(2), tmp_path)
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*.safetensors")}
    reported = []
    with pytest.warns(UserWarning, match="is of other data, settings or versions: it stays"):
        other = fit_deterministic(
            data(2.0), 0, CONFIG, report=lambda *r: reported.append(r[1]), checkpoint=tmp_path
        )
    assert reported[0] == CHUNK
    assert_same_bits(other.method, fit_deterministic(data(2.0), 0, CONFIG).method)
    assert kept and all(path.read_bytes() == content for path, content in kept.items())


def test_known_functions_count_by_what_they_compute(tmp_path):
    def word(matrix):
        inner = jax.jit(lambda x: jnp.sum(x @ matrix @ x))  # a constant two functions deep
        physics = Physics(energy=inner, learned=("entropy", "poisson", "dissipation"))
        units = Coordinates.identity(3)
        start = lambda: physics.blocks(units, 3, 4, 1, key=jax.random.key(0))  # noqa: E731
        return open_checkpoint(tmp_path, "base", start, data(), 0, CONFIG).fingerprint

    assert word(jnp.eye(3)) == word(jnp.eye(3)) != word(1.001 * jnp.eye(3))


def test_a_fingerprint_sees_values_shapes_types_and_precision():
    x = np.arange(4.0)
    different = [(x, 1), (x.reshape(2, 2), 1), (x.astype(np.float32), 1), (x + 1e-15, 1), (x, 2)]
    words = {fingerprint_of(*identity) for identity in different}
    assert len(words) == len(different) and fingerprint_of(x, 1) in words
    with jax.enable_x64(True):
        assert fingerprint_of(x, 1) not in words


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "other"])
def test_damaged_files_count_as_none(tmp_path, damage):
    with pytest.raises(Cut):
        run(Checkpoint(tmp_path), cut_after(1))
    (path,) = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    content[-10] ^= 1
    path.write_bytes(
        {"empty": b"", "cut": content[:500], "flipped": content, "other": b"{}" * 100}[damage]
    )
    with pytest.warns(UserWarning, match="done again"):
        assert_same_bits(run(Checkpoint(tmp_path)), run())


def test_files_of_another_shape_count_as_none(tmp_path):
    Checkpoint(tmp_path).put("progress", {"w": np.zeros(3)})
    with pytest.warns(UserWarning, match="does not fit at"):
        assert_same_bits(run(Checkpoint(tmp_path)), run())


def test_a_full_disk_does_not_stop_training(tmp_path, monkeypatch):
    with pytest.raises(Cut):
        run(Checkpoint(tmp_path), cut_after(0))
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        patch.setattr(folders.os, "fsync", full)
        whole = run(Checkpoint(tmp_path))
    assert len(said) == 1 and "No space left on device. Training goes on" in str(said[0].message)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == kept
    assert_same_bits(whole, run())
    assert_same_bits(run(Checkpoint(tmp_path)), whole)


def test_a_limit_on_the_size_of_files_does_not_stop_training(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.warns(UserWarning, match="File too large"):
            whole = run(Checkpoint(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_same_bits(whole, run())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_does_not_stop_training():
    with pytest.warns(UserWarning, match="cannot keep the progress of training in /proc/nowhere"):
        run(Checkpoint(Path("/proc/nowhere")))


def test_the_slower_the_disk_the_more_seldom(monkeypatch, tmp_path):
    monkeypatch.setattr(_checkpoint, "SHORTEST", 1.0)
    monkeypatch.setattr(_checkpoint, "SHARE", 0.01)
    now = [0.0]
    monkeypatch.setattr(_checkpoint.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(
        _checkpoint, "write_atomically", lambda *_: now.__setitem__(0, now[0] + 2.0)
    )
    checkpoint = Checkpoint(tmp_path)
    assert not checkpoint.due and not NOTHING.due
    now[0] = 1.0
    assert checkpoint.due
    checkpoint.put("x", np.zeros(1))
    now[0] = 3.0 + 199.0
    assert not checkpoint.due
    now[0] = 3.0 + 200.0
    assert checkpoint.due
