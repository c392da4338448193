"""Inverse problems: the field with its band, and the distributions of the parameters."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from .._inverse import InverseView, Panel
from .._inverse_words import (
    convergence,
    ess_text,
    holds_truth,
    label,
    parameter_names,
    plus_minus,
    problem_title,
    rhat_text,
    shortened,
    truth_of,
)
from ._drawing import (
    DPI,
    INK,
    QUIET,
    STYLE,
    _aside,
    _axis,
    _bracket,
    _fill,
    _header,
    _label_y,
    _name,
    _number,
    _save,
    _shade,
    _span,
    _split,
    _thin,
    method_colours,
)
from ._inverse_shapes import band, bars, ordinate, panel_limits, panel_reach, parameter_limits

MEASURED = {"color": "#E69F00", "edge": "#7A4B00"}
COLUMNS = 4
ROOM = 1.25  # above a histogram, for ESS and R-hat
DASHED = (0, (4, 3))
PLAIN = {"text.parse_math": False}  # names come from anywhere, and a dollar in one is a dollar


def draw_inverse(view: InverseView, folder: Path) -> list[Path]:
    """Write the figures of an inverse problem into `folder`, and say which files they are.

    `fields.png` (truth, measurements, mean and two standard deviations) and `parameters.png`
    (histograms of the samples), one row per method; `fields-2.png`, ... beyond four columns.
    The caller makes the folder.
    """
    with matplotlib.style.context(["default", STYLE | PLAIN]):
        figures = draw_panels(view) | draw_parameters(view)
        return [_save(figure, Path(folder) / f"{name}.png") for name, figure in figures.items()]


def draw_panels(view: InverseView) -> dict[str, Figure]:
    """The field, in figures of up to four panels a row."""
    pages = _split(view.panels, COLUMNS) if view.panels else []
    return {_numbered("fields", i): _panels(view, panels) for i, panels in enumerate(pages)}


def draw_parameters(view: InverseView) -> dict[str, Figure]:
    """The parameters, in figures of up to four a row."""
    names = parameter_names(view.results)
    pages = _split(names, COLUMNS) if names else []
    return {_numbered("parameters", i): _parameters(view, page) for i, page in enumerate(pages)}


def _numbered(name: str, page: int) -> str:
    return name if page == 0 else f"{name}-{page + 1}"


def _panels(view: InverseView, panels: Sequence[Panel]) -> Figure:
    figure, axes, colours = _grid(view, len(panels), 2.1, _field_finding(view, panels))
    for column, panel in enumerate(panels):
        limits = panel_limits(panel)
        for row, method in enumerate(view.results["methods"]):
            ax = axes[row, column]
            if method not in panel.estimates:
                ax.set_axis_off()
                continue
            _draw_panel(ax, panel, method, limits[method], colours[method])
            error = view.results["methods"][method].get("rl2e", {}).get(panel.name)
            _aside(ax, f"RL2E {_number(np.nan if error is None else error, 'not known')}")
        axes[-1, column].set_xlabel(shortened(panel.axis))
    _name_rows(view, axes, colours)
    _legend(figure, panels)
    return figure


def _draw_panel(ax: Axes, panel: Panel, method: str, limits, colour: str) -> None:
    low, high, unit, power = _axis(*limits)
    keep = _thin(len(panel.at))
    at = np.asarray(panel.at)[keep]
    ends = [end[keep] / unit for end in band(panel, method)]
    _fill(ax, at, ends, (low, high), color=colour, alpha=0.25)
    ax.plot(at, np.asarray(panel.estimates[method].mean)[keep] / unit, color=colour, lw=1.8)
    ax.plot(at, np.asarray(panel.truth)[keep] / unit, color="black", lw=1.2, ls=DASHED)
    _draw_measured(ax, panel, unit)
    ax.set(xlim=panel_reach(panel), ylim=(low, high))
    ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    ax.yaxis.set_major_locator(MaxNLocator(4))
    _label_y(ax, f"{shortened(ordinate(panel))}{_bracket(power)}")


def _draw_measured(ax: Axes, panel: Panel, unit: float) -> None:
    """Whole markers at the edges too; a line of none at all would upset the layout."""
    at, values = np.asarray(panel.measured_at), np.asarray(panel.measured) / unit
    known = np.isfinite(at) & np.isfinite(values)
    marks = {"ls": "none", "marker": "o", "ms": 4.5, "mew": 0.7, "mec": MEASURED["edge"]}
    if known.any():
        ax.plot(at[known], values[known], color=MEASURED["color"], clip_on=False, **marks)


def _parameters(view: InverseView, names: Sequence[str]) -> Figure:
    figure, axes, colours = _grid(view, len(names), 1.9, _parameter_finding(view, names))
    for column, name in enumerate(names):
        truth = truth_of(view.results, name)
        limits = parameter_limits(view, name, truth)
        for row, (method, entry) in enumerate(view.results["methods"].items()):
            ax = axes[row, column]
            if name not in entry["parameters"] or method not in limits:
                ax.set_axis_off()
                continue
            samples = np.asarray(view.parameters[method][name])
            found = entry["parameters"][name]
            _draw_histogram(ax, samples, found["mean"], truth, limits[method], colours[method])
            _label_parameter(ax, name, found, entry)
            ax.set_xlabel(f"{shortened(name)}{_bracket(_axis(*limits[method])[3])}")
            _label_y(ax, "samples")
    _name_rows(view, axes, colours)
    _parameter_legend(figure, view)
    return figure


def _draw_histogram(ax: Axes, samples, mean, truth, limits, colour: str) -> None:
    low, high, unit, _ = _axis(*limits)
    heights, edges = bars(samples)
    ax.stairs(heights, edges / unit, fill=True, color=colour, alpha=0.35)
    if mean is not None:
        ax.axvline(mean / unit, ymax=1 / ROOM, color=colour, lw=1.8)
    if truth is not None:
        ax.axvline(truth / unit, ymax=1 / ROOM, color="black", lw=1.2, ls=DASHED)
    ax.set(xlim=(low, high), ylim=(0, ROOM * max(heights.max(), 1)))
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.yaxis.set_major_locator(MaxNLocator(3, integer=True))


def _label_parameter(ax: Axes, name: str, found: dict, entry: dict) -> None:
    _aside(ax, plus_minus(found["mean"], found["std"]))
    chains = convergence(entry)
    if chains is not None:
        ess, rhat = (entry.get(key, {}).get(name) for key in ("ess", "rhat"))
        text = f"ESS {ess_text(ess)}, R-hat {rhat_text(rhat)}"
        where = {"transform": ax.transAxes, "ha": "right", "va": "top", "in_layout": False}
        ax.text(1, 1, text, size=10, color=INK if chains.warning else QUIET, **where)


def _grid(view: InverseView, columns: int, height: float, finding: str):
    """A figure with one row of axes per method, and the colours of the methods."""
    rows = len(view.results["methods"])
    size = max(3.3 * columns, 6.6), 1.5 + height * rows
    figure = Figure(figsize=size, dpi=DPI)
    _header(figure, finding, _context(view))
    axes = figure.subplots(rows, columns, squeeze=False)
    return figure, axes, method_colours(view.results["methods"])


def _name_rows(view: InverseView, axes: np.ndarray, colours: dict[str, str]) -> None:
    for row, method in enumerate(view.results["methods"]):
        _name(axes[row, 0], label(method), _shade(colours[method]))


def _legend(figure: Figure, panels: Sequence[Panel]) -> None:
    handles: list = [Line2D([], [], color=QUIET, lw=1.8, label="mean")]
    handles.append(Patch(color=QUIET, alpha=0.35, lw=0, label="mean ± 2 sd"))
    if any(np.isfinite(panel.truth).any() for panel in panels):
        handles.append(Line2D([], [], color="black", lw=1.2, ls=DASHED, label="truth"))
    if any(len(panel.measured) for panel in panels):
        marks = {"ls": "none", "marker": "o", "ms": 4.5, "mec": MEASURED["edge"]}
        handles.append(Line2D([], [], color=MEASURED["color"], label="measured", **marks))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def _parameter_legend(figure: Figure, view: InverseView) -> None:
    handles: list = [Patch(color=QUIET, alpha=0.35, lw=0, label="samples")]
    handles.append(Line2D([], [], color=QUIET, lw=1.8, label="mean (± sd above)"))
    if any(truth_of(view.results, name) is not None for name in parameter_names(view.results)):
        handles.append(Line2D([], [], color="black", lw=1.2, ls=DASHED, label="truth"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def _context(view: InverseView) -> str:
    """The problem, and whether the chains can be believed."""
    parts = [shortened(problem_title(view.results), 30)]
    for method, entry in view.results["methods"].items():
        chains = convergence(entry)
        if chains is not None:
            state = "not converged" if chains.warning else "converged"
            worst = f"ESS ≥ {ess_text(chains.ess)}, R-hat ≤ {rhat_text(chains.rhat)}"
            parts.append(f"{label(method)}: {worst} ({state})")
    return "; ".join(parts)


def _field_finding(view: InverseView, panels: Sequence[Panel]) -> str:
    entries = view.results["methods"].values()
    errors = [e.get("rl2e", {}).get(p.name) for e in entries for p in panels]
    known = [np.nan if e is None else e for e in errors]
    if not np.isfinite(known).any():
        return "The field and its uncertainty"
    if not np.isfinite(known).all():
        return "Not every error of the field is known"
    return f"The mean field is off by {_span(np.array(known))} (relative L2)"


def _parameter_finding(view: InverseView, names: Sequence[str]) -> str:
    entries = view.results["methods"].values()
    found = [e["parameters"][n] for e in entries for n in names if n in e["parameters"]]
    held = [h for h in map(holds_truth, found) if h is not None]
    if not held:
        return "Parameters that fit the measurements"
    if all(held):
        return "The truth is inside every 95 % interval"
    return f"The truth is inside {sum(held)} of {len(held)} intervals of 95 %"
