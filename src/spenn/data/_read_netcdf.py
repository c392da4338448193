"""NetCDF and HDF5 files through xarray, once h5py has found them harmless.

A small file can declare more than any memory holds, or point to other files; xarray would follow.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ._contents import Contents, Refused, check_size
from ._heaps import heaps_are_sound

DIMENSIONS = ("trajectory", "time", "variable")
ORDER = {1: ("time",), 2: ("trajectory", "time"), 3: DIMENSIONS}
WORDS = ("variable", "units")
WHOLE = [set(DIMENSIONS)]
ALLOWED = {
    "state": WHOLE,
    "derivative": WHOLE,
    "time": [{"time"}, {"trajectory", "time"}],
    "variable": [{"variable"}],
    "units": [{"variable"}],
}
LONGEST_TEXT = 1_000_000


def read_netcdf(path: Path) -> Contents:
    """Variable `state` over trajectory, time and variable, with coordinates `time`, `variable`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of old conventions, which say nothing to a user here
        try:
            _look(path)
            return _read(path)
        except (Refused, MemoryError):
            raise
        # Libraries meet damage in many places, and say so in as many ways.
        except Exception as error:
            raise ValueError(
                f"{path} is damaged, or not as HDF5 and NetCDF files should be: {_brief(error)}."
            ) from None


def _brief(error: Exception) -> str:
    """What a library said, in one short line."""
    words = " ".join("".join(c if c.isprintable() else " " for c in str(error)).split())
    return words[:120].rstrip(". ") or type(error).__name__


def _look(path: Path) -> None:
    """Refuse what points outside the file, holds objects, or declares more than it can hold."""
    import h5py

    if not heaps_are_sound(path):
        raise Refused(f"{path} is damaged: its words cannot be found.")
    with h5py.File(path, "r") as file:
        total = 0
        for name in map(str, file):
            if not isinstance(file.get(name, getlink=True), h5py.HardLink):
                raise Refused(
                    f"{path}: {name!a} is a link to elsewhere: store the data themselves."
                )
            item = file[name]
            if isinstance(item, h5py.Dataset):
                _look_at(path, name, item)
                total += int(item.size or 0) * item.dtype.itemsize
        check_size(path, total)


def _look_at(path: Path, name: str, item) -> None:
    import h5py

    if item.is_virtual or item.external:
        raise Refused(f"{path}: {name!a} is kept in another file: store the data themselves.")
    check_size(path, int(np.prod(item.chunks or (0,), dtype=object)) * item.dtype.itemsize)
    if h5py.check_string_dtype(item.dtype) and item.dtype.hasobject:
        _look_at_words(path, name, item)
    elif item.dtype.kind not in "fiuSb":
        raise Refused(f"{path}: {name!a} must be numbers or words, but is {str(item.dtype)!a}.")


def _look_at_words(path: Path, name: str, item) -> None:
    """Words of any length may all be the same long one: count before reading them at once."""
    check_size(path, 64 * item.size)
    length = 0
    for where in np.ndindex(item.shape):
        length += len(item[where])
        if length > LONGEST_TEXT:
            raise Refused(f"{path}: the words in {name!a} are too long.")


def _read(path: Path) -> Contents:
    import xarray

    options: dict[str, Any] = {"decode_times": False, "phony_dims": "access", "cache": False}
    with xarray.open_dataset(path, engine="h5netcdf", **options) as dataset:
        dataset = _checked(path, dataset)
        state, time = dataset["state"], dataset["time"]
        derivative = dataset.get("derivative")
        return Contents(
            kind="HDF5" if path.suffix.lower() in (".h5", ".hdf5") else "NetCDF",
            times=_numbers(path, time.transpose(*(d for d in DIMENSIONS if d in time.dims))),
            states=_numbers(path, state.transpose(*DIMENSIONS)),
            derivatives=None
            if derivative is None
            else _numbers(path, derivative.transpose(*DIMENSIONS)),
            names=_words(dataset["variable"]) if "variable" in dataset.variables else (),
            units=_units(path, dataset),
            time_unit=_text(time.attrs.get("units", "")),
        )


def _checked(path: Path, dataset):
    """The data set, once its variables have the dimensions that they should have."""
    for name in ("state", "time"):
        if name not in dataset.variables:
            held = ", ".join(map(str, dataset.variables)) or "nothing"
            raise Refused(f"{path} has no variable `{name}`; it holds {held[:200]!a}.")
    if any(str(d).startswith("phony_dim") for d in dataset["state"].dims):
        dataset = _in_order(path, dataset)
    for name, allowed in ALLOWED.items():
        if name not in dataset.variables:
            continue
        dims = dataset[name].dims
        if set(dims) not in allowed:
            raise Refused(
                f"{path}: `{name}` must have {_dimensions(allowed)}, but has "
                f"{', '.join(map(str, dims))[:200]!a}."
            )
    return dataset


def _dimensions(allowed: list[set[str]]) -> str:
    each = (", ".join(d for d in DIMENSIONS if d in one) for one in allowed)
    return f"the dimensions ({') or ('.join(each)})"


def _in_order(path: Path, dataset):
    """A plain HDF5 file does not name its dimensions: they are taken in our order."""
    import xarray

    if dataset["state"].ndim != 3:
        return dataset

    def named(name: str, variable):
        dims = ("variable",) if name in WORDS else ORDER.get(variable.ndim, variable.dims)
        return xarray.Variable(dims, variable.data, variable.attrs)

    variables = {n: named(n, dataset[n].variable) for n in ALLOWED if n in dataset.variables}
    try:
        return xarray.Dataset(variables)
    except ValueError:
        sizes = ", ".join(f"{name} {variable.shape}" for name, variable in variables.items())
        raise Refused(f"{path}: arrays do not fit together, of shapes {sizes}.") from None


def _numbers(path: Path, variable) -> np.ndarray:
    if variable.dtype.kind not in "fiu":
        raise Refused(f"{path}: `{variable.name}` must be real numbers.")
    return np.asarray(variable.values, dtype=np.float64)


def _units(path: Path, dataset) -> tuple[str, ...]:
    """From a coordinate `units`, or from that attribute of `state`: one word, or one each."""
    if "units" in dataset.variables:
        return _words(dataset["units"])
    given, size = dataset["state"].attrs.get("units", ()), dataset.sizes["variable"]
    words = (_text(given),) * size if np.ndim(given) == 0 else tuple(map(_text, given))
    if words and len(words) != size:
        raise Refused(f"{path}: `state` has {len(words)} units for {size} variables.")
    return words


def _words(variable) -> tuple[str, ...]:
    return tuple(map(_text, variable.values.ravel()))


def _text(word) -> str:
    return word.decode() if isinstance(word, bytes) else str(word)
