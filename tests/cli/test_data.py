"""`spenn inspect`, `split` and `example`, as a user types them."""

import sys

import numpy as np
import pytest

import spenn
from spenn import cli


def _type(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["spenn", *map(str, words)])
    cli.main()


def _refused(monkeypatch, capsys, *words):
    """The one sentence with which a command ends."""
    with pytest.raises(SystemExit) as stop:
        _type(monkeypatch, *words)
    assert stop.value.code == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("spenn: ") and said.err.count("\n") == 1
    return said.err


@pytest.fixture
def some(tmp_path):
    """A small file of ten trajectories, told apart by their first state."""
    times = np.linspace(0, 1, 20)
    states = np.stack([np.stack([i + np.sin(times), times**2], 1) for i in range(10)])
    states[3, 15:] = np.nan
    path = tmp_path / "some.csv"
    spenn.write(spenn.Trajectories(times, states, names=("q", "p"), units=("m", "")), path)
    return path


def test_an_example_in_every_format_is_the_same_and_good(monkeypatch, tmp_path, capsys):
    data = []
    for suffix in (".nc", ".h5", ".npz", ".csv"):
        path = tmp_path / f"example{suffix}"
        _type(monkeypatch, "example", path, "--trajectories", 5, "--seed", 1)
        data.append(spenn.read(path))
        assert f"Wrote 5 trajectories to {path}." in capsys.readouterr().out
    assert data[0].names == ("q", "p", "eps") and data[0].states.shape == (5, 200, 3)
    assert data[0].units == ("m", "kg m/s", "J") and data[0].time_unit == "s"
    q, p, _ = np.moveaxis(data[0].states, 2, 0)
    exact = np.stack([p, -1.2 * q - 0.4 * p, 0.4 * p**2], 2)
    np.testing.assert_allclose(data[0].derivatives, exact, atol=1e-4)
    for other in data[1:]:
        np.testing.assert_array_equal(other.states, data[0].states)
    _type(monkeypatch, "inspect", path)
    said = capsys.readouterr().out
    assert "CSV, 5 trajectories of 3 variables" in said and "none seen" in said


def test_noise_in_an_example_is_seen(monkeypatch, tmp_path, capsys):
    path = tmp_path / "noisy.npz"
    _type(monkeypatch, "example", path, "--trajectories", 60, "--noise", 0.01)
    _type(monkeypatch, "inspect", path)
    said = capsys.readouterr().out
    assert "Wrote 60" in said and "none seen" not in said and "uncertain" in said


@pytest.mark.parametrize("suffix", [".csv", ".nc", ".npz"])
def test_a_split_has_every_trajectory_once(some, suffix, monkeypatch, tmp_path, capsys):
    source, out = some.with_suffix(suffix), tmp_path / "parts"
    whole = spenn.read(some)
    spenn.write(whole, source)
    before = source.read_bytes()
    _type(monkeypatch, "split", source, "--out", out, "--shares", "0.5,0.3,0.2", "--seed", 4)
    assert "train 5, calibration 3, test 2 trajectories" in capsys.readouterr().out
    names = [f"{name}{suffix}" for name in ("train", "calibration", "test")]
    assert sorted(p.name for p in out.iterdir()) == sorted(names)
    parts = [spenn.read(out / name) for name in names]
    assert [len(part) for part in parts] == [5, 3, 2]
    assert sorted(d for part in parts for d in part.digests) == sorted(whole.digests)
    assert all(part.names == ("q", "p") and part.units == ("m", "") for part in parts)
    assert source.read_bytes() == before


def test_the_seed_decides_the_split(some, monkeypatch, tmp_path):
    for folder, seed in (("a", 0), ("b", 0), ("c", 1)):
        _type(monkeypatch, "split", some, "--out", tmp_path / folder, "--seed", seed)
    a, b, c = (spenn.read(tmp_path / f / "train.csv").digests for f in "abc")
    assert a == b != c


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is empty"),
        ("trajectory;time;q\n1;0;0\n", "separated by semicolons"),
        ("trajectory,time,q\n1,0,0\n1,0,1\n", "line 3: the time 0"),
        ("trajectory,time,q\n1,0,0\n1,1,x\n", "line 3, column 'q': 'x' is no finite number"),
    ],
)
@pytest.mark.parametrize("command", ["inspect", "split"])
def test_a_wrong_file_ends_with_a_sentence(
    command, content, sentence, monkeypatch, tmp_path, capsys
):
    path, out = tmp_path / "wrong.csv", tmp_path / "parts"
    path.write_text(content)
    more = ("--out", out) if command == "split" else ()
    error = _refused(monkeypatch, capsys, command, path, *more)
    assert sentence in error and "wrong.csv" in error
    assert path.read_text() == content and not out.exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("inspect", "nowhere.nc"), "there is no file nowhere.nc."),
        (("inspect", "."), ". is a folder"),
        (("split", "SOME", "--out", "OUT", "--shares", "1,2"), "three numbers"),
        (("split", "SOME", "--out", "OUT", "--shares", "a,b,c"), "three numbers"),
        (("split", "SOME", "--out", "OUT", "--shares", "0.5,0.5,0.5"), "add up to 1"),
        (("split", "SOME", "--out", "OUT", "--shares", "1.2,-0.1,-0.1"), "add up to 1"),
        (("split", "SOME", "--out", "OUT", "--seed", "-1"), "seed must be at least 0"),
        (("split", "SOME", "--out", "SOME"), "cannot write to"),
        (("split", "SOME"), "out"),
        (("example", "x.xlsx"), "no suffix that says how"),
        (("example", "x"), "no suffix that says how"),
        (("example", "nowhere/x.nc"), "no folder nowhere"),
        (("example", "OUT.nc", "--trajectories", "2"), "at least 3"),
        (("example", "OUT.nc", "--noise", "-1"), "share from 0 to 1"),
        (("example", "OUT.nc", "--noise", "nan"), "share from 0 to 1"),
        (("example", "OUT.nc", "--seed", "-1"), "seed must be at least 0"),
    ],
)
def test_one_sentence_for_bad_words(words, sentence, some, monkeypatch, tmp_path, capsys):
    before = some.read_bytes()
    filled = [w.replace("SOME", str(some)).replace("OUT", str(tmp_path / "out")) for w in words]
    assert sentence in _refused(monkeypatch, capsys, *filled)
    assert [p.name for p in tmp_path.iterdir()] == [some.name] and some.read_bytes() == before


def test_too_few_trajectories_to_split(monkeypatch, tmp_path, capsys):
    path = tmp_path / "two.csv"
    path.write_text("trajectory,time,q\na,0,1\na,1,2\nb,0,1\nb,1,3\n")
    error = _refused(monkeypatch, capsys, "split", path, "--out", tmp_path / "parts")
    assert "2 trajectories cannot be split into 3 sets" in error


def test_a_split_that_fails_leaves_nothing(some, monkeypatch, tmp_path, capsys):
    out, calls = tmp_path / "parts", []

    def second_fails(data, path):
        calls.append(path)
        if len(calls) == 2:
            raise ValueError("no space left.")
        path.touch()

    monkeypatch.setattr("spenn.data.write", second_fails)
    assert "no space left" in _refused(monkeypatch, capsys, "split", some, "--out", out)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("command", ["inspect", "split", "example"])
def test_help_has_an_example(command, monkeypatch, capsys):
    _type(monkeypatch, command, "--help")
    assert f"Example:  spenn {command} " in capsys.readouterr().out
