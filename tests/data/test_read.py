"""Files: what is written is read back number for number; what is wrong gets one sentence."""

import hashlib
import subprocess
import sys

import h5py
import numpy as np
import pytest
import xarray
from wrong_files import GOOD_CSV, STATES, TIMES, WRONG

import spenn

SUFFIXES = (".nc", ".h5", ".npz", ".csv")
FIELDS = ("times", "states", "derivatives", "smoothed")
WORDS = {"names": ("q", "u[0]"), "units": ("m", "J/K²"), "time_unit": "s"}


def _long(count=4, records=30):
    times = np.linspace(0, 1, records)
    return times, np.stack(
        [np.stack([np.sin(times + i), 1 / (1 + times)], 1) for i in range(count)]
    )


def _plain():
    return spenn.Trajectories(*_long(), **WORDS)


def _given():
    times, states = _long()
    return spenn.Trajectories(times, states, np.pi * states)


def _noisy():
    times, states = _long()
    states = states + 0.01 * np.random.default_rng(0).standard_normal(states.shape)
    return spenn.Trajectories(times, states, **WORDS)


def _tails():
    times, states = _long()
    states[1, 20:] = np.nan
    return spenn.Trajectories(times, states, 3 * states, **WORDS)


def _own_times():
    times, states = _long()
    return spenn.Trajectories(
        [times, 2 * times, times / 3, times[:9]], [*states[:3], states[3, :9]], **WORDS
    )


def _assert_equal(one, other):
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field), field)
    assert (one.names, one.units, one.time_unit) == (other.names, other.units, other.time_unit)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("make", [_plain, _given, _noisy, _tails, _own_times])
def test_round_trips_are_exact(make, suffix, tmp_path):
    data, path = make(), tmp_path / f"data{suffix}"
    spenn.write(data, path)
    _assert_equal(spenn.read(path), data)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_estimated_derivatives_are_not_written(suffix, tmp_path):
    from spenn.data._read import contents_of

    spenn.write(_noisy()[:2], tmp_path / f"a{suffix}")
    spenn.write(_given()[:2], tmp_path / f"b{suffix}")
    assert contents_of(tmp_path / f"a{suffix}").derivatives is None
    assert contents_of(tmp_path / f"b{suffix}").derivatives is not None


def test_xarray_reads_what_we_write(tmp_path):
    data = _plain()
    spenn.write(data, tmp_path / "data.nc")
    with xarray.open_dataset(tmp_path / "data.nc", decode_times=False) as dataset:
        assert dataset["state"].dims == ("trajectory", "time", "variable")
        np.testing.assert_array_equal(dataset["state"].sel(variable="q"), data.states[..., 0])
        assert dataset["time"].attrs["units"] == "s"


def test_dimensions_in_any_order_and_units_as_an_attribute(tmp_path):
    times, states = _long()
    dims = ("variable", "time", "trajectory")
    dataset = xarray.Dataset(
        {"state": (dims, states.transpose(2, 1, 0), {"units": ["m", "s"]})},
        coords={"time": ("time", times), "variable": ["q", "p"], "trajectory": list("abcd")},
    )
    dataset.to_netcdf(tmp_path / "data.nc", engine="h5netcdf")
    data = spenn.read(tmp_path / "data.nc")
    np.testing.assert_array_equal(data.states, states)
    assert data.names == ("q", "p") and data.units == ("m", "s")


def test_packed_integers_are_unpacked(tmp_path):
    dataset = xarray.Dataset(
        {"state": (("trajectory", "time", "variable"), STATES)}, coords={"time": TIMES}
    )
    packed = {"state": {"dtype": "i2", "scale_factor": 1e-4, "_FillValue": -999}}
    dataset.to_netcdf(tmp_path / "data.nc", engine="h5netcdf", encoding=packed)
    np.testing.assert_allclose(spenn.read(tmp_path / "data.nc").states, STATES, atol=1e-4)


