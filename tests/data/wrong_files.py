"""Wrong files by name: each function writes one, and says what the complaint must mention."""

import io
import struct
import zipfile

import h5py
import numpy as np

TIMES = np.linspace(0, 1, 6)
STATES = np.stack([np.stack([np.sin(TIMES + i), TIMES**2], 1) for i in range(3)])
GOOD_CSV = "trajectory,time,q,p\na,0,1,2\na,1,2,3\nb,0,1,2\nb,1,3,1\n"


def _npz(**arrays):
    def write(path):
        with path.open("wb") as file:
            np.savez(file, **arrays)

    return write


def _bytes(content):
    return lambda path: path.write_bytes(content)


def _csv(text):
    return lambda path: path.write_text(text)


def _changed(old, new):
    assert old in GOOD_CSV
    return _csv(GOOD_CSV.replace(old, new, 1))


def _h5(**datasets):
    def write(path):
        with h5py.File(path, "w") as file:
            for name, value in datasets.items():
                file[name] = value

    return write


def _hdf5_by(function):
    def write(path):
        with h5py.File(path, "w") as file:
            file["time"] = TIMES
            function(file)

    return write


def _claims_a_gigabyte(path):
    """A header that claims far more than follows."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": (2**17, 2**10, 1)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("states.npy", buffer.getvalue())
        archive.writestr("times.npy", buffer.getvalue())


def _bomb(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("times", "states"):
            with archive.open(f"{name}.npy", "w") as file:
                for _ in range(100):
                    file.write(bytes(2**20))


def _lies_about_its_size(path):
    """The directory of the archive states another size than there is."""
    _npz(times=TIMES, states=STATES)(path)
    content = bytearray(path.read_bytes())
    entry = content.find(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = struct.pack("<I", 2**31)
    path.write_bytes(content)


def _cut(write, share):
    def cut(path):
        write(path)
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])

    return cut


def _flipped(path):
    _npz(times=TIMES, states=STATES)(path)
    content = bytearray(path.read_bytes())
    content[content.find(b"states.npy") + 200] ^= 1
    path.write_bytes(content)


def _two_of_one_name(path):
    import warnings

    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore")
        for name in ("times", "states", "states"):
            buffer = io.BytesIO()
            np.save(buffer, TIMES)
            archive.writestr(f"{name}.npy", buffer.getvalue())


def _workbook(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")


def _endless_heap(path):
    _h5(time=TIMES, state=STATES, variable=["q", "p"])(path)
    content = bytearray(path.read_bytes())
    heap = content.find(b"GCOL")
    content[heap + 16 : heap + 32] = bytes(16)
    path.write_bytes(content)


def _unequal(path):
    """One long trajectory and very many short ones, which would be filled up to its length."""
    lines = [f"long,{i},1" for i in range(30_000)]
    lines += [f"{i},{t},1" for i in range(15_000) for t in (0, 1)]
    path.write_text("trajectory,time,q\n" + "\n".join(lines))


NAN = STATES.copy()
NAN[1, 2, 0] = np.nan
INFINITE = STATES.copy()
INFINITE[0, 1, 1] = np.inf
NAMES = np.array(["q", "p"])

# name: (file, writer, words of the complaint)
WRONG = {
    # kinds
    "empty": ("x.csv", _bytes(b""), "is empty"),
    "folder": ("x.nc", lambda path: path.mkdir(), "is a folder"),
    "missing": ("x.nc", lambda path: None, "there is no file"),
    "unknown suffix": ("x.dat", _bytes(b"hello"), "no kind that spenn reads"),
    "pickle as npz": ("x.npz", _bytes(b"\x80\x04\x95\x10\x00"), "is a pickle"),
    "npy as npz": ("x.npz", lambda p: p.write_bytes(b"\x93NUMPY\x01\x00"), "is a single array"),
    "text as nc": ("x.nc", _bytes(b"time,q\n0,1\n"), "is no NetCDF file"),
    "text as npz": ("x.npz", _bytes(b"time,q\n0,1\n"), "is no NPZ file"),
    "classic netcdf": ("x.nc", _bytes(b"CDF\x01" + bytes(60)), "nccopy"),
    "gzip": ("x.csv", _bytes(b"\x1f\x8b\x08" + bytes(20)), "unpack it"),
    "matlab": ("x.csv", _bytes(b"MATLAB 5.0 MAT-file" + bytes(200)), "is a MATLAB file"),
    "workbook": ("x.npz", _workbook, "save it as CSV"),
    # npz
    "npz without states": ("x.npz", _npz(times=TIMES), "no array `states`"),
    "npz without times": ("x.npz", _npz(states=STATES), "no array `times`"),
    "npz of objects": (
        "x.npz",
        _npz(times=TIMES, states=np.array([1, None], dtype=object)),
        "Python objects",
    ),
    "npz of words": ("x.npz", _npz(times=TIMES, states=np.array(["a"])), "real numbers"),
    "npz of complex": ("x.npz", _npz(times=TIMES, states=1j * STATES), "real numbers"),
    "npz states 2-D": (
        "x.npz",
        _npz(times=TIMES, states=STATES[0]),
        "(trajectory, time, variable)",
    ),
    "npz times short": ("x.npz", _npz(times=TIMES[1:], states=STATES), "one number per record"),
    "npz times down": ("x.npz", _npz(times=-TIMES, states=STATES), "increasing"),
    "npz nan inside": ("x.npz", _npz(times=TIMES, states=NAN), "trajectory 1, record 2, variable"),
    "npz infinity": ("x.npz", _npz(times=TIMES, states=INFINITE), "trajectory 0, record 1"),
    "npz derivatives": (
        "x.npz",
        _npz(times=TIMES, states=STATES, derivatives=STATES[:2]),
        "derivatives",
    ),
    "npz names": ("x.npz", _npz(times=TIMES, states=STATES, names=NAMES[:1]), "one per variable"),
    "npz name twice": (
        "x.npz",
        _npz(times=TIMES, states=STATES, names=np.array(["q", "q"])),
        "different words",
    ),
    "npz names of no characters": (
        "x.npz",
        _npz(times=TIMES, states=STATES, names=np.full(2, 2**31, "u4").view("<U1")),
        "no valid text",
    ),
    "npz names as numbers": (
        "x.npz",
        _npz(times=TIMES, states=STATES, names=np.arange(2)),
        "list of words",
    ),
    "npz unit of two lines": (
        "x.npz",
        _npz(times=TIMES, states=STATES, units=np.array(["m\ns", ""])),
        "no plain word",
    ),
    "npz empty": ("x.npz", _npz(times=TIMES, states=STATES[:0]), "empty"),
    "npz one record": ("x.npz", _npz(times=TIMES[:1], states=STATES[:, :1]), "two records"),
    "npz huge numbers": ("x.npz", _npz(times=TIMES, states=1e200 * STATES), "other units"),
    "npz header claims": ("x.npz", _claims_a_gigabyte, "not as large as it states"),
    "npz bomb": ("x.npz", _bomb, "GB of memory"),
    "npz lies": ("x.npz", _lies_about_its_size, ""),
    "npz cut": ("x.npz", _cut(_npz(times=TIMES, states=STATES), 0.6), "damaged"),
    "npz bit": ("x.npz", _flipped, "damaged"),
    "npz twice": ("x.npz", _two_of_one_name, "two arrays of one name"),
    # csv
    "csv semicolons": ("x.csv", _csv(GOOD_CSV.replace(",", ";")), "separated by semicolons"),
    "csv tabs": ("x.csv", _csv(GOOD_CSV.replace(",", "\t")), "separated by tabs"),
    "csv comma decimals": ("x.csv", _changed("a,0,1,2", "a,0,1,5,2,5"), "line 2"),
    "csv quoted decimals": ("x.csv", _changed("a,0,1,2", 'a,0,"1,5",2'), "decimals with a point"),
    "csv no header": ("x.csv", _csv("0,0,1,2\n0,1,2,3\n"), "no column `trajectory`"),
    "csv no time": ("x.csv", _changed("time", "t"), "no column `time`"),
    "csv no variable": ("x.csv", _csv("trajectory,time\na,0\n"), "no variable"),
    "csv column twice": ("x.csv", _changed(",q,", ",p,"), "twice"),
    "csv nameless column": ("x.csv", _changed(",q,", ",,"), "nameless"),
    "csv only header": ("x.csv", _csv("trajectory,time,q\n"), "no records"),
    "csv short line": ("x.csv", _changed("b,1,3,1", "b,1,3"), "line 5: there are 3 values"),
    "csv word": ("x.csv", _changed("b,1,3,1", "b,1,three,1"), "line 5, column 'q': 'three'"),
    "csv nan": ("x.csv", _changed("b,1,3,1", "b,1,nan,1"), "line 5, column 'q'"),
    "csv gap": ("x.csv", _changed("b,1,3,1", "b,1,,1"), "line 5, column 'q': a value is missing"),
    "csv overflow": ("x.csv", _changed("b,1,3,1", "b,1,3,1e999"), "line 5, column 'p'"),
    "csv time back": ("x.csv", _changed("b,1,3,1", "b,-1,3,1"), "line 5: the time -1"),
    "csv time twice": ("x.csv", _changed("b,1,3,1", "b,0,3,1"), "line 5: the time 0"),
    "csv one record": ("x.csv", _changed("b,1,3,1\n", ""), "trajectory 'b' has one record"),
    "csv no label": ("x.csv", _changed("b,1,3,1", ",1,3,1"), "belongs to no trajectory"),
    "csv half derivatives": ("x.csv", _changed(",p", ",d(q)/dt,p"), "d(p)/dt is missing"),
    "csv odd derivative": ("x.csv", _changed(",p", ",d(r)/dt"), "no column of that name"),
    "csv latin-1": ("x.csv", _bytes("trajectory,time,größe\n".encode("latin-1")), "UTF-8"),
    "csv binary": ("x.csv", _bytes(b"trajectory\0,time\0\n\0\0"), "no text"),
    "csv quotes": ("x.csv", _changed("b,1,3,1", 'b,1,"3"x,1'), "no CSV file"),
    "csv bad name": ("x.csv", _changed(",q,", ",<b>,"), "no plain word"),
    "csv unequal": ("x.csv", _unequal, "differ too much in length"),
    # hdf5 and netcdf
    "h5 without state": ("x.h5", _h5(time=TIMES), "no variable `state`"),
    "h5 without time": ("x.h5", _h5(state=STATES), "no variable `time`"),
    "h5 states 2-D": ("x.h5", _h5(time=TIMES, state=STATES[0]), "dimensions (trajectory, time"),
    "h5 of words": ("x.h5", _h5(time=TIMES, state=np.array(b"text")), "state"),
    "h5 sizes": ("x.h5", _h5(time=TIMES[1:], state=STATES), "do not fit together"),
    "h5 units": ("x.h5", _h5(time=TIMES, state=STATES, units=[b"m"]), "do not fit together"),
    "h5 nan": ("x.nc", _h5(time=TIMES, state=NAN), "trajectory 1, record 2"),
    "h5 cut": ("x.nc", _cut(_h5(time=TIMES, state=STATES), 0.5), "damaged"),
    "h5 beginning only": ("x.nc", _bytes(b"\x89HDF\r\n\x1a\n" + bytes(90)), "damaged"),
    "h5 external link": (
        "x.h5",
        _hdf5_by(lambda f: f.__setitem__("state", h5py.ExternalLink("other.h5", "/state"))),
        "link to elsewhere",
    ),
    "h5 soft link": (
        "x.h5",
        _hdf5_by(lambda f: f.__setitem__("state", h5py.SoftLink("/time"))),
        "link to elsewhere",
    ),
    "h5 external data": (
        "x.h5",
        _hdf5_by(
            lambda f: f.create_dataset(
                "state", (2, 6, 1), "f8", external=[("/etc/hostname", 0, 96)]
            )
        ),
        "in another file",
    ),
    "h5 declares 40 GB": (
        "x.h5",
        _hdf5_by(lambda f: f.create_dataset("state", (1000, 6, 10**6), "f8", chunks=(1, 6, 1000))),
        "GB of memory",
    ),
    "h5 huge chunk": (
        "x.h5",
        _hdf5_by(
            lambda f: f.create_dataset(
                "state", (2, 6, 1), "f8", chunks=(2**9, 2**10, 2**8), maxshape=(None, None, None)
            )
        ),
        "GB of memory",
    ),
    "h5 complex": ("x.h5", _h5(time=TIMES, state=1j * STATES), "numbers or words"),
    "h5 endless heap": ("x.h5", _endless_heap, "damaged"),
}
