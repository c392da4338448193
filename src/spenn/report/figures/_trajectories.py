"""Trajectories: the state on top, then one row per method with its deviation from the reference."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from .._view import MethodView, RunView
from ._drawing import (
    DPI,
    INK,
    QUIET,
    _axis,
    _bracket,
    _common,
    _extent,
    _fill,
    _finite,
    _header,
    _label_y,
    _name,
    _number,
    _percent,
    _percents,
    _quantiles,
    _rl2e,
    _shade,
    _split,
    _thin,
    method_colours,
)


class _Deviation(NamedTuple):
    """One method and variable less the reference, at the times drawn."""

    mean: np.ndarray
    raw: tuple[np.ndarray, np.ndarray]
    interval: tuple[np.ndarray, np.ndarray] | None
    draws: np.ndarray | None

    def limits(self) -> tuple[float, float]:
        """What to show: all of the mean and its raw band, and all but the extremes of the rest."""
        rest = [*(self.interval or ()), *([] if self.draws is None else [self.draws])]
        ends = [_quantiles(values, 0.01, 0.99) for values in rest]
        return _extent(np.zeros(1), self.mean, *self.raw, *ends)


def _deviation(view: RunView, method: MethodView, variable: int) -> _Deviation:
    keep = _thin(len(view.times))
    truth = view.truth[keep, variable]
    mean, std = method.mean[keep, variable] - truth, method.std[keep, variable]
    interval = None
    if method.lower is not None and method.upper is not None:
        interval = method.lower[keep, variable] - truth, method.upper[keep, variable] - truth
    draws = None if method.draws is None else method.draws[:5, keep, variable] - truth
    return _Deviation(mean, (mean - 2 * std, mean + 2 * std), interval, draws)


def draw_trajectories(view: RunView) -> dict[str, Figure]:
    """Pages of up to three variables and three methods; a variable has one scale on all pages."""
    shown = [m for m in view.methods if m.uncertain] or list(view.methods)
    pages = [(v, m) for m in _split(shown, 3) for v in _split(range(len(view.names)), 3)]
    scales = {v: _scales(view, shown, v) for v in range(len(view.names))}
    return {
        "trajectories" if page == 0 else f"trajectories-{page + 1}": _trajectory_page(
            view, methods, variables, scales
        )
        for page, (variables, methods) in enumerate(pages)
    }


def _scales(view: RunView, methods: Sequence[MethodView], variable: int) -> dict[str, tuple]:
    """Axis limits per method, common to all unless that would flatten one of them."""
    return _common({method.name: _deviation(view, method, variable).limits() for method in methods})


def _trajectory_page(
    view: RunView, methods: Sequence[MethodView], variables: Sequence[int], scales: dict
) -> Figure:
    rows, columns = len(methods) + 1, len(variables)
    figure = Figure(figsize=(max(3.3 * columns, 6.6), 1.3 + 1.75 * rows), dpi=DPI)
    _header(figure, _trajectory_finding(methods, view, variables), _trajectory_context(view))
    axes = figure.subplots(rows, columns, sharex=True, squeeze=False)
    colours = method_colours(m.name for m in view.methods)
    for column, variable in enumerate(variables):
        _draw_state(axes[0, column], view, methods, variable, colours)
        for row, method in enumerate(methods, 1):
            limits = scales[variable][method.name]
            ax = axes[row, column]
            _draw_deviation(ax, view, method, variable, limits, colours[method.name])
            _note_unbounded(ax, method, variable)
        axes[-1, column].set_xlabel(view.time_label)
    axes[0, 0].xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    if len(methods) > 1:
        _name(axes[0, 0], _together(view, methods, variables), INK)
    for row, method in enumerate(methods, 1):
        _name(axes[row, 0], method.name, _shade(colours[method.name]))
    _trajectory_legend(figure, methods)
    return figure


def _together(view: RunView, methods: Sequence[MethodView], variables: Sequence[int]) -> str:
    """What to write above the states: the lines of methods may hide one another."""
    truth = view.truth[:, list(variables)]
    means = [m.mean[:, list(variables)] for m in methods]
    apart = np.max([np.max(np.abs(mean - truth), axis=0) for mean in means], axis=0)
    return "all methods" + (" (coinciding)" if np.all(apart < 0.01 * np.ptp(truth, axis=0)) else "")


def _draw_state(ax: Axes, view: RunView, methods, variable: int, colours) -> None:
    keep = _thin(len(view.times))
    times, truth = view.times[keep], view.truth[keep, variable]
    low, high = _extent(truth)
    margin = 0.1 * (high - low) or 1.0
    low, high = low - margin, high + margin
    for method in methods:
        if method.lower is not None and method.upper is not None:
            ends = _finite(method.lower[keep, variable]), _finite(method.upper[keep, variable])
            ax.fill_between(times, *ends, color=colours[method.name], alpha=0.14, lw=0)
        ax.plot(times, method.mean[keep, variable], color=colours[method.name], lw=2.4)
    ax.plot(times, truth, color="black", lw=1.2, ls=(0, (4, 3)))
    ax.set(xlim=(times[0], times[-1]), ylim=(low, high))
    _label_y(ax, view.labels[variable])
    ax.yaxis.set_major_locator(MaxNLocator(4))


def _draw_deviation(ax: Axes, view: RunView, method, variable: int, limits, colour: str) -> None:
    times = view.times[_thin(len(view.times))]
    low, high, unit, power = _axis(*limits)
    deviation = _deviation(view, method, variable)
    if deviation.interval is not None:
        ends = [end / unit for end in deviation.interval]
        _fill(ax, times, ends, (low, high), color=colour, alpha=0.14)
        ax.plot(times, np.transpose(ends), color=colour, lw=0.9, alpha=0.7)
    if deviation.draws is not None:
        ax.plot(times, deviation.draws.T / unit, color=colour, lw=0.5, alpha=0.45)
    if method.uncertain:
        ends = [end / unit for end in deviation.raw]
        _fill(ax, times, ends, (low, high), color=colour, alpha=0.35)
    ax.axhline(0, color="black", lw=1.2, ls=(0, (4, 3)))
    ax.plot(times, deviation.mean / unit, color=colour, lw=1.8)
    ax.set_ylim(low, high + 0.18 * (high - low))  # room for the error
    ax.yaxis.set_major_locator(MaxNLocator(4))
    _label_y(ax, f"{view.names[variable]} − ref.{_bracket(power)}", size=11)
    error = _number(_rl2e(method.mean[:, variable], view.truth[:, variable]), "diverged")
    where = {"transform": ax.transAxes, "ha": "right", "va": "top", "in_layout": False}
    ax.text(1, 1, f"RL2E {error}", size=11, color=QUIET, **where)


def _note_unbounded(ax: Axes, method: MethodView, variable: int) -> None:
    """Say where the interval is infinite, beside the error and above the data."""
    if method.lower is None or method.upper is None:
        return
    infinite = np.isinf(method.lower[:, variable]) | np.isinf(method.upper[:, variable])
    share = float(np.mean(infinite))
    if share > 0:
        text = "95 % interval ±∞" if share == 1 else f"±∞: {_percent(share)} of run"
        where = {"transform": ax.transAxes, "va": "top", "in_layout": False}
        ax.text(0.02, 1, text, size=10, color="black", **where)


def _trajectory_legend(figure: Figure, methods: Sequence[MethodView]) -> None:
    handles = [Line2D([], [], color="black", lw=1.2, ls=(0, (4, 3)), label="reference")]
    handles.append(Line2D([], [], color=QUIET, lw=1.8, label="mean"))
    extras = [
        (any(m.draws is not None for m in methods), Line2D([], [], color=QUIET, lw=0.7), "samples"),
        (any(m.uncertain for m in methods), Patch(color=QUIET, alpha=0.45, lw=0), "mean ± 2 std"),
        (
            any(m.lower is not None for m in methods),
            Patch(fc="#e4e4e4", ec=QUIET, lw=0.9),
            "calibrated 95 % interval",
        ),
    ]
    for present, handle, label in extras:
        if present:
            handle.set_label(label)
            handles.append(handle)
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def _trajectory_context(view: RunView) -> str:
    text, n = f"{view.title}, one test run", view.calibration_trajectories
    if all(m.lower is None for m in view.methods):
        return text
    few = " (95 % needs 19)" if n < 19 else ""
    return f"{text}, calibrated on {n} trajectories{few}; error: relative L2 (RL2E)"


def _trajectory_finding(methods: Sequence[MethodView], view: RunView, variables) -> str:
    columns = list(variables)
    truth = view.truth[:, columns]
    errors = [_rl2e(m.mean[:, v], view.truth[:, v]) for m in methods for v in columns]
    diverged = not all(np.isfinite(m.mean[:, columns]).all() for m in methods)
    text = "A forecast diverged" if diverged else f"Forecast errors up to {_number(max(errors))}"
    ends = [
        (m.lower[:, columns], m.upper[:, columns])
        for m in methods
        if m.lower is not None and m.upper is not None
    ]
    if not ends:
        return text
    infinite = [np.mean(np.isinf(lower) | np.isinf(upper)) for lower, upper in ends]
    if max(infinite) > 0:
        return f"{text}; 95 % intervals {'' if min(infinite) == 1 else 'partly '}infinite"
    inside = [float(np.mean((lower <= truth) & (truth <= upper))) for lower, upper in ends]
    return f"{text}; 95 % intervals cover {_percents(inside)} of the run"
