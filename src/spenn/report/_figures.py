"""The figures of a run: forecasts, coverage, errors and the two laws.

Colour always means method, here and from one figure to the next. Titles state what was found, and
are worked out from the numbers shown. Figures are made without pyplot, and leave no state behind.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from pathlib import Path
from typing import NamedTuple

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullLocator
from matplotlib.transforms import ScaledTranslation
from PIL import Image

from ._view import MethodView, RunView

DPI = 160
POINTS = 500  # of a line, at most
INK, QUIET = "#222222", "#666666"

# Okabe and Ito's palette, which colour-blind readers can tell apart too; brown for one more.
COLOURS = {
    "base": "#555555",
    "spenn-half-normal": "#0072B2",
    "spenn-uniform": "#D55E00",
    "spenn-exponential": "#009E73",
    "deep-ensemble": "#CC79A7",
    "mc-dropout": "#E69F00",
}
SPARE_COLOURS = ("#56B4E9", "#8C5A2B", "#999999")

STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 12,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": QUIET,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.frameon": False,
    "legend.fontsize": 11,
}


def draw_figures(view: RunView, folder: Path) -> list[Path]:
    """Write the figures of a run into `folder`, and say which files they are.

    `trajectories.png` (and `trajectories-2.png`, ... beyond three variables or three methods),
    `coverage.png`, `errors.png` and `laws.png`. The caller makes the folder.
    """
    with matplotlib.style.context(["default", STYLE]):
        figures = _trajectories(view)
        figures |= {"coverage": _coverage(view), "errors": _errors(view), "laws": _laws(view)}
        return [_save(figure, Path(folder) / f"{name}.png") for name, figure in figures.items()]


def method_colours(names: Iterable[str]) -> dict[str, str]:
    """The colour of each method: its own where it has one, else a spare one, in order."""
    colours = {}
    for name in names:
        spare = SPARE_COLOURS[len(colours.keys() - COLOURS.keys()) % len(SPARE_COLOURS)]
        colours[name] = COLOURS.get(name, spare)
    return colours


# Trajectories: the state on top, then one row per method with its deviation from the reference.


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


def _trajectories(view: RunView) -> dict[str, Figure]:
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


# Coverage: empirical against nominal, per variable and for whole trajectories.


def _coverage(view: RunView) -> Figure:
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
    """Calibrated levels, and the (2, level) ends of what one calibration set gives."""
    levels, n = _calibrated_levels(view), view.calibration_trajectories
    if n < 1 or not levels.size:
        return np.zeros(0), np.zeros((2, 0))
    from spenn.calibrate import coverage_range  # brings in JAX

    ends = [coverage_range(n, round(float(level), 6)) for level in levels]
    return levels, np.array(ends).T


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
        label = f"5–95 % expected with\n{view.calibration_trajectories} calibration trajectories"
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


# Errors: boxes over the test trajectories.


def _errors(view: RunView) -> Figure:
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


# Laws: one row per method, energy on the left, entropy on the right.


def _laws(view: RunView) -> Figure:
    rows = len(view.methods)
    figure = Figure(figsize=(10, 1.55 + 1.5 * rows), dpi=DPI)
    _header(figure, _laws_finding(view), f"{view.title}, along one test run")
    axes = figure.subplots(rows, 2, sharex=True, squeeze=False)
    colours = method_colours(m.name for m in view.methods)
    rates = {m.name: _extent(m.energy_rate) for m in view.methods if m.energy_rate is not None}
    scales = _common(rates)
    limits = _entropy_limits(view)
    for (left, right), method in zip(axes, view.methods, strict=True):
        colour = colours[method.name]
        _draw_energy(left, view, method, scales.get(method.name, (0.0, 0.0)), colour)
        _draw_entropy(right, view, method, limits, colour)
        _name(left, method.name, _shade(colour))
    _head(axes[0, 0], "Energy rate (energy range / time)")
    _head(axes[0, 1], "Smallest entropy rate (entropy / time)")
    axes[0, 0].set_xlim(view.times[0], view.times[-1])
    axes[0, 0].xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    for ax in axes[-1]:
        ax.set_xlabel(view.time_label)
    return figure


def _draw_energy(ax: Axes, view: RunView, method: MethodView, limits, colour: str) -> None:
    if method.energy_rate is None:
        return _blank(ax, "energy rate not known")
    low, high, unit, power = _axis(*limits)
    ax.set_ylim(low, high)
    ax.yaxis.set_major_locator(MaxNLocator(3))
    _label_y(ax, f"dE/dt{_bracket(power)}")
    ax.axhline(0, color="black", lw=0.9, ls=(0, (4, 3)))
    keep = _thin(len(view.times))
    lower, median, upper = method.energy_rate[:, keep] / unit
    ax.fill_between(view.times[keep], lower, upper, color=colour, alpha=0.3, lw=0)
    ax.plot(view.times[keep], median, color=colour, lw=1.4)
    share = "95 % within " if method.uncertain else "within "
    _aside(ax, f"{share}±{_number(float(np.max(np.abs(method.energy_rate))))}")


def _draw_entropy(ax: Axes, view: RunView, method: MethodView, limits, colour: str) -> None:
    rates = method.entropy_rate_min
    if rates is None:
        return _blank(ax, "entropy rate not known")
    _log_axis(ax, "y", limits, 3)
    _label_y(ax, "min dS/dt")
    positive = np.isfinite(rates) & (rates > 0)
    keep = _thin_to_minima(np.where(positive, rates, np.inf))
    ax.plot(view.times[keep], np.where(positive, rates, np.nan)[keep], color=colour, lw=1.6)
    if positive.all():
        _aside(ax, f"dS/dt ≥ {_number(float(rates.min()))} > 0")
    else:
        _mark_violations(ax, view.times, rates, positive)


def _mark_violations(ax: Axes, times: np.ndarray, rates: np.ndarray, positive: np.ndarray) -> None:
    """Crosses in a margin below the axis, for what a logarithm cannot show; none is left out."""
    low, high = ax.get_ylim()
    ax.set_ylim(low * (low / high) ** 0.3, high)
    bad = int(np.sum(~positive))
    style = {"marker": "x", "ms": 7, "mew": 1.8, "ls": "none", "clip_on": False, "color": "black"}
    ax.plot(times[~positive], np.full(bad, 0.08), transform=ax.get_xaxis_transform(), **style)
    where = {"transform": ax.transAxes, "ha": "right", "va": "center", "size": 11}
    ax.text(-0.015, 0.08, "≤ 0", fontweight="bold", **where)
    text = f"× dS/dt ≤ 0 at {bad} of {rates.size} times, min {_number(float(np.min(rates)))}"
    if not np.isfinite(rates).all():
        text = f"× dS/dt ≤ 0 or not finite at {bad} of {rates.size} times"
    _aside(ax, text, color="black")


def _entropy_limits(view: RunView) -> tuple[float, float]:
    rates = [m.entropy_rate_min for m in view.methods if m.entropy_rate_min is not None]
    return _log_limits(*rates)


def _laws_finding(view: RunView) -> str:
    energies = [np.max(np.abs(m.energy_rate)) for m in view.methods if m.energy_rate is not None]
    known = [m for m in view.methods if m.entropy_rate_min is not None]
    falling = [m.name for m in known if not np.all(m.entropy_rate_min > 0)]  # pyright: ignore
    worst = _number(float(max(energies, key=_rank))) if energies else ""
    text = f"Energy rate within ±{worst}; " if energies else ""
    if falling:
        text += f"entropy does not always grow ({', '.join(falling)})"
    elif known:
        text += "entropy grows in every sample"
    return text[:1].upper() + text[1:] if text else "No rates to show"


# Shared parts.


def _header(figure: Figure, finding: str, context: str) -> None:
    """Two lines on top, with the rest of the figure laid out below them."""
    width, height = figure.get_size_inches()
    size = min(15.0, 72 * (width - 0.2) / (0.7 * len(finding)))
    figure.text(0.1 / width, 1 - 0.1 / height, finding, size=size, weight="bold", va="top")
    figure.text(0.1 / width, 1 - 0.4 / height, context, size=11, color=QUIET, va="top")
    rect = (0, 0, 1, 1 - 0.68 / height)
    figure.set_layout_engine("constrained", rect=rect, w_pad=0.06, h_pad=0.06)


def _save(figure: Figure, path: Path) -> Path:
    """One pass for layout and drawing; `savefig` would take two."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])
    image.save(path, format="png", dpi=(DPI, DPI), compress_level=3)
    return path


