"""Errors: boxes over the test trajectories."""

from math import ceil, isfinite

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._view import RunView
from ._drawing import (
    DPI,
    INK,
    QUIET,
    _header,
    _log_axis,
    _log_limits,
    _median,
    _number,
    _shade,
    _span,
    _tint,
    method_colours,
)


def draw_errors(view: RunView) -> Figure:
    count = len(view.names)
    columns = ceil(count / ceil(count / 3))
    rows = ceil(count / columns)
    height = 0.5 * len(view.methods) + 1.35
    figure = Figure(figsize=(3.1 * columns + 1.4, height * rows + 1.0), dpi=DPI)
    context = f"{view.title}, {len(view.methods[0].rl2e)} test trajectories; "
    context += "box: quartiles, whiskers: 5–95 %"
    _header(figure, _errors_finding(view), context)
    axes = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for ax in axes[count:]:
        ax.remove()
    limits = _log_limits(view.floor_rl2e, *(m.rl2e for m in view.methods))
    for variable in range(count):
        _log_axis(axes[variable], "x", limits, 4)
        _draw_errors(axes[variable], view, variable)
    return figure


def _draw_errors(ax: Axes, view: RunView, variable: int) -> None:
    colours = method_colours(m.name for m in view.methods)
    for row, method in enumerate(view.methods):
        _draw_box(ax, row, method.rl2e[:, variable], colours[method.name])
    reference = float(view.floor_rl2e[variable])
    if isfinite(reference) and reference > 0:
        ax.axvline(reference, color=INK, lw=1.4, ls=(0, (4, 3)))
        low, high = np.log(ax.get_xlim())
        side = "left" if np.log(reference) < (low + high) / 2 else "right"
        where = {"transform": ax.get_xaxis_transform(), "ha": side, "va": "bottom"}
        ax.text(reference, 1.01, "exact physics", size=10, **where)
    ax.text(1.03, 1.01, "median", transform=ax.transAxes, va="bottom", size=10, color=QUIET)
    names = [method.name for method in view.methods]
    ax.set_yticks(range(len(names)), names)
    ax.set(ylim=(len(names) - 0.5, -0.5), xlabel="relative L2 error")
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="#e6e6e6", lw=0.8)
    ax.set_axisbelow(True)
    ax.set_title(view.labels[variable], y=1.0, pad=20, fontweight="bold")


def _draw_box(ax: Axes, row: int, errors: np.ndarray, colour: str) -> None:
    good = errors[np.isfinite(errors) & (errors > 0)]
    note = _number(float(_median(errors)))
    if good.size:
        low, first, middle, third, high = np.quantile(good, [0.05, 0.25, 0.5, 0.75, 0.95])
        ax.plot([low, high], [row, row], color=colour, lw=1.6)
        box = {"fc": _tint(colour, 0.7), "ec": colour, "lw": 1.6, "zorder": 3}
        ax.barh(row, third - first, 0.5, first, **box)
        middle_line = [middle, middle], [row - 0.24, row + 0.24]
        ax.plot(*middle_line, color=_shade(colour), lw=2.6, solid_capstyle="butt", zorder=4)
        outside = good[(good < low) | (good > high)]
        ax.plot(outside, np.full(outside.size, row), ".", color=colour, ms=4)
    diverged, exact = int(np.sum(~np.isfinite(errors))), int(np.sum(errors == 0))
    note += f"\n{diverged} diverged" if diverged else ""
    note += f"\n{exact} zero" if exact else ""
    where = ax.get_yaxis_transform()
    ax.text(1.03, row, note, transform=where, va="center", size=11, color=_shade(colour))


def _errors_finding(view: RunView) -> str:
    medians = np.stack([_median(m.rl2e) for m in view.methods])
    known = np.isfinite(view.floor_rl2e) & (np.asarray(view.floor_rl2e) > 0)
    if known.all():
        ratios = medians / view.floor_rl2e
        return f"Median errors are {_span(ratios)} times those of exact physics"
    return f"Median errors from {_span(medians, ' to ')}"
