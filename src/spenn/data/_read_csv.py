"""CSV files in long form: one line per record, `trajectory,time,<names>`."""

import csv
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ._contents import Contents, check_size, padded_size

EXPECTED = "separate columns by commas and write decimals with a point"
WITH_UNIT = re.compile(r"(.*\S)\s+\[([^\[\]]*)\]")
DERIVATIVE = re.compile(r"d\((.+)\)/dt")


class _Header(NamedTuple):
    """Where each column is, and what it is called."""

    columns: list[str]  # as they stand in the file
    trajectory: int
    time: int
    values: list[int]  # states, then derivatives if there are any
    names: list[str]
    units: list[str]
    time_unit: str


@dataclass
class _Rows:
    """Records of one trajectory."""

    times: array = field(default_factory=lambda: array("d"))
    values: array = field(default_factory=lambda: array("d"))


def read_csv(path: Path) -> Contents:
    """Columns `trajectory`, `time`, one per variable, and perhaps `d(name)/dt` of each."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = _header(path, next(reader, []))
            groups = _groups(path, header, _lines(path, header, reader))
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text in UTF-8: save it as CSV in UTF-8.") from None
    except csv.Error as error:
        raise ValueError(f"{path} is no CSV file: {error}.") from None
    return _contents(path, header, groups)


def _contents(path: Path, header: _Header, groups: dict[str, _Rows]) -> Contents:
    if not groups:
        raise ValueError(f"{path} holds no records, only the names of columns.")
    for name, rows in groups.items():
        if len(rows.times) < 2:
            raise ValueError(
                f"{path}: trajectory {name[:80]!r} has one record, and two are the least: leave "
                "it out."
            )
    lengths = [len(rows.times) for rows in groups.values()]
    check_size(path, padded_size(lengths, len(header.values)))
    count, width = len(header.names), len(header.values)
    tables = [np.array(rows.values).reshape(-1, width) for rows in groups.values()]
    return Contents(
        kind="CSV",
        times=[np.array(rows.times) for rows in groups.values()],
        states=[table[:, :count] for table in tables],
        derivatives=[table[:, count:] for table in tables] if width > count else None,
        names=header.names,
        units=header.units,
        time_unit=header.time_unit,
    )


def _header(path: Path, cells: Sequence[str]) -> _Header:
    """Names and units from the first line."""
    _check_separator(path, cells)
    named = [name_and_unit(cell) for cell in cells]
    names = [name for name, _ in named]
    for name in ("trajectory", "time"):
        if name not in names:
            raise ValueError(
                f"{path}, line 1: there is no column `{name}`; the first line must read "
                "trajectory,time,<names>."
            )
    for name in names:
        if not name or names.count(name) > 1:
            raise ValueError(
                f"{path}, line 1: the column {name[:80]!r} is there twice or nameless."
            )
    of = {m[1]: i for i, name in enumerate(names) if (m := DERIVATIVE.fullmatch(name))}
    reserved = {names.index("trajectory"), names.index("time"), *of.values()}
    states = [i for i in range(len(names)) if i not in reserved]
    _check_derivatives(path, [names[i] for i in states], list(of))
    return _Header(
        columns=list(cells),
        trajectory=names.index("trajectory"),
        time=names.index("time"),
        values=states + [of[names[i]] for i in states if of],
        names=[names[i] for i in states],
        units=[named[i][1] for i in states],
        time_unit=named[names.index("time")][1],
    )


def _check_separator(path: Path, cells: Sequence[str]) -> None:
    if len(cells) < 2:
        for separator, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if any(separator in cell for cell in cells):
                raise ValueError(f"{path}, line 1: columns are separated by {word}; {EXPECTED}.")
    if any("\0" in cell for cell in cells):
        raise ValueError(f"{path} is no text, in spite of its name.")


def name_and_unit(cell: str) -> tuple[str, str]:
    """`q [m]` is q in m; `u[0]`, without a space, is a name."""
    found = WITH_UNIT.fullmatch(cell.strip())
    return (found[1], found[2].strip()) if found else (cell.strip(), "")


def _check_derivatives(path: Path, names: list[str], of: list[str]) -> None:
    if not names:
        raise ValueError(f"{path}, line 1: there is no variable beside trajectory and time.")
    for name in of:
        if name not in names:
            raise ValueError(
                f"{path}, line 1: d({name[:80]})/dt is there, but no column of that name."
            )
    for name in names:
        if of and name not in of:
            raise ValueError(
                f"{path}, line 1: derivatives must be there of all variables or of none, but "
                f"d({name[:80]})/dt is missing."
            )


def _lines(path: Path, header: _Header, reader) -> Iterator[tuple[int, str, float, list[float]]]:
    """Line number, trajectory, time and values of each record."""
    width, columns = len(header.columns), [header.time, *header.values]
    for row in reader:
        if not row:
            continue
        if len(row) != width:
            hint = f": {EXPECTED}" if len(row) > width or len(row) == 1 else ""
            raise ValueError(
                f"{path}, line {reader.line_num}: there are {len(row)} values under {width} "
                f"columns{hint}."
            )
        try:
            time, *values = [float(row[i]) for i in columns]
        except ValueError:
            raise _wrong_cell(path, reader.line_num, header, row) from None
        if not (isfinite(time) and all(map(isfinite, values))):
            raise _wrong_cell(path, reader.line_num, header, row)
        yield reader.line_num, row[header.trajectory].strip(), time, values


def _wrong_cell(path: Path, line: int, header: _Header, row: Sequence[str]) -> ValueError:
    """The complaint about the first cell that is no finite number."""
    i = next(i for i in (header.time, *header.values) if not _is_number(row[i]))
    cell = row[i].strip()
    hint = " (write decimals with a point)" if re.fullmatch(r"[-+]?\d+,\d+", cell) else ""
    what = f"{cell[:40]!r} is no finite number{hint}" if cell else "a value is missing"
    return ValueError(f"{path}, line {line}, column {header.columns[i].strip()[:80]!r}: {what}.")


def _is_number(cell: str) -> bool:
    try:
        return isfinite(float(cell))
    except ValueError:
        return False


def _groups(path: Path, header: _Header, lines) -> dict[str, _Rows]:
    """Records by trajectory, in the order in which trajectories come first."""
    groups: dict[str, _Rows] = {}
    for line, name, time, values in lines:
        rows = groups.get(name)
        if rows is None:
            if not name:
                raise ValueError(f"{path}, line {line}: the record belongs to no trajectory.")
            rows = groups[name] = _Rows()
        if rows.times and time <= rows.times[-1]:
            raise ValueError(
                f"{path}, line {line}: the time {time:g} of trajectory {name[:80]!r} does not come "
                f"after {rows.times[-1]:g}; times must increase within a trajectory."
            )
        rows.times.append(time)
        rows.values.extend(values)
    return groups