def _name(ax: Axes, text: str, colour) -> None:
    """What a row shows, above its left end."""
    size = min(11.0, 11 * 24 / len(text))
    ax.set_title(text, loc="left", y=1.0, fontweight="bold", fontsize=size, color=colour)


def _aside(ax: Axes, text: str, **style) -> None:
    """A number above the right end of a panel."""
    ax.set_title(text, loc="right", y=1.0, **({"color": QUIET, "fontsize": 11} | style))


def _head(ax: Axes, text: str) -> None:
    """The title of a column, above that of its first panel."""
    ax.annotate(text, (0, 1), (0, 26), "axes fraction", "offset points", size=12, fontweight="bold")


def _label_y(ax: Axes, text: str, size: float = 12) -> None:
    """Axis label at a fixed distance, so that those of a column line up."""
    figure = ax.get_figure()
    assert figure is not None
    place = ax.transAxes + ScaledTranslation(-0.52, 0, figure.dpi_scale_trans)
    ax.set_ylabel(text, va="bottom", size=size)
    ax.yaxis.set_label_coords(0, 0.5, transform=place)


def _log_axis(ax: Axes, side: str, limits: tuple[float, float], most: int) -> None:
    """At most `most` + 1 powers of ten, written without mathtext, which is slow."""
    ax.set(**{f"{side}scale": "log", f"{side}lim": limits})
    axis = ax.xaxis if side == "x" else ax.yaxis
    first, last = ceil(log10(limits[0])), floor(log10(limits[1]))
    powers = range(last, first - 1, -ceil(max(last - first, 1) / most))
    axis.set_major_locator(FixedLocator([10.0**power for power in powers]))
    axis.set_major_formatter(FixedFormatter([_power(power) for power in powers]))
    axis.set_minor_locator(NullLocator())


