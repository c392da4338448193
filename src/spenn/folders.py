"""Folders of results: everything is made in a temporary folder and moved into place at the end."""

import json
import math
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

LAST = "results.json"


def prepare(out: Path) -> None:
    """Make sure that results can be written, before any work is done."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise ValueError(f"cannot write to {out}: {error.strerror}.") from None


@contextmanager
def together(out: Path) -> Iterator[Path]:
    """A folder to write into; what is in it moves to `out` at the end, or nothing if that fails.

    `figures` are replaced as a whole. The results go last: where they are, the rest is too.
    """
    made = Path(tempfile.mkdtemp(dir=out, prefix=".partial-"))
    try:
        (made / "figures").mkdir()
        yield made
        shutil.rmtree(out / "figures", ignore_errors=True)
        for path in sorted(made.iterdir(), key=lambda path: path.name == LAST):
            path.replace(out / path.name)
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
