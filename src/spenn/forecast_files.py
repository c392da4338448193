"""Forecasts to files: tables for people and spreadsheets, arrays for programs."""

import csv
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .folders import write_atomically
from .model import Forecast


def check_forecast_file(path: Path) -> None:
    """Refuse a place or a suffix that no forecast can be written to."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(
            f"{path} has no suffix that says how to write it: choose one of {', '.join(FORMATS)}."
        )
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file.")
    if not path.parent.is_dir():
        raise ValueError(f"{path} cannot be written: there is no folder {path.parent}.")


def write_forecasts(forecasts: Sequence[Forecast], level: float, path: Path) -> None:
    """Write forecasts on one time grid; the suffix `.csv`, `.npz` or `.nc` decides how."""
    check_forecast_file(path)
    try:
        write_atomically(path, FORMATS[path.suffix.lower()](forecasts, level))
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}.") from None


def csv_of(forecasts: Sequence[Forecast], level: float) -> str:
    """A table in long form: mean, standard deviation and interval of every variable."""
    arrays, names = _arrays(forecasts, level), forecasts[0].names
    columns = {"": "mean", " std": "std", " lower": "lower", " upper": "upper"}
    columns = {word: arrays[name] for word, name in columns.items() if name in arrays}
    buffer = io.StringIO()
    lines = csv.writer(buffer, lineterminator="\n")
    lines.writerow(["trajectory", "time", *(n + word for n in names for word in columns)])
    for number in range(len(forecasts)):
        for record, time in enumerate(arrays["times"]):
            entries = (a[number, record, i] for i in range(len(names)) for a in columns.values())
            lines.writerow([number, repr(float(time)), *(repr(float(v)) for v in entries)])
    return buffer.getvalue()


def _arrays(forecasts: Sequence[Forecast], level: float) -> dict[str, np.ndarray]:
    """Arrays (trajectory, time, variable), and samples with an axis of their own."""
    arrays = {
        "times": forecasts[0].times,
        "mean": np.stack([one.mean for one in forecasts]),
        "std": np.stack([one.std for one in forecasts]),
    }
    if forecasts[0].calibration is not None:
        bounds = [one.interval(level) for one in forecasts]
        arrays |= {"lower": np.stack([b[0] for b in bounds])}
        arrays |= {"upper": np.stack([b[1] for b in bounds])}
    return arrays


def _samples(forecasts: Sequence[Forecast]) -> np.ndarray:
    """All samples (trajectory, sample, time, variable); NaN in place of diverged ones, last."""
    most = max(len(one.samples) for one in forecasts)
    whole = np.full((len(forecasts), most, *forecasts[0].samples.shape[1:]), np.nan, np.float32)
    for row, one in zip(whole, forecasts, strict=True):
        row[: len(one.samples)] = one.samples
    return whole


def _csv(forecasts: Sequence[Forecast], level: float) -> bytes:
    return csv_of(forecasts, level).encode()


def _npz(forecasts: Sequence[Forecast], level: float) -> bytes:
    names = np.array(forecasts[0].names)
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        allow_pickle=False,
        names=names,
        level=level,
        samples=_samples(forecasts),
        **_arrays(forecasts, level),
    )
    return buffer.getvalue()


def _netcdf(forecasts: Sequence[Forecast], level: float) -> bytes:
    import xarray

    arrays = _arrays(forecasts, level)
    times, axes = arrays.pop("times"), ("trajectory", "time", "variable")
    every: dict = {name: (axes, array) for name, array in arrays.items()}
    every["samples"] = (("trajectory", "sample", *axes[1:]), _samples(forecasts))
    names = np.array(forecasts[0].names, dtype=object)
    dataset = xarray.Dataset(
        every, coords={"time": times, "variable": names}, attrs={"level": level}
    )
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "forecast.nc"
        dataset.to_netcdf(made, engine="h5netcdf")
        return made.read_bytes()


FORMATS = {".csv": _csv, ".npz": _npz, ".nc": _netcdf}
