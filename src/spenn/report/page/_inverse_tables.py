"""Tables of an inverse problem: every number that the charts show, and the paper's beside them."""

from html import escape

import numpy as np

from .._inverse import Panel
from .._inverse_words import (
    convergence,
    distance,
    ess_text,
    holds_truth,
    label,
    panel_names,
    parameter_names,
    rhat_text,
    truth_of,
    value_text,
)
from ..figures._inverse_shapes import ordinate
from ._inverse_verdict import device
from ._tables import Cell, Row, table
from ._text import MISSING, number, percent

STAGES = {
    "train_base": "base network",
    "train_epinet": "epinet",
    "warm_up": "warm-up",
    "sample": "sampling",
    "total": "total",
    "per_gradient": "per gradient (ms)",
}
ROWS = 11  # of the table beside a curve


def heading(results: dict, method: str, note: str = "") -> str:
    """The swatch that the charts use too, and the name."""
    index = list(results["methods"]).index(method)
    small = f" <small>{escape(note)}</small>" if note else ""
    swatch = f'<span class="swatch m{index}" aria-hidden="true"></span>'
    return f"{swatch}{escape(label(method))}{small}"


def fields(results: dict) -> str:
    """Error and share inside the band, per curve."""
    names, rows = panel_names(results), []
    for method, entry in results["methods"].items():
        for key, note, write in (("rl2e", "RL2E", number), ("inside", "within 2 sd", percent)):
            found = entry.get(key) or {}
            cells = tuple(Cell(found.get(n), write) for n in names)
            rows.append(Row(heading(results, method, note), cells, "ours"))
    caption = "Relative L2 error (RL2E) of the mean, and share of the truth within 2 sd of it"
    return table(caption, ["method", *names], rows) if names else ""


def curve(results: dict, panel: Panel) -> str:
    """A few points of a curve with what each method says of them."""
    keep = np.unique(np.linspace(0, len(panel.at) - 1, min(len(panel.at), ROWS)).round())
    methods = [m for m in results["methods"] if m in panel.estimates]
    columns = [panel.axis, "truth", *(f"{label(m)} {k}" for m in methods for k in ("mean", "sd"))]
    rows = []
    for i in keep.astype(int):
        values = [values[i] for m in methods for values in panel.estimates[m]]
        cells = tuple(Cell(float(v), _three) for v in (panel.truth[i], *values))
        rows.append(Row(escape(number(float(panel.at[i]), 3)), cells))
    return table(f"{ordinate(panel)} along {panel.axis}", columns, rows)


def parameters(results: dict) -> str:
    """Mean, sd, interval and truth of every parameter; ESS and R-hat where there are chains."""
    entries = results["methods"]
    chained = any(convergence(entry) for entry in entries.values())
    columns = ["parameter", "mean", "sd", "95\u00a0% from", "to", "truth", "inside"]
    columns += ["ESS", "R-hat"] if chained else []
    rows = []
    for name in parameter_names(results):
        for method, entry in entries.items():
            if name in entry["parameters"]:
                title = f"{escape(name)} <small>{escape(label(method))}</small>"
                rows.append(Row(title, _parameter(entry, name, chained), "ours"))
    return table("Parameters: mean, standard deviation and 95\u00a0% interval", columns, rows)


def _parameter(entry: dict, name: str, chained: bool) -> tuple[Cell, ...]:
    found = entry["parameters"][name]
    low, high = found.get("interval95") or (None, None)
    cells = [Cell(found["mean"], _four), Cell(found["std"]), Cell(low, _four), Cell(high, _four)]
    words = {True: "yes", False: "no", None: MISSING}
    cells += [Cell(found.get("truth"), _four), _word(words[holds_truth(found)])]
    if chained:
        ess, rhat = ((entry.get(key) or {}).get(name) for key in ("ess", "rhat"))
        cells += [Cell(ess, ess_text), Cell(rhat, rhat_text)]
    return tuple(cells)


def _word(text: str) -> Cell:
    return Cell(None, lambda _: text)


def chains(results: dict) -> str:
    """ESS and R-hat of everything that was looked at."""
    found = []
    for method, entry in results["methods"].items():
        if convergence(entry) is None:
            continue
        ess, rhat = entry.get("ess") or {}, entry.get("rhat") or {}
        rows = [
            Row(escape(name), (Cell(ess.get(name), ess_text), Cell(rhat.get(name), rhat_text)))
            for name in dict.fromkeys([*ess, *rhat])
        ]
        count, samples = entry.get("chains", "unknown number of"), entry.get("samples", "some")
        caption = f"{label(method)}: {count} chains, {samples} samples in all"
        if entry.get("acceptance") is not None:
            caption += f", {percent(entry['acceptance'])} of proposals accepted"
        found.append(table(caption, ["quantity", "ESS", "split R-hat"], rows))
    return "".join(found)


