"""The report of an inverse problem: one file without JavaScript, its charts made in Python."""

from html import escape
from pathlib import Path

import numpy as np

from .._inverse import InverseView, Panel
from .._inverse_words import (
    convergence,
    ess_text,
    label,
    parameter_names,
    plus_minus,
    problem_title,
    rhat_text,
    truth_of,
    value_text,
)
from ..figures._inverse_shapes import (
    band,
    bars,
    ordinate,
    panel_limits,
    panel_reach,
    parameter_limits,
)
from . import _inverse_tables as tables
from ._colours import readable
from ._inverse_verdict import inverse_verdict, spread
from ._page import DARK, LIGHT, asset, document, fact, method_styles, provenance
from ._svg import Chart
from ._text import listed, number

ORANGE = "#E57200"
SHOWN = 24
"""Curves that are drawn, and parameters; the tables hold all of them."""
CURVES, MARKS = 300_000, 150_000
"""Bytes of a page that all curves may take together, and all measurements."""
BODY = """<a class="skip" href="#fields">Skip to the field</a>
<header class="top">
  <p class="kind">Inverse problem, with uncertainty</p>
  <h1>{title}</h1>
  <p class="intro">{intro}</p>
  {verdicts}
</header>
<main>
{sections}
</main>
<footer><p>{provenance}</p></footer>"""


def write_inverse_page(view: InverseView, path: Path) -> None:
    """Write the report of an inverse problem as one self-contained HTML file of less than 1 MB."""
    Path(path).write_text(render_inverse_page(view), encoding="utf-8", newline="\n")


def render_inverse_page(view: InverseView) -> str:
    """The report of an inverse problem as the text of one HTML file."""
    results = view.results
    sheets = asset("style.css") + asset("inverse.css")
    style = sheets + method_styles(results["methods"]) + _orange()
    sections = [
        _section("fields", "The field", _fields(view)),
        _section("parameters", "The parameters", _parameters(view)),
        _section("chains", "The chains", tables.chains(results)),
        _section("paper", "Beside the paper", _beside(results)),
        _section("spread", "How the spread is made", _spread(results)),
        _section("times", "Time", tables.times(results)),
    ]
    title = escape(problem_title(results))
    body = BODY.format(
        title=title,
        intro=escape(_intro(results)),
        verdicts="".join(_verdict(results, method) for method in results["methods"]),
        sections="\n".join(filter(None, sections)),
        provenance=escape(" · ".join([f"problem {results['problem']}", provenance(results)])),
    )
    return document(f"{title}: unknown constants, and how sure to be of them", style, body)


def _orange() -> str:
    light, dark = (f":root{{--measured:{readable(ORANGE, page)}}}" for page in (LIGHT, DARK))
    return f"{light}\n@media screen and (prefers-color-scheme: dark) {{{dark}}}\n"


def _section(identity: str, title: str, content: str) -> str:
    if not content:
        return ""
    name = f'aria-labelledby="{identity}-title"'
    return (
        f'<section id="{identity}" {name}><h2 id="{identity}-title">{title}</h2>{content}</section>'
    )


def _intro(results: dict) -> str:
    data, noise = results.get("data") or {}, (results.get("data") or {}).get("noise") or {}
    counts = []
    for kind in ("field", "source"):
        if data.get(kind):
            level = noise.get(kind)
            stated = "" if level is None else f" (noise of sd {value_text(level)})"
            values = "value" if data[kind] == 1 else "values"
            counts.append(f"{data[kind]} measured {values} of the {kind}{stated}")
    text = "The field"
    names = parameter_names(results)
    if names:
        constants = "constant" if len(names) == 1 else "constants"
        text += f" and the unknown {constants} {listed(names)}"
    text += f", estimated from {listed(counts)}" if counts else ", estimated together"
    return text + (f"; data read from {data['file']}." if data.get("file") else ".")


def _verdict(results: dict, method: str) -> str:
    found = inverse_verdict(results, method)
    lead, *warnings = found.sentences
    marked = "".join(f'<p class="warning care">{escape(text)}</p>' for text in warnings)
    return (
        f'<div class="verdict"><p class="which">{tables.heading(results, method)}</p>'
        f'<p class="lead">{escape(lead)}</p>{marked}'
        f'<dl class="facts">{"".join(map(fact, found.facts))}</dl></div>'
    )


def _fields(view: InverseView) -> str:
    """Panels by method, then the numbers of all curves."""
    panels = view.panels[:SHOWN]
    left_out = len(view.panels) - len(panels)
    note = (
        f'<p class="note">The first {SHOWN} of {len(view.panels)} curves.</p>' if left_out else ""
    )
    rows = "".join(_panel_row(view, i, m, panels) for i, m in enumerate(view.results["methods"]))
    data = "".join(tables.curve(view.results, panel) for panel in panels)
    details = (
        f'<details class="data"><summary>The curves as tables</summary>{data}</details>'
        if data
        else ""
    )
    legend = _field_legend(panels) if panels else ""
    return f"{legend}{note}{rows}{tables.fields(view.results)}{details}"


def _panel_row(view: InverseView, index: int, method: str, panels: list[Panel]) -> str:
    drawings = max(len(panels) * len(view.results["methods"]), 1)
    points = int(np.clip(CURVES / drawings / 50, 40, 240))
    marks = int(np.clip(MARKS / drawings / 12, 40, 1000))
    drawn = "".join(
        _panel(view, f"f{index}-{i}", method, panel, points, marks)
        for i, panel in enumerate(panels)
        if method in panel.estimates
    )
    return _row_of(view, index, method, drawn)


