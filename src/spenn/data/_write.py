"""Trajectories to files, which `spenn.read` reads back number for number."""

import csv
import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ..folders import write_atomically
from ._read_csv import name_and_unit
from ._trajectories import Trajectories

DIMENSIONS = ("trajectory", "time", "variable")


def write(data: Trajectories, path: str | Path) -> None:
    """Write trajectories; the suffix `.nc`, `.h5`, `.npz` or `.csv` decides how.

    Derivatives that were estimated are left out: reading the file estimates them again.

    **Example:** `spenn.write(data, "cases.nc")`
    """
    path = Path(path)
    check_writable(path)
    content = FORMATS[path.suffix.lower()](data, not _are_estimates(data))
    try:
        write_atomically(path, content)
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}.") from None


def check_writable(path: Path) -> None:
    """Refuse a place or a suffix that no file can be written to, before any work is done."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(
            f"{path} has no suffix that says how to write it: choose one of {', '.join(FORMATS)}."
        )
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file.")
    if not path.parent.is_dir():
        raise ValueError(f"{path} cannot be written: there is no folder {path.parent}.")


def _are_estimates(data: Trajectories) -> bool:
    """Whether derivatives are what estimating them once more gives, to the last digit."""
    from ._derivatives import estimate_derivatives  # on use: it loads much of SciPy

    rows = zip(_rows(data), data.states, data.derivatives, data.lengths, strict=True)
    return all(
        np.array_equal(estimate_derivatives(t[:n], x[:n]).derivatives, d[:n]) for t, x, d, n in rows
    )


def _rows(data: Trajectories) -> np.ndarray:
    """Times of each trajectory, (trajectory, time)."""
    return np.broadcast_to(data.times, data.states.shape[:2])


def _npz(data: Trajectories, derivatives: bool) -> bytes:
    arrays: dict[str, Any] = {
        "times": data.times,
        "states": data.states,
        "names": np.array(data.names),
        "units": np.array(data.units),
        "time_unit": np.array(data.time_unit),
    }
    if derivatives:
        arrays["derivatives"] = data.derivatives
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _netcdf(data: Trajectories, derivatives: bool) -> bytes:
    import xarray

    words = {"variable": data.names, "units": data.units}
    dataset = xarray.Dataset(
        {"state": (DIMENSIONS, data.states)},
        coords={name: ("variable", np.array(values)) for name, values in words.items()},
    )
    if derivatives:
        dataset["derivative"] = (DIMENSIONS, data.derivatives)
    unit = {"units": data.time_unit} if data.time_unit else {}
    dataset = dataset.assign_coords(time=(DIMENSIONS[2 - data.times.ndim : 2], data.times, unit))
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "data.nc"
        dataset.to_netcdf(made, engine="h5netcdf")
        return made.read_bytes()


def _csv(data: Trajectories, derivatives: bool) -> bytes:
    buffer = io.StringIO()
    lines = csv.writer(buffer, lineterminator="\n")
    if {"trajectory", "time"} & set(data.names):
        raise ValueError(
            "a variable cannot be called trajectory or time in CSV: choose .nc or .npz."
        )
    columns = [_titled(n, u) for n, u in zip(data.names, data.units, strict=True)]
    rates = [f"d({name})/dt" for name in data.names] if derivatives else []
    lines.writerow(["trajectory", _titled("time", data.time_unit), *columns, *rates])
    for i, (times, length) in enumerate(zip(_rows(data), data.lengths, strict=True)):
        parts = [times[:length, None], data.states[i, :length]]
        parts += [data.derivatives[i, :length]] if derivatives else []
        # Python writes the shortest digits that read back as the same float.
        lines.writerows([i, *row] for row in np.concatenate(parts, axis=1).tolist())
    return buffer.getvalue().encode()


def _titled(name: str, unit: str) -> str:
    title = f"{name} [{unit}]" if unit else name
    if name_and_unit(title) != (name, unit):
        raise ValueError(
            f"the column {title!r} would not be read back from CSV: choose .nc or .npz."
        )
    return title


FORMATS = {
    ".nc": _netcdf,
    ".nc4": _netcdf,
    ".h5": _netcdf,
    ".hdf5": _netcdf,
    ".npz": _npz,
    ".csv": _csv,
}
