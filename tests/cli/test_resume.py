"""Killed in the middle of anything, the same command goes on; two commands do not meet."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spenn import cli, folders
from spenn.experiment import _run, _write
from spenn.folders import locked
from support import tiny

# Keeps after every few steps, and is killed in the middle of a chosen write to disk.
RUN = """
import os, signal, sys
from spenn import cli, experiment
from spenn.training import _checkpoint, _loop
from support import tiny

_loop.CHUNK, _checkpoint.SHORTEST, _checkpoint.SHARE = 50, 0.0, float("inf")
experiment.preset = tiny
left, sync = int(os.environ["WRITES"]), os.fsync

def counted(handle):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    sync(handle)

os.fsync = counted
cli.main()
"""
HOLD = """
import sys, time
from pathlib import Path
from spenn.folders import locked

with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(600)
"""


def _type(folder, writes=0):
    """Type `spenn run` with a tiny preset, to be killed at so many writes; returns how it ended."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "WRITES": str(writes),
    }
    arguments = ["run", "oscillator", "--methods", "spenn-half-normal", "--out", str(folder)]
    command = [sys.executable, "-c", RUN, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def _results(folder):
    """All numbers but times."""
    document = json.loads((folder / "results.json").read_text())
    for entry in document["methods"].values():
        del entry["seconds"]
    return document


@pytest.mark.slow
def test_a_run_killed_at_many_writes_ends_with_the_same_bits(tmp_path):
    folder = tmp_path / "killed"
    code, said = _type(tmp_path / "whole")
    assert code == 0, said
    # While a file of the base is written, and one of the results; benchmarks/kill.py has more.
    for writes in (4, 12):
        code, said = _type(folder, writes)
        assert code == -signal.SIGKILL, said
    code, said = _type(folder)
    assert code == 0, said
    model = "model.spenn"
    assert (folder / model).read_bytes() == (tmp_path / "whole" / model).read_bytes()
    assert _results(folder) == _results(tmp_path / "whole")
    left = {path.name for path in folder.iterdir()}
    assert left == {path.name for path in (tmp_path / "whole").iterdir()}


@pytest.fixture
def holder(tmp_path):
    """Another process that is at work in a folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "locked\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_run_in_one_folder_ends_at_once_with_a_sentence(
    tmp_path, holder, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "argv", ["spenn", "run", "oscillator", "--out", str(tmp_path)])
    monkeypatch.setattr(_run, "run", pytest.fail)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert capsys.readouterr().err == (
        f"spenn: another spenn is at work in {tmp_path} (process {holder.pid}): wait for it, or "
        "choose another folder.\n"
    )


def test_a_lock_goes_with_the_process_that_held_it(tmp_path, holder):
    with pytest.raises(ValueError, match="another spenn is at work"), locked(tmp_path):
        pass
    holder.kill()
    holder.wait()
    with locked(tmp_path):
        assert (tmp_path / folders.LOCK).read_text() == str(os.getpid())
    assert list(tmp_path.iterdir()) == []


def test_a_lock_is_free_after_an_error(tmp_path):
    for _ in range(2):
        with pytest.raises(KeyError), locked(tmp_path):
            raise KeyError


def test_a_lock_that_was_removed_meanwhile_locks_nothing(tmp_path, monkeypatch):
    """Opened before its owner left, taken after: it is no longer the lock of the folder."""
    flock, calls = folders.fcntl.flock, []

    def late(file, how):
        calls.append(1)
        if len(calls) == 1:
            (tmp_path / folders.LOCK).unlink()
        flock(file, how)

    monkeypatch.setattr(folders.fcntl, "flock", late)
    with locked(tmp_path):
        assert len(calls) == 2 and (tmp_path / folders.LOCK).exists()


def test_folders_that_cannot_be_locked_are_used_all_the_same(tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(folders.fcntl, "flock", unsupported)
    with locked(tmp_path):
        pass
    monkeypatch.setattr(folders, "fcntl", None)
    with locked(tmp_path):
        pass


def test_a_full_disk_is_said_in_a_sentence(tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(_run, "run", lambda *_: None)
    monkeypatch.setattr(_write, "write", full)
    monkeypatch.setattr(sys, "argv", ["spenn", "run", "oscillator", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert capsys.readouterr().err == (
        f"spenn: cannot write to {tmp_path}: No space left on device. What was kept before stays: "
        "make room, and the same command goes on from there.\n"
    )


def test_parts_that_cannot_be_kept_do_not_stop_a_run(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    parts = _run.Parts(tmp_path, tiny("quick", "oscillator"))
    kept = parts.training("base")
    assert kept is not None
    kept.mkdir(parents=True)
    monkeypatch.setattr(parts, "_write", full)
    with pytest.warns(UserWarning, match="cannot keep base in .*: No space left on device"):
        parts.put("base", None, None)
    assert kept.exists()


def test_results_that_were_cut_short_while_they_moved_do_not_look_finished(tmp_path, monkeypatch):
    (tmp_path / "results.json").write_text("old")
    replace, moved = Path.replace, []

    def cut(path, target):
        moved.append(target)
        if len(moved) > 1:
            raise KeyboardInterrupt
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", cut)
    with pytest.raises(KeyboardInterrupt), folders.together(tmp_path) as made:
        (made / "config.toml").write_text("new")
        (made / "results.json").write_text("new")
    assert not (tmp_path / "results.json").exists()