def _fill(ax: Axes, times: np.ndarray, ends, limits: tuple[float, float], **style) -> None:
    """A band; what is infinite goes on far beyond the limits."""
    low, high = limits
    lower, upper = (np.clip(end, 9 * low - 8 * high, 9 * high - 8 * low) for end in ends)
    ax.fill_between(times, lower, upper, lw=0, **style)


def _log_limits(*arrays: np.ndarray) -> tuple[float, float]:
    """Around all that is positive, with two powers of ten or more inside."""
    low, high = _extent(*(np.asarray(a)[np.asarray(a) > 0] for a in arrays))
    if high == 0:
        return 0.1, 1.0
    low, high = low / 1.5, high * 1.5
    if ceil(log10(low)) < floor(log10(high)):
        return low, high
    bottom = floor(log10(low))
    return 10.0**bottom, 10.0 ** max(ceil(log10(high)), bottom + 1)


def _blank(ax: Axes, text: str) -> None:
    ax.set_yticks([])
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color=QUIET)


def _split(items: Sequence, most: int) -> list[Sequence]:
    """Runs of at most `most` items, as even as can be."""
    size = ceil(len(items) / ceil(len(items) / most))
    return [items[i : i + size] for i in range(0, len(items), size)]


def _thin(count: int) -> np.ndarray:
    """Indices of at most `POINTS` of `count` records, first and last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, POINTS)).round().astype(int))


def _thin_to_minima(values: np.ndarray) -> np.ndarray:
    """The same, but the index of the smallest value of each stretch: no dip is lost."""
    edges = np.linspace(0, values.size, min(values.size, POINTS) + 1).round().astype(int)
    return np.array([a + int(np.argmin(values[a:b])) for a, b in pairwise(edges)])


def _extent(*arrays: np.ndarray) -> tuple[float, float]:
    """Smallest and largest finite value; zeros if there is none."""
    values = np.concatenate([np.ravel(a) for a in arrays]) if arrays else np.zeros(0)
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)


def _finite(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), values, np.nan)


def _quantiles(values: np.ndarray, *levels: float) -> np.ndarray:
    values = values[np.isfinite(values)]
    return np.quantile(values, levels) if values.size else np.zeros(0)


def _median(errors: np.ndarray) -> np.ndarray:
    """Over trajectories, a diverged one counting as infinitely wrong."""
    return np.median(np.where(np.isfinite(errors), errors, np.inf), axis=0)


def _common(limits: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """One range for all whose own is at least an eighth of the widest; the rest likewise."""
    if not limits:
        return {}
    widest = max(high - low for low, high in limits.values())
    group = {name: ends for name, ends in limits.items() if 8 * (ends[1] - ends[0]) >= widest}
    common = min(low for low, _ in group.values()), max(high for _, high in group.values())
    rest = {name: ends for name, ends in limits.items() if name not in group}
    return dict.fromkeys(group, common) | _common(rest)


def _axis(low: float, high: float) -> tuple[float, float, float, int]:
    """Limits with a margin in units of a power of ten, the unit and the power."""
    size = max(abs(low), abs(high))
    if size == 0:
        return -1.0, 1.0, 1.0, 0
    power = floor(log10(size))
    power = 0 if -2 < power < 3 else power
    margin, unit = 0.08 * (high - low), 10.0**power
    return (low - margin) / unit, (high + margin) / unit, unit, power


def _rl2e(mean: np.ndarray, truth: np.ndarray) -> float:
    error, size = np.linalg.norm(mean - truth), np.linalg.norm(truth)
    return float(error / size) if size > 0 else (0.0 if error == 0 else np.inf)


def _rank(value: float) -> float:
    """Sorts what is not finite last."""
    return value if isfinite(value) else np.inf


def _number(value: float, missing: str = "NaN") -> str:
    """Two digits, with a power of ten where plain digits would be long."""
    if not isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else missing
    if value == 0 or 0.01 <= abs(value) < 1000:
        return f"{value:.2g}".replace("-", "−") if abs(value) < 100 else f"{value:.0f}"
    digits, power = f"{abs(value):.1e}".split("e")
    return f"{'−' if value < 0 else ''}{digits}·{_power(int(power))}"


def _power(exponent: int) -> str:
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _bracket(power: int) -> str:
    return f" ({_power(power)})" if power else ""


def _span(values: np.ndarray, joint: str = "–") -> str:
    low, high = _number(float(np.min(values))), _number(float(np.max(values)))
    return low if low == high else f"{low}{joint}{high}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %" if share > 0.01 else f"{100 * share:.1g} %"


def _percents(shares: Sequence[float]) -> str:
    low, high = f"{100 * min(shares):.0f}", f"{100 * max(shares):.0f}"
    return f"{low} %" if low == high else f"{low}–{high} %"


def _tint(colour: str, amount: float) -> tuple[float, ...]:
    return tuple(1 - (1 - part) * (1 - amount) for part in to_rgb(colour))


def _shade(colour: str) -> tuple[float, ...]:
    """Darker, for text and thin strokes."""
    return tuple(0.72 * part for part in to_rgb(colour))
