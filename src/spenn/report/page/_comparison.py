"""One page for several systems: our figure, the paper's and their ratio, cell by cell."""

from collections.abc import Mapping
from html import escape
from pathlib import Path

from ._page import asset, document, provenance
from ._tables import Cell, Row, seconds, table
from ._verdict import total_seconds, variable_names

BODY = """<header class="top">
  <p class="kind">The paper's tables, made again</p>
  <h1>spenn beside the paper</h1>
  <p class="intro">{intro}</p>
</header>
<main>
{sections}
</main>"""


def render_comparison(documents: Mapping[str, dict]) -> str:
    """A page from `results.json` documents by folder; each folder holds a report to link to."""
    style = asset("style.css")
    body = BODY.format(
        intro=escape(_summary(list(documents.values()))),
        sections="\n".join(_section(folder, results) for folder, results in documents.items()),
    )
    return document("spenn beside the paper", style, body)


def write_comparison(documents: Mapping[str, dict], path: Path) -> None:
    """Write the page that compares all systems with the paper."""
    path.write_text(render_comparison(documents), encoding="utf-8", newline="\n")


def _section(folder: str, results: dict) -> str:
    name = escape(results["system"])
    link = f'<p><a href="{escape(folder)}/report.html">Full report of this system</a></p>'
    note = f"<p><small>{escape(provenance(results))}</small></p>"
    return f"<section><h2>{name}</h2>{link}{_table(results)}{note}</section>"


def _table(results: dict) -> str:
    names = variable_names(results)
    rows = _floor(results, names)
    for method, (ours, paper) in _pairs(results).items():
        ratios = [None if not (a and b) else a / b for a, b in zip(ours, paper, strict=True)]
        heading = escape(method)
        rows += [
            Row(f"{heading} <small>here</small>", _cells(ours), "ours"),
            Row(f"{heading} <small>in the paper</small>", _cells(paper), "paper"),
            Row(f"{heading} <small>ratio</small>", tuple(Cell(r) for r in ratios)),
        ]
    columns = ["method", "seconds", "energy score", *(f"CRPS {n}" for n in names)]
    return table("Here, in the paper, and the ratio: below one is better", columns, rows)


def _floor(results: dict, names: list[str]) -> list[Row]:
    """What exact physics scores by the same protocol: no model is expected to be better."""
    floor = results["floor"]["mae"]
    cells = (Cell(None), Cell(None), *(Cell(floor.get(n)) for n in names))
    heading = "exact physics <small>mean absolute error</small>"
    return [Row(heading, cells, "floor")] if any(c.value is not None for c in cells) else []


def _cells(figures: list[float | None]) -> tuple[Cell, ...]:
    total, *scores = figures
    return (Cell(total, seconds), *(Cell(score) for score in scores))


def _pairs(results: dict) -> dict[str, tuple[list[float | None], list[float | None]]]:
    """Seconds, energy score and CRPS of each method that both have."""
    ours, paper = results["methods"], results["paper"]
    both = [method for method in paper if method in ours]
    return {m: (_figures(ours[m], results), _figures(paper[m], results)) for m in both}


def _figures(entry: dict, results: dict) -> list[float | None]:
    crps = entry["crps"]
    scores = [entry.get("energy_score"), *(crps.get(n) for n in variable_names(results))]
    return [total_seconds(entry), *scores]


def _summary(documents: list[dict]) -> str:
    """How many scores are at or below the paper's, and what it took."""
    known = [cell for results in documents for cell in _compared(results)]
    lost = [name for name, ours, paper in known if ours > paper]
    pairs = [pair for results in documents for pair in _pairs(results).values()]
    spent = sum(ours[0] or 0 for ours, _ in pairs)
    devices = sorted({r["environment"]["device"] for r in documents})
    above = f" Above it: {', '.join(lost)}." if lost else ""
    return (
        f"{len(known) - len(lost)} of {len(known)} scores are at or below the paper's.{above} "
        f"All methods together took {spent:.0f} s on {', '.join(devices)}; a base that several of "
        "them share is counted in each, as in the paper."
    )


def _compared(results: dict) -> list[tuple[str, float, float]]:
    """Scores that both have: where they stand, ours and the paper's."""
    names = ["energy score", *variable_names(results)]
    return [
        (f"{results['system']} {method} {name}", a, b)
        for method, (ours, paper) in _pairs(results).items()
        for name, a, b in zip(names, ours[1:], paper[1:], strict=True)
        if a is not None and b is not None
    ]
