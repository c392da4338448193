"""Tables that do not change: rows of numbers with the best marked, and where each came from."""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from .._view import PageView
from ._text import MISSING, number, percent, shown
from ._verdict import total_seconds, variable_names

BEST = '<span class="best" aria-hidden="true">★</span><span class="unseen"> (best)</span>'
LAWS = {
    "max_energy_rate": "largest energy rate",
    "max_energy_drift": "largest energy drift",
    "min_entropy_rate": "smallest entropy rate",
    "min_entropy_step": "smallest entropy step",
    "energy_violations": "records with a drift beyond rounding",
    "entropy_violations": "records with falling entropy, beyond rounding",
    "diverged": "diverged samples",
    "mean_sweeps": "sweeps per step",
    "max_sweeps": "most sweeps of a step",
}


@dataclass(frozen=True)
class Cell:
    """A number of a table; `None` is one that is not there."""

    value: float | None
    write: Callable[[float | None], str] = number
    competes: bool = True
    """Whether it may be the best of its column."""


@dataclass(frozen=True)
class Row:
    """A line of a table, with HTML as its heading."""

    heading: str
    cells: tuple[Cell, ...]
    kind: str = ""
    """CSS class: 'ours', 'paper', 'floor'."""


def table(
    caption: str, columns: list[str], rows: list[Row], best: tuple[bool, ...] | None = None
) -> str:
    """A table; `best` says in which columns the lowest number wins a star."""
    best = best or (False,) * (len(columns) - 1)
    lowest = [_lowest(rows, i) if wins else None for i, wins in enumerate(best)]
    head = "".join(f'<th scope="col">{escape(c)}</th>' for c in columns)
    body = "".join(_row(row, lowest) for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption><span>{escape(caption)}</span></caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _lowest(rows: list[Row], column: int) -> float | None:
    values = [c.value for c in (row.cells[column] for row in rows) if c.competes]
    known = [v for v in values if v is not None and v == v]
    return min(known) if len(known) > 1 else None


def _row(row: Row, lowest: list[float | None]) -> str:
    cells = "".join(_cell(c, low) for c, low in zip(row.cells, lowest, strict=True))
    return f'<tr class="{row.kind}"><th scope="row">{row.heading}</th>{cells}</tr>'


def _cell(cell: Cell, lowest: float | None) -> str:
    wins = cell.competes and cell.value is not None and cell.value == lowest
    text = shown(cell.write(cell.value), cell.value)
    return f"<td>{f'<strong>{text}</strong>{BEST}' if wins else text}</td>"


def method_heading(view: PageView, name: str, note: str = "") -> str:
    """The swatch that the charts use too, and the name."""
    index = [m.name for m in view.methods].index(name)
    small = f" <small>{escape(note)}</small>" if note else ""
    return f'<span class="swatch m{index}" aria-hidden="true"></span>{escape(name)}{small}'


def scores(view: PageView) -> str:
    """Energy score, CRPS per variable, samples and seconds, with the paper's and the floor."""
    results, names = view.results, variable_names(view.results)
    floor = results["floor"]["mae"]
    blank = Cell(None)
    exact = tuple(Cell(floor[n], competes=False) for n in names)
    rows = []
    if any(value is not None for value in floor.values()):
        heading = "exact physics <small>mean absolute error</small>"
        rows.append(Row(heading, (blank, blank, blank, *exact), "floor"))
    for method in view.methods:
        entry = results["methods"][method.name]
        rows.append(Row(*_scores_of(view, method.name, entry, names), "ours"))
    for name, entry in results.get("paper", {}).items():
        rows.append(Row(f"paper: {escape(name)}", _paper(entry, names), "paper"))
    columns = ["method", "samples", "seconds", "energy score", *(f"CRPS {n}" for n in names)]
    best = (False, False, True, *(True for _ in names))
    return table("Scores over all test trajectories: lower is better", columns, rows, best)


def _scores_of(view: PageView, name: str, entry: dict, names: list[str]):
    """A single model has no CRPS of its own: that of a point forecast is its absolute error."""
    scores = entry.get("crps", entry["mae"])
    note = "" if "crps" in entry else "mean absolute error"
    cells = (
        Cell(entry["samples"], competes=False),
        Cell(total_seconds(entry), seconds),
        Cell(entry.get("energy_score")),
        *(Cell(scores[n]) for n in names),
    )
    return method_heading(view, name, note), cells


def _paper(entry: dict, names: list[str]) -> tuple[Cell, ...]:
    crps = entry.get("crps", {})
    return (
        Cell(None),
        Cell(entry.get("seconds", {}).get("total"), seconds),
        Cell(entry.get("energy_score")),
        *(Cell(crps.get(n)) for n in names),
    )


def seconds(value: float | None) -> str:
    return MISSING if value is None else number(round(value))


def errors(view: PageView) -> str:
    """Median relative error per variable."""
    results, names = view.results, variable_names(view.results)
    floor = results["floor"].get("rl2e", {})
    exact = tuple(Cell(floor.get(n), competes=False) for n in names)
    known = any(floor.get(n) is not None for n in names)
    rows = [Row("exact physics", exact, "floor")] if known else []
    for method in view.methods:
        errors = results["methods"][method.name]["rl2e"]
        cells = tuple(Cell(errors[n]["median"]) for n in names)
        rows.append(Row(method_heading(view, method.name), cells, "ours"))
    caption = "Relative error of the mean forecast, median over test trajectories"
    return table(caption, ["method", *names], rows, (True,) * len(names))


def per_variable(view: PageView, key: str, caption: str) -> str:
    """One number per variable for each method that has them."""
    names, entries = variable_names(view.results), view.results["methods"]
    rows = [
        Row(
            method_heading(view, m.name),
            tuple(Cell(entries[m.name][key][n]) for n in names),
            "ours",
        )
        for m in view.methods
        if entries[m.name].get(key)
    ]
    return table(caption, ["method", *names], rows) if rows else ""


def coverage(view: PageView, level: float) -> str:
    """Coverage at one level, before and after calibration."""
    names, rows = variable_names(view.results), []
    for method in view.methods:
        held = view.results["methods"][method.name].get("coverage")
        if held is None or level not in held["levels"]:
            continue
        at = held["levels"].index(level)
        for kind, word in (("raw", "before"), ("calibrated", "after")):
            whole = held["simultaneous"][at] if kind == "calibrated" else None
            cells = [Cell(held[kind][n][at], percent) for n in names]
            heading = method_heading(view, method.name, word)
            rows.append(Row(heading, (*cells, Cell(whole, percent)), "ours"))
    caption = f"Share of the truth inside intervals meant to hold {percent(level)} of it"
    columns = ["method", *names, "whole trajectories"]
    return table(caption, columns, rows) if rows else ""


def laws(view: PageView) -> str:
    """The audit of both laws."""
    entries = view.results["methods"]
    known = [m.name for m in view.methods if entries[m.name].get("laws")]
    if not known:
        return ""
    keys = list(dict.fromkeys(key for name in known for key in entries[name]["laws"]))
    places = (("laws", ""), ("laws_outside", "out of distribution"))
    rows = [
        Row(
            method_heading(view, name, words),
            tuple(Cell(entries[name][place].get(key)) for key in keys),
            "ours",
        )
        for name in known
        for place, words in places
        if entries[name].get(place)
    ]
    columns = ["method", *(LAWS.get(key, key.replace("_", " ")) for key in keys)]
    return table("Audit of every step of every sampled forecast", columns, rows)
