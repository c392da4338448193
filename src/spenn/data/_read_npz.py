"""NPZ files, with the sizes that they state checked before anything is allocated."""

import io
import zipfile
import zlib
from math import prod
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from ._contents import Contents, check_size

NUMBERS = ("times", "states", "derivatives")
WORDS = ("names", "units", "time_unit")
LARGEST_HEADER = 10_000
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_npz(path: Path) -> Contents:
    """Arrays `times`, `states`, and perhaps `derivatives`, `names`, `units` and `time_unit`."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(path, archive)
            arrays = {name: _array(path, archive, info) for name, info in members.items()}
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, UnicodeError):
        raise ValueError(f"{path} is a damaged NPZ file, or one that was cut short.") from None
    numbers = {name: _numbers(path, name, arrays[name]) for name in NUMBERS if name in arrays}
    words = {name: _words(path, name, arrays[name]) for name in WORDS if name in arrays}
    unit = words.pop("time_unit", ("",))
    if len(unit) != 1:
        raise ValueError(f"{path}: time_unit must be one word.")
    return Contents("NPZ", **numbers, **words, time_unit=unit[0])


def _members(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members that we read, by name, once what they state has been found possible."""
    names = [info.filename.removesuffix(".npy") for info in archive.infolist()]
    wanted = {n: i for n, i in zip(names, archive.infolist(), strict=True) if n in NUMBERS + WORDS}
    for name in ("times", "states"):
        if name not in wanted:
            held = ", ".join(names[:8]) or "nothing"
            hint = ": it is a workbook, save it as CSV" if "xl/workbook.xml" in names else ""
            raise ValueError(f"{path} has no array `{name}`; it holds {held[:200]!a}{hint}.")
    if any(names.count(name) > 1 for name in wanted):
        raise ValueError(f"{path} holds two arrays of one name.")
    if any(i.flag_bits & 1 or i.compress_type not in METHODS for i in wanted.values()):
        raise ValueError(f"{path} is encrypted or oddly compressed: save it with numpy.savez.")
    check_size(path, sum(info.file_size for info in wanted.values()))
    return wanted


def _array(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """One array, if its header and its size agree."""
    try:
        with archive.open(info) as file:
            content = file.read(info.file_size)
    except zlib.error:
        raise zipfile.BadZipFile from None
    shape, fortran, dtype, start = _header(path, info.filename, content)
    if dtype.hasobject:
        raise ValueError(
            f"{path} holds Python objects in {info.filename}, which can run any code: save plain "
            "numbers or words, of unequal lengths filled up with NaN."
        )
    if prod(shape) * dtype.itemsize != len(content) - start or min(shape, default=0) < 0:
        raise ValueError(f"{path} is damaged: {info.filename} is not as large as it states.")
    values = np.frombuffer(content, dtype, offset=start) if prod(shape) else np.empty(0, dtype)
    return values.reshape(shape, order="F" if fortran else "C")


def _header(path: Path, name: str, content: bytes):
    """Shape, order, type, and where the numbers begin."""
    file = io.BytesIO(content)
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        return *read(file, max_header_size=LARGEST_HEADER), file.tell()
    # A header is a Python literal, and there are many ways for one to be wrong.
    except Exception:
        raise ValueError(f"{path} is damaged: {name} has no valid header.") from None


def _numbers(path: Path, name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{path}: {name} must be real numbers, but are of type {array.dtype}.")
    return array.astype(np.float64)


def _words(path: Path, name: str, array: np.ndarray) -> tuple[str, ...]:
    if array.dtype.kind not in "US" or array.ndim > 1:
        raise ValueError(f"{path}: {name} must be a list of words, but are {array.dtype}.")
    try:
        if array.dtype.kind == "S":
            array = np.char.decode(array, "utf-8")
        else:  # four bytes for each character, which need not be one
            array.tobytes().decode("utf-32-be" if array.dtype.str[0] == ">" else "utf-32-le")
    except ValueError:
        raise ValueError(f"{path}: {name} are no valid text.") from None
    return tuple(map(str, np.atleast_1d(array)))