def test_plain_hdf5_without_names_of_dimensions(tmp_path):
    """Trajectories as many as records: no size tells one dimension from the other."""
    states = np.concatenate([STATES, STATES + 1])
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["state"], file["time"], file["variable"] = states, TIMES, [b"q", b"p"]
    data = spenn.read(tmp_path / "data.h5")
    np.testing.assert_array_equal(data.states, states)
    np.testing.assert_array_equal(data.times, TIMES)
    assert data.names == ("q", "p")


def test_npz_of_other_types_and_orders(tmp_path):
    states = np.asfortranarray(STATES.astype(">f4"))
    with (tmp_path / "data.npz").open("wb") as file:
        np.savez(file, times=np.arange(6), states=states, names=np.array([b"q", b"p"]), more=1)
    data = spenn.read(tmp_path / "data.npz")
    np.testing.assert_array_equal(data.states, states.astype(float))
    assert data.names == ("q", "p")


def test_csv_as_people_write_it(tmp_path):
    lines = (
        '\ufefftime [s], trajectory,"q [m]",d(q)/dt\r\n'
        "0,b,1,0\r\n0,a,2,1\r\n\r\n1,a,3,1\r\n.5,b,1e0,0\r\n2,a,4,1\r\n"
    )
    (tmp_path / "data.csv").write_bytes(lines.encode())
    data = spenn.read(tmp_path / "data.csv")
    assert data.names == ("q",) and data.units == ("m",) and data.time_unit == "s"
    np.testing.assert_array_equal(data.lengths, [2, 3])
    np.testing.assert_array_equal(data.states[1, :, 0], [2, 3, 4])
    np.testing.assert_array_equal(data.derivatives[1, :, 0], [1, 1, 1])


def test_the_content_counts_and_not_the_name(tmp_path):
    spenn.write(_plain(), tmp_path / "data.npz")
    (tmp_path / "data.npz").rename(tmp_path / "data.nc")
    _assert_equal(spenn.read(str(tmp_path / "data.nc")), _plain())


def test_reading_does_not_wait_for_jax(tmp_path):
    (tmp_path / "data.csv").write_text(GOOD_CSV)
    code = f"import spenn, sys; spenn.read({str(tmp_path / 'data.csv')!r}); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not {"jax", "xarray", "h5py", "pandas"} & set(loaded.stdout.split())


def _digest(folder):
    return {
        p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.rglob("*") if p.is_file()
    }


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_gets_one_sentence(case, tmp_path):
    name, make, words = WRONG[case]
    path = tmp_path / name
    make(path)
    before = _digest(tmp_path)
    with pytest.raises(ValueError) as caught:
        spenn.read(path)
    sentence = str(caught.value)
    assert type(caught.value) is ValueError and words in sentence
    assert str(path) in sentence and "\n" not in sentence and sentence.endswith(".")
    assert len(sentence) < len(str(path)) + 350
    assert _digest(tmp_path) == before


def test_there_are_many_ways_to_be_wrong():
    assert len(WRONG) >= 60


def test_a_pipe_is_not_waited_for(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ValueError, match="no ordinary file"):
        spenn.read(tmp_path / "pipe.csv")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("data.xlsx", "no suffix that says how"),
        ("nowhere/data.nc", "there is no folder"),
        ("folder.nc", "is a folder"),
    ],
)
def test_what_cannot_be_written_is_said(name, words, tmp_path):
    (tmp_path / "folder.nc").mkdir()
    with pytest.raises(ValueError, match=words) as caught:
        spenn.write(_plain(), tmp_path / name)
    assert name in str(caught.value)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "data.npz"
    spenn.write(_plain(), path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(ValueError, match="No space left on device"):
        spenn.write(_given(), path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("name", ["q [m]", "trajectory", "time"])
def test_names_that_csv_would_misread(name, tmp_path):
    data = spenn.Trajectories(TIMES, STATES, names=(name, "p"))
    with pytest.raises(ValueError, match="CSV"):
        spenn.write(data, tmp_path / "data.csv")
    spenn.write(data, tmp_path / "data.nc")
    assert spenn.read(tmp_path / "data.nc").names == (name, "p")
