"""NetCDF and HDF5 files through xarray, once h5py has found them harmless.

A small file can declare more than any memory holds, or point to other files; xarray would follow.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ._contents import Contents, check_size

DIMENSIONS = ("trajectory", "time", "variable")
LONGEST_TEXT = 1_000_000


def read_netcdf(path: Path) -> Contents:
    """Variable `state` over trajectory, time and variable, with coordinates `time`, `variable`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of old conventions, which say nothing to a user here
        try:
            _look(path)
            return _read(path)
        except _Refused as refused:
            raise ValueError(str(refused)) from None
        except MemoryError:
            raise
        # Libraries meet damage in many places, and say so in as many ways.
        except Exception as error:
            raise ValueError(
                f"{path} is damaged, or not as HDF5 and NetCDF files should be: {_brief(error)}."
            ) from None


class _Refused(Exception):
    """One sentence for the user."""


def _brief(error: Exception) -> str:
    """What a library said, in one short line."""
    words = " ".join("".join(c if c.isprintable() else " " for c in str(error)).split())
    return words[:120].rstrip(". ") or type(error).__name__


def _look(path: Path) -> None:
    """Refuse what points outside the file, holds objects, or declares more than it can hold."""
    import h5py

    with h5py.File(path, "r") as file:
        total = 0
        for name in file:
            if not isinstance(file.get(name, getlink=True), h5py.HardLink):
                raise _Refused(f"{path}: {name!a} is a link to elsewhere: store the data themselves.")
            item = file[name]
            if isinstance(item, h5py.Dataset):
                _look_at(path, name, item)
                total += max(item.size or 0, *map(int, item.chunks or (0,))) * item.dtype.itemsize
        check_size(path, total)


def _look_at(path: Path, name: str, item) -> None:
    import h5py

    if item.is_virtual or item.external:
        raise _Refused(f"{path}: {name!a} is kept in another file: store the data themselves.")
    check_size(path, int(np.prod(item.chunks or (0,), dtype=object)) * item.dtype.itemsize)
    if h5py.check_string_dtype(item.dtype) and item.dtype.hasobject:
        _look_at_words(path, name, item)
    elif item.dtype.kind not in "fiuSb":
        raise _Refused(f"{path}: {name!a} must be numbers or words, but is {str(item.dtype)!a}.")


def _look_at_words(path: Path, name: str, item) -> None:
    """Words of any length may all be the same long one: count before reading them at once."""
    check_size(path, 64 * item.size)
    length = 0
    for where in np.ndindex(item.shape):
        length += len(item[where])
        if length > LONGEST_TEXT:
            raise _Refused(f"{path}: the words in {name!a} are too long.")


def _read(path: Path) -> Contents:
    import xarray

    options: dict[str, Any] = {"decode_times": False, "phony_dims": "access"}
    with xarray.open_dataset(path, engine="h5netcdf", cache=False, **options) as dataset:
        dataset = _with_dimensions(path, dataset)
        time, state = dataset["time"], dataset["state"]
        derivative = dataset.get("derivative")
        return Contents(
            kind="HDF5" if path.suffix.lower() in (".h5", ".hdf5") else "NetCDF",
            times=_numbers(path, time.transpose(*[d for d in DIMENSIONS if d in time.dims])),
            states=_numbers(path, state.transpose(*DIMENSIONS)),
            derivatives=None if derivative is None else _numbers(path, derivative),
            names=_words(dataset["variable"].values) if "variable" in dataset.variables else (),
            units=_units(dataset),
            time_unit=_text(time.attrs.get("units", "")),
        )


def _with_dimensions(path: Path, dataset):
    """The data set with our names for dimensions, which a plain HDF5 file does not have."""
    for name in ("state", "time"):
        if name not in dataset.variables:
            held = ", ".join(map(str, dataset.variables)) or "nothing"
            raise _Refused(f"{path} has no variable `{name}`; it holds {held[:200]!a}.")
    dims = dataset["state"].dims
    if len(dims) == 3 and all(str(d).startswith("phony_dim") for d in dims):
        dataset = _named(dataset)
    if set(dataset["state"].dims) != set(DIMENSIONS):
        raise _Refused(
            f"{path}: `state` must have the dimensions trajectory, time and variable, but has "
            f"{', '.join(map(str, dataset['state'].dims))[:200]!a}."
        )
    for name, allowed in (("time", {"trajectory", "time"}), ("derivative", set(DIMENSIONS))):
        if name in dataset.variables and not set(dataset[name].dims) <= allowed:
            raise _Refused(f"{path}: the dimensions of `{name}` do not fit those of `state`.")
    return dataset