def _row_of(view: InverseView, index: int, method: str, drawn: str) -> str:
    if not drawn:
        return ""
    title = tables.heading(view.results, method)
    chains = _chains(view.results["methods"][method])
    note = f'<p class="note">{escape(chains)}</p>' if chains else ""
    return f'<h3>{title}</h3>{note}<div class="panels m{index}">{drawn}</div>'


def _chains(entry: dict) -> str:
    """ESS and R-hat, to stand beside every chart of a method that has chains."""
    found = convergence(entry)
    if found is None:
        return ""
    worst = f"Smallest ESS {ess_text(found.ess)}, largest split R-hat {rhat_text(found.rhat)}"
    return f"{worst}: the chains have {'not ' if found.warning else ''}converged."


def _panel(
    view: InverseView, identity: str, method: str, panel: Panel, points: int, marks: int
) -> str:
    keep, at = _thin(len(panel.at), points), np.asarray(panel.at)
    chart = Chart(panel_reach(panel), panel_limits(panel)[method], margins=(False, True))
    low, high = band(panel, method)
    chart.band(at[keep], low[keep], high[keep])
    chart.line("mean", at[keep], np.asarray(panel.estimates[method].mean)[keep])
    chart.line("truth", at[keep], np.asarray(panel.truth)[keep])
    dots = _thin(len(panel.measured), marks)
    chart.marks("measured", np.asarray(panel.measured_at)[dots], np.asarray(panel.measured)[dots])
    entry = view.results["methods"][method]
    error = (entry.get("rl2e") or {}).get(panel.name)
    aside = f"RL2E {number(error)}"
    title = f"{ordinate(panel)} along {panel.axis}, {label(method)}"
    return chart.render(
        identity, (panel.axis, ordinate(panel)), aside, (title, _panel_words(panel, error))
    )


def _panel_words(panel: Panel, error: float | None) -> str:
    text = "The mean as a solid line with a band of two standard deviations"
    text += ", the truth as a dashed line" if np.isfinite(panel.truth).any() else ""
    if len(panel.measured):
        text += f" and {len(panel.measured)} measurements as dots"
    return f"{text}. Relative L2 error of the mean: {number(error)}."


def _parameters(view: InverseView) -> str:
    names = parameter_names(view.results)
    if not names:
        return ""
    rows = "".join(
        _row_of(view, i, m, _histograms(view, f"p{i}", m, names[:SHOWN]))
        for i, m in enumerate(view.results["methods"])
    )
    note = ""
    if len(names) > SHOWN:
        note = f'<p class="note">The first {SHOWN} of {len(names)} parameters.</p>'
    truth = any(truth_of(view.results, name) is not None for name in names)
    return f"{_parameter_legend(truth)}{note}{rows}{tables.parameters(view.results)}"


def _histograms(view: InverseView, identity: str, method: str, names: list[str]) -> str:
    samples = view.parameters.get(method, {})
    shown = [(i, n) for i, n in enumerate(names) if n in samples]
    return "".join(_histogram(view, f"{identity}-{i}", method, name) for i, name in shown)


def _histogram(view: InverseView, identity: str, method: str, name: str) -> str:
    truth = truth_of(view.results, name)
    found = view.results["methods"][method]["parameters"][name]
    samples = np.asarray(view.parameters[method][name])
    heights, edges = bars(samples)
    limits = parameter_limits(view, name, truth)[method]
    chart = Chart(limits, (0.0, 1.05 * float(max(heights.max(), 1))), margins=(True, False))
    chart.bars(heights, edges)
    if found["mean"] is not None:
        chart.upright("mean", found["mean"])
    if truth is not None:
        chart.upright("truth", truth)
    estimate = plus_minus(found["mean"], found["std"])
    words = f"A histogram of {samples.size} samples: {name} = {estimate}"
    words += f"; the truth is {value_text(truth)}." if truth is not None else "."
    title = f"Distribution of {name}, {label(method)}"
    return chart.render(identity, (name, f"samples of {name}"), estimate, (title, words))


def _beside(results: dict) -> str:
    return tables.field_errors_beside(results) + tables.parameters_beside(results)


def _spread(results: dict) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in spread(results))


def _field_legend(panels: list[Panel]) -> str:
    keys = [("M0,7H26", "mean", "mean"), ("M0,2H26V12H0Z", "band", "mean ± 2 sd")]
    if any(np.isfinite(panel.truth).any() for panel in panels):
        keys.append(("M0,7H26", "truth", "truth"))
    if any(len(panel.measured) for panel in panels):
        keys.append(("M13,7h0", "measured", "measured"))
    return _legend(keys)


def _parameter_legend(truth: bool) -> str:
    keys = [("M0,2H26V12H0Z", "band", "samples"), ("M0,7H26", "mean", "mean")]
    return _legend([*keys, ("M0,7H26", "truth", "truth")] if truth else keys)


def _legend(keys: list[tuple[str, str, str]]) -> str:
    drawn = "".join(
        f'<span><svg width="26" height="14" aria-hidden="true"><path class="{kind}" d="{path}"/>'
        f"</svg>{text}</span>"
        for path, kind, text in keys
    )
    return f'<p class="legend key">{drawn}</p>'


def _thin(count: int, most: int) -> np.ndarray:
    """Indices of at most `most` of `count`, first and last among them."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, most)).round().astype(int))
