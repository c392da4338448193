"""Coverage: empirical against nominal, per variable and for whole trajectories."""

from collections.abc import Sequence
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from .._view import MethodView, RunView
from ._drawing import DPI, INK, QUIET, _header, _percent, _percents, method_colours


def draw_coverage(view: RunView) -> Figure:
    panels = len(view.names) + 1
    columns = ceil(panels**0.5)
    rows = ceil(panels / columns)
    below = 0.0 if panels < rows * columns else 1.0
    figure = Figure(figsize=(3.0 * columns + 0.9, 3.2 * rows + 1.3 + below), dpi=DPI)
    _header(figure, _coverage_finding(view), f"{view.title}, all test trajectories")
    axes = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel())
    levels, expected = _expected_coverage(view)
    for ax, title in zip(axes, [*view.labels, "whole trajectory"], strict=False):
        _coverage_axes(ax, title, levels, expected)
    colours = method_colours(m.name for m in view.methods)
    for method in view.methods:
        _draw_coverage(axes, method, colours[method.name])
    for i, ax in enumerate(axes[:panels]):
        ax.xaxis.set_tick_params(labelbottom=i + columns >= panels)
        ax.set_xlabel("nominal coverage (%)" if i + columns >= panels else "")
        ax.set_ylabel("empirical coverage (%)" if i % columns == 0 else "")
    for ax in axes[panels:]:
        ax.set_axis_off()
    _coverage_legend(figure, axes[panels:], view, colours)
    return figure


def _coverage_axes(ax: Axes, title: str, levels: np.ndarray, expected: np.ndarray) -> None:
    ticks = [0, 25, 50, 75, 100]
    ax.set(xlim=(0, 100), ylim=(0, 102), xticks=ticks, yticks=ticks)
    ax.set_title(title, y=1.0, fontweight="bold")
    ax.fill_between(100 * levels, *(100 * expected), color="#dddddd", lw=0)
    ax.plot([0, 100], [0, 100], color=INK, lw=0.9)


def _expected_coverage(view: RunView) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated levels, and the (2, level) ends of what these few trajectories give.

    Exact for whole trajectories; shares of entries scatter no more than that.
    """
    levels, n = _calibrated_levels(view), view.calibration_trajectories
    if n < 1 or not levels.size:
        return np.zeros(0), np.zeros((2, 0))
    from spenn.calibrate import coverage_range  # brings in JAX

    ends = [coverage_range(n, round(float(level), 6), tests=_tests(view)) for level in levels]
    return levels, np.array(ends).T


def _tests(view: RunView) -> int:
    return len(view.methods[0].rl2e)


def _draw_coverage(axes: Sequence[Axes], method: MethodView, colour: str) -> None:
    if method.levels is None:
        return
    levels = 100 * np.asarray(method.levels)
    raw = {"ls": (0, (3, 1.5)), "lw": 1.8}
    calibrated = {"marker": "o", "ms": 4, "lw": 1.6}
    for values, style in ((method.coverage_raw, raw), (method.coverage_calibrated, calibrated)):
        if values is not None:
            for ax, column in zip(axes, values.T, strict=False):
                ax.plot(levels, 100 * column, color=colour, clip_on=False, **style)
    if method.coverage_simultaneous is not None:
        last = axes[method.mean.shape[1]]
        last.plot(levels, 100 * method.coverage_simultaneous, color=colour, **calibrated)


def _coverage_legend(figure: Figure, spare: Sequence[Axes], view: RunView, colours: dict) -> None:
    """In a spare cell of the grid where there is one, below it otherwise."""
    known = [m for m in view.methods if m.levels is not None]
    if not known:
        return
    handles: list = [Line2D([], [], color=colours[m.name], lw=4, label=m.name) for m in known]
    if any(m.coverage_raw is not None for m in known):
        handles.append(Line2D([], [], color=QUIET, lw=1.8, ls=(0, (3, 1.5)), label="raw samples"))
    if _calibrated_levels(view).size:
        handles.append(Line2D([], [], color=QUIET, lw=1.6, marker="o", ms=4, label="calibrated"))
        label = f"5–95 % expected with {view.calibration_trajectories}\n"
        label += f"calibration and {_tests(view)} test trajectories"
        handles.append(Patch(color="#dddddd", lw=0, label=label))
    if len(spare):
        spare[0].legend(handles=handles, loc="center left").set_in_layout(False)
    else:
        figure.legend(handles=handles, loc="outside lower center", ncols=2)


def _calibrated_levels(view: RunView) -> np.ndarray:
    for method in view.methods:
        if method.levels is not None and method.coverage_calibrated is not None:
            levels = np.asarray(method.levels, float)
            return levels[(levels > 0) & (levels < 1)]
    return np.zeros(0)


def _coverage_finding(view: RunView) -> str:
    """What nominally 90 % intervals hold, or those of the level nearest to it."""
    raw, calibrated, level = [], [], None
    for method in view.methods:
        if method.levels is not None:
            at = int(np.argmin(np.abs(np.asarray(method.levels) - 0.9)))
            level = float(method.levels[at])
            raw.extend([] if method.coverage_raw is None else method.coverage_raw[at])
            values = method.coverage_calibrated
            calibrated.extend([] if values is None else values[at])
    if level is None:
        return "No method states an uncertainty"
    parts = [f"{_percents(raw)} raw"] if raw else []
    parts += [f"{_percents(calibrated)} calibrated"] if calibrated else []
    return f"{_percent(level)} intervals cover " + ", ".join(parts)