def field_errors_beside(results: dict) -> str:
    """RL2E here, in the paper, and the ratio."""
    entries, paper = results["methods"], results.get("paper") or {}
    named = [n for entry in paper.values() for n in entry.get("rl2e") or {}]
    names = list(dict.fromkeys([*panel_names(results), *named]))
    rows: list[Row] = []
    for method in dict.fromkeys([*entries, *paper]):
        ours, theirs = (
            [(found.get(method, {}).get("rl2e") or {}).get(n) for n in names]
            for found in (entries, paper)
        )
        rows += _beside(label(method), method in entries, ours, theirs)
    caption = "RL2E of the mean field: here, in the paper, and the ratio (below one is better)"
    return table(caption, ["method", *names], rows) if named else ""


def parameters_beside(results: dict) -> str:
    """Mean, sd and distance from the truth here and in the paper, and the ratio of distances."""
    entries, paper = results["methods"], results.get("paper") or {}
    named = [n for entry in paper.values() for n in entry.get("parameters") or {}]
    rows: list[Row] = []
    for name in dict.fromkeys([*parameter_names(results), *named]):
        truth = truth_of(results, name)
        for method in dict.fromkeys([*entries, *paper]):
            ours, theirs = (
                _figures((found.get(method, {}).get("parameters") or {}).get(name) or {}, truth)
                for found in (entries, paper)
            )
            known = name in entries.get(method, {}).get("parameters", {})
            rows += _beside(f"{name}, {label(method)}", known, ours, theirs, ratio_from=2)
    columns = ["parameter", "mean", "sd", "distance from truth"]
    caption = "Parameters: here, in the paper, and the ratio of distances (below one is better)"
    return table(caption, columns, rows) if named else ""


def _figures(found: dict, truth: float | None) -> list[float | None]:
    return [found.get("mean"), found.get("std"), distance(found, truth)]


def _beside(title: str, here: bool, ours: list, theirs: list, ratio_from: int = 0) -> list[Row]:
    """Up to three rows: ours, the paper's and the ratio, as far as there are any."""
    rows, name = [], escape(title)
    known = any(v is not None for v in theirs)
    if here:
        rows.append(Row(f"{name} <small>here</small>", _cells(ours, ratio_from), "ours"))
    if known:
        rows.append(Row(f"{name} <small>in the paper</small>", _given(theirs, ratio_from), "paper"))
    if here and known:
        pairs = list(zip(ours, theirs, strict=True))
        ratios = [None if a is None or not b else a / b for a, b in pairs[ratio_from:]]
        cells = (*(_word("") for _ in pairs[:ratio_from]), *(Cell(r) for r in ratios))
        rows.append(Row(f"{name} <small>ratio</small>", cells))
    return rows


def _cells(values: list, plain: int) -> tuple[Cell, ...]:
    return tuple(Cell(v, _four if i < plain - 1 else number) for i, v in enumerate(values))


def _given(values: list, plain: int) -> tuple[Cell, ...]:
    """The paper's, with the digits that it gives and no more."""
    return tuple(Cell(v, value_text if i < plain else number) for i, v in enumerate(values))


def times(results: dict) -> str:
    """Seconds of every stage; a gradient in milliseconds."""
    spent = {m: e["seconds"] for m, e in results["methods"].items() if e.get("seconds")}
    known = {stage for seconds in spent.values() for stage in seconds}
    order = [*(s for s in STAGES if s in known), *sorted(known - set(STAGES))]
    rows = [
        Row(heading(results, method), tuple(_stage(s, seconds.get(s)) for s in order), "ours")
        for method, seconds in spent.items()
    ]
    columns = ["method", *(STAGES.get(s, s.replace("_", " ")) for s in order)]
    return table(f"Seconds on {device(results)}", columns, rows) if rows else ""


def _stage(stage: str, value: float | None) -> Cell:
    if stage == "per_gradient":
        return Cell(value, lambda v: MISSING if v is None else number(1000 * v))
    return Cell(value, _three)


def _three(value: float | None) -> str:
    return number(value, 3)


def _four(value: float | None) -> str:
    return number(value, 4)
