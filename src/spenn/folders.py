"""Files and folders of results: whole or not at all, and never written by two at once."""

import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # not on Windows: there, nothing is locked
    fcntl = None

LAST = "results.json"
LOCK = ".lock"
PARTIAL = ".partial-"


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it is, at any moment, the old one or the new one."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _to_disk(path.parent)


def _to_disk(path: Path) -> None:
    """Make a file, or the names in a folder, outlast a loss of power, where the system can."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def prepare(out: Path) -> None:
    """Make sure that results can be written, before any work is done."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise ValueError(f"cannot write to {out}: {error.strerror}.") from None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Be alone in a folder; the lock goes with the process, however that ends."""
    path = folder / LOCK
    file = _lock(path)
    try:
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        file.close()


def _lock(path: Path) -> IO[str]:
    while True:
        file = path.open("a+")
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            number = file.read() or "unknown"
            file.close()
            raise ValueError(
                f"another spenn is at work in {path.parent} (process {number}): wait for it, or "
                "choose another folder."
            ) from None
        except OSError:
            return file  # a file system without locks
        # Whoever had it may have removed it after it was opened here: then it locks nothing.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()


@contextmanager
def together(out: Path) -> Iterator[Path]:
    """A folder to write into; what is in it moves to `out` at the end, or nothing if that fails.

    `figures` are replaced as a whole. New results go last: where they are, the rest is too. Where
    none come, those of before stay, and what is cut short is made again from them.
    """
    for left in out.glob(f"{PARTIAL}*"):  # by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(dir=out, prefix=PARTIAL))
    try:
        (made / "figures").mkdir()
        yield made
        for path in made.rglob("*"):
            _to_disk(path)
        if (made / LAST).exists():
            (out / LAST).unlink(missing_ok=True)
        shutil.rmtree(out / "figures", ignore_errors=True)
        for path in sorted(made.iterdir(), key=lambda path: path.name == LAST):
            path.replace(out / path.name)
        _to_disk(out)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def number(value) -> float | None:
    """A plain float; JSON has no infinity, so what is not finite is null."""
    value = float(value)
    return value if math.isfinite(value) else None


def write_json(document: Mapping, path: Path) -> None:
    """Plain JSON: a number that is not finite is an error."""
    path.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n")


def to_toml(table: Mapping, prefix: str = "") -> str:
    """A flat TOML document with one level of tables; `None` is left out, as TOML has no null."""
    plain = {k: v for k, v in table.items() if v is not None and not isinstance(v, Mapping)}
    lines = [f"{key} = {_toml_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{prefix}{key}]", to_toml(value, f"{prefix}{key}.").rstrip("\n")]
    return "\n".join(lines) + "\n"


def _toml_value(value) -> str:
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    # Strings, numbers and booleans are written alike in JSON and TOML.
    return json.dumps(value)
