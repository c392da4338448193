"""Files of trajectories, told apart by what is in them."""

from pathlib import Path

from ._contents import Contents, Refused
from ._trajectories import Trajectories

SUFFIXES = {
    ".nc": "NetCDF",
    ".nc4": "NetCDF",
    ".h5": "HDF5",
    ".hdf5": "HDF5",
    ".npz": "NPZ",
    ".csv": "CSV",
}
HDF5, ZIP = b"\x89HDF\r\n\x1a\n", b"PK\x03\x04"
# How files begin that someone might bring and spenn does not read, and what to do about it.
OTHERS = {
    b"CDF\x01": "is NetCDF of the classic kind: convert it, with nccopy -k nc4 OLD NEW",
    b"CDF\x02": "is NetCDF of the classic kind: convert it, with nccopy -k nc4 OLD NEW",
    b"CDF\x05": "is NetCDF of the classic kind: convert it, with nccopy -k nc4 OLD NEW",
    b"\x93NUMPY": "is a single array: save times and states together, with numpy.savez",
    b"\x80\x02": "is a pickle, which can run any code: save arrays with numpy.savez",
    b"\x80\x03": "is a pickle, which can run any code: save arrays with numpy.savez",
    b"\x80\x04": "is a pickle, which can run any code: save arrays with numpy.savez",
    b"\x80\x05": "is a pickle, which can run any code: save arrays with numpy.savez",
    b"\x1f\x8b": "is compressed by gzip: unpack it first",
    b"MATLAB": "is a MATLAB file: save times and states as HDF5, NPZ or CSV",
    b"PAR1": "is a Parquet file: save it as CSV",
    b"SIMPLE": "is a FITS file: save times and states as HDF5, NPZ or CSV",
}


def read(path: str | Path) -> Trajectories:
    """Read trajectories from a NetCDF, HDF5, NPZ or CSV file; `docs/data.md` shows each.

    **Example:** `train, calibration, test = spenn.read("cases.nc").split(60, 20, 20, seed=0)`
    """
    return trajectories_of(path, contents_of(path))


def contents_of(path: str | Path) -> Contents:
    """What a file holds; every way to fail is a `ValueError` that names the file."""
    path = Path(path)
    try:
        return _reader(path, _beginning(path))(path)
    except Refused as refused:
        raise ValueError(str(refused)) from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}.") from None
    except MemoryError:
        raise ValueError(f"{path} does not fit into the memory of this machine.") from None


def trajectories_of(path: str | Path, contents: Contents) -> Trajectories:
    """The trajectories of a file; a complaint about a value names the file as well."""
    try:
        return contents.trajectories()
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    except MemoryError:
        raise ValueError(f"{path} does not fit into the memory of this machine.") from None


def _beginning(path: Path) -> bytes:
    if not path.exists():
        raise ValueError(f"there is no file {path}.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name one of the files in it.")
    if not path.is_file():  # reading a pipe would wait for ever
        raise ValueError(f"{path} is no ordinary file.")
    with path.open("rb") as file:
        beginning = file.read(16)
    if not beginning:
        raise ValueError(f"{path} is empty.")
    return beginning


def _reader(path: Path, beginning: bytes):
    """The function that reads a file that begins like this; its libraries are imported only now."""
    if beginning.startswith(HDF5):
        from ._read_netcdf import read_netcdf

        return read_netcdf
    if beginning.startswith(ZIP):
        from ._read_npz import read_npz

        return read_npz
    for start, sentence in OTHERS.items():
        if beginning.startswith(start):
            raise ValueError(f"{path} {sentence}.")
    _refuse_by_name(path)
    from ._read_csv import read_csv

    return read_csv


def _refuse_by_name(path: Path) -> None:
    """Refuse what by its beginning is neither HDF5 nor NPZ, unless it is called CSV."""
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        known = ", ".join(SUFFIXES)
        raise ValueError(f"{path} is of no kind that spenn reads: bring one of {known}.")
    if kind != "CSV":
        raise ValueError(f"{path} is no {kind} file in spite of its name, or it is damaged.")
