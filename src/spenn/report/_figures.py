"""The figures of a run: forecasts, coverage, errors and the two laws.

Colour always means method, here and from one figure to the next. Titles state what was found, and
are worked out from the numbers shown. Figures are made without pyplot, and leave no state behind.
"""

from collections.abc import Iterable, Sequence
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
from matplotlib.ticker import LogLocator, MaxNLocator

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
    return _common(
        {method.name: _deviation(view, method, variable).limits() for method in methods}
    )


def _trajectory_page(
    view: RunView, methods: Sequence[MethodView], variables: Sequence[int], scales: dict
) -> Figure:
    rows, columns = len(methods) + 1, len(variables)
    figure = Figure(figsize=(max(3.5 * columns, 6), 1.3 + 1.75 * rows))
    _header(figure, _trajectory_finding(methods, view, variables), f"{view.title}, one test run")
    axes = figure.subplots(rows, columns, sharex=True, squeeze=False)
    colours = method_colours(m.name for m in view.methods)
    for column, variable in enumerate(variables):
        _draw_state(axes[0, column], view, methods, variable, colours)
        for row, method in enumerate(methods, 1):
            limits = scales[variable][method.name]
            ax = axes[row, column]
            _draw_deviation(ax, view, method, variable, limits, colours[method.name])
            _note_unbounded(ax, view, method, variable)
        axes[-1, column].set_xlabel(view.time_label)
    for row, method in enumerate(methods, 1):
        _name(axes[row, 0], method, colours[method.name])
    figure.align_ylabels(axes)
    _trajectory_legend(figure, methods)
    return figure


def _draw_state(ax: Axes, view: RunView, methods, variable: int, colours) -> None:
    """Means as nested lines, so that those on top of one another are all seen."""
    keep = _thin(len(view.times))
    times, truth = view.times[keep], view.truth[keep, variable]
    for layer, method in enumerate(methods):
        width = 2.2 + 2.2 * (len(methods) - 1 - layer)
        ax.plot(times, method.mean[keep, variable], color=colours[method.name], lw=width)
    ax.plot(times, truth, color="black", lw=1.2, ls=(0, (4, 3)))
    low, high = _extent(truth)
    margin = 0.1 * (high - low) or 1.0
    ax.set(ylabel=view.labels[variable], xlim=(times[0], times[-1]))
    ax.set_ylim(low - margin, high + margin)
    ax.yaxis.set_major_locator(MaxNLocator(4))


def _draw_deviation(ax: Axes, view: RunView, method, variable: int, limits, colour: str) -> None:
    times = view.times[_thin(len(view.times))]
    low, high, unit, power = _axis(*limits)
    deviation = _deviation(view, method, variable)
    if deviation.interval is not None:
        ends = [np.clip(end / unit, 9 * low - 8 * high, 9 * high - 8 * low) for end in deviation[2]]
        ax.fill_between(times, *ends, color=colour, alpha=0.14, lw=0)
        ax.plot(times, np.transpose(ends), color=colour, lw=0.9, alpha=0.7)
    if deviation.draws is not None:
        ax.plot(times, deviation.draws.T / unit, color=colour, lw=0.5, alpha=0.45)
    if method.uncertain:
        ax.fill_between(times, *(end / unit for end in deviation.raw), color=colour, alpha=0.35, lw=0)
    ax.axhline(0, color="black", lw=1.2, ls=(0, (4, 3)))
    ax.plot(times, deviation.mean / unit, color=colour, lw=1.8)
    ax.set(ylim=(low, high), ylabel=f"{view.names[variable]} − ref.{_bracket(power)}")
    ax.yaxis.set_major_locator(MaxNLocator(4))
    error = _rl2e(method.mean[:, variable], view.truth[:, variable])
    ax.set_title(f"RL2E {_number(error)}", loc="right", fontsize=11, color=QUIET)


def _note_unbounded(ax: Axes, view: RunView, method: MethodView, variable: int) -> None:
    if method.lower is None or method.upper is None:
        return
    ends = np.stack([method.lower[:, variable], method.upper[:, variable]])
    share = np.mean(np.isinf(ends).any(0))
    if share > 0:
        when = "" if share == 1 else f" at {_percent(share)} of times"
        text = f"95 % interval infinite{when}\n({view.calibration_trajectories} for calibration)"
        _note(ax, text)


def _trajectory_legend(figure: Figure, methods: Sequence[MethodView]) -> None:
    handles = [Line2D([], [], color="black", lw=1.2, ls=(0, (4, 3)), label="reference")]
    handles.append(Line2D([], [], color=QUIET, lw=1.8, label="mean"))
    extras = [
        (any(m.draws is not None for m in methods), Line2D([], [], color=QUIET, lw=0.5), "samples"),
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


def _trajectory_finding(methods: Sequence[MethodView], view: RunView, variables) -> str:
    columns = list(variables)
    errors = [_rl2e(m.mean[:, v], view.truth[:, v]) for m in methods for v in columns]
    text = f"Forecast errors up to {_number(max(errors, key=_rank))} (RL2E)"
    inside = [
        float(np.mean((m.lower <= view.truth)[:, columns] & (view.truth <= m.upper)[:, columns]))
        for m in methods
        if m.lower is not None and m.upper is not None
    ]
    return text + (f"; 95 % intervals hold {_percents(inside)}" if inside else "")


# Coverage: empirical against nominal, per variable and for whole trajectories.


def _coverage(view: RunView) -> Figure:
    panels = len(view.names) + 1
    columns = ceil(panels**0.5) if panels < 7 else 4
    rows = ceil(panels / columns)
    figure = Figure(figsize=(3.0 * columns + 1.4, 3.2 * rows + 1.9))
    _header(figure, _coverage_finding(view), f"{view.title}, all test trajectories")
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for ax, title in zip(axes, [*view.labels, "whole trajectory"], strict=False):
        _coverage_axes(ax, title, view)
    colours = method_colours(m.name for m in view.methods)
    for method in view.methods:
        _draw_coverage(axes, method, colours[method.name])
    for ax in axes[panels:]:
        ax.remove()
    for i in range(panels):
        axes[i].xaxis.set_tick_params(labelbottom=i + columns >= panels)
        axes[i].set_xlabel("nominal" if i + columns >= panels else "")
        axes[i].set_ylabel("empirical" if i % columns == 0 else "")
    _coverage_legend(figure, view, colours)
    return figure


def _coverage_axes(ax: Axes, title: str, view: RunView) -> None:
    ticks = [0, 25, 50, 75, 100]
    ax.set(xlim=(0, 100), ylim=(0, 102), xticks=ticks, yticks=ticks, box_aspect=1)
    ax.set_xticklabels([f"{t} %" if t in (0, 50, 100) else "" for t in ticks])
    ax.set_yticklabels([f"{t} %" for t in ticks])
    ax.set_title(title)
    levels = _calibrated_levels(view)
    if levels.size and view.calibration_trajectories > 0:
        from spenn.calibrate import coverage_range  # brings in JAX

        n = view.calibration_trajectories
        ends = np.array([coverage_range(n, round(float(level), 6)) for level in levels])
        ax.fill_between(100 * levels, *(100 * ends.T), color="#dddddd", lw=0)
    ax.plot([0, 100], [0, 100], color=INK, lw=0.9)


def _draw_coverage(axes: np.ndarray, method: MethodView, colour: str) -> None:
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


def _coverage_legend(figure: Figure, view: RunView, colours: dict[str, str]) -> None:
    known = [m for m in view.methods if m.levels is not None]
    handles: list = [Line2D([], [], color=colours[m.name], lw=4, label=m.name) for m in known]
    if not known:
        figure.text(0.5, 0.5, "no method states an uncertainty", ha="center", color=QUIET)
        return
    if any(m.coverage_raw is not None for m in known):
        handles.append(Line2D([], [], color=QUIET, lw=1.8, ls=(0, (3, 1.5)), label="raw samples"))
    if _calibrated_levels(view).size:
        handles.append(Line2D([], [], color=QUIET, lw=1.6, marker="o", ms=4, label="calibrated"))
        n = view.calibration_trajectories
        label = f"5–95 % expected, {n} calibration trajectories"
        handles.append(Patch(color="#dddddd", lw=0, label=label))
    columns = 2 if figure.get_figwidth() < 9 else 3
    figure.legend(handles=handles, loc="outside lower center", ncols=columns)


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
        return "No coverage to show"
    parts = [f"raw {_percents(raw)}"] if raw else []
    parts += [f"calibrated {_percents(calibrated)}"] if calibrated else []
    return f"Nominal {_percent(level)} intervals hold: " + ", ".join(parts)


# Errors: boxes over the test trajectories.


def _errors(view: RunView) -> Figure:
    count = len(view.names)
    columns = ceil(count / ceil(count / 3))
    rows = ceil(count / columns)
    height = 0.5 * len(view.methods) + 1.35
    figure = Figure(figsize=(3.5 * columns + 1.2, height * rows + 1.0))
    context = f"{view.title}, {len(view.methods[0].rl2e)} test trajectories; "
    context += "box: quartiles, whiskers: 5–95 %"
    _header(figure, _errors_finding(view), context)
    axes = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for ax in axes[count:]:
        ax.remove()
    for variable in range(count):
        _draw_errors(axes[variable], view, variable)
    return figure


def _draw_errors(ax: Axes, view: RunView, variable: int) -> None:
    colours = method_colours(m.name for m in view.methods)
    ax.set_xscale("log")
    for row, method in enumerate(view.methods):
        _draw_box(ax, row, method.rl2e[:, variable], colours[method.name])
    reference = float(view.floor_rl2e[variable])
    if isfinite(reference) and reference > 0:
        ax.axvline(reference, color=INK, lw=1.4, ls=(0, (4, 3)))
        where = ax.get_xaxis_transform()
        ax.text(reference, 1.01, "exact physics", transform=where, ha="center", va="bottom", size=10)
    ax.text(1.03, 1.01, "median", transform=ax.transAxes, va="bottom", size=10, color=QUIET)
    names = [method.name for method in view.methods]
    ax.set_yticks(range(len(names)), names)
    ax.set(ylim=(len(names) - 0.5, -0.5), xlabel="RL2E")
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_locator(LogLocator(numticks=5))
    ax.grid(axis="x", color="#e6e6e6", lw=0.8)
    ax.set_axisbelow(True)
    ax.set_title(view.labels[variable], pad=20, fontweight="bold")


def _draw_box(ax: Axes, row: int, errors: np.ndarray, colour: str) -> None:
    good = errors[np.isfinite(errors) & (errors > 0)]
    note = _number(float(np.median(errors[np.isfinite(errors)]))) if good.size else "none finite"
    if good.size:
        low, first, middle, third, high = np.quantile(good, [0.05, 0.25, 0.5, 0.75, 0.95])
        ax.plot([low, high], [row, row], color=colour, lw=1.6)
        ax.barh(row, third - first, 0.5, first, fc=_tint(colour, 0.7), ec=colour, lw=1.6)
        ax.plot([middle, middle], [row - 0.25, row + 0.25], color=_shade(colour), lw=2.6)
        outside = good[(good < low) | (good > high)]
        ax.plot(outside, np.full(outside.size, row), ".", color=colour, ms=4)
    diverged = int(np.sum(~np.isfinite(errors)))
    note += f"\n{diverged} diverged" if diverged else ""
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
    figure = Figure(figsize=(10.5, 1.25 + 1.55 * rows))
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
        _name(left, method, colour)
    axes[0, 0].set_xlim(view.times[0], view.times[-1])
    axes[-1, 0].set_xlabel(view.time_label)
    axes[-1, 1].set_xlabel(view.time_label)
    figure.align_ylabels(axes)
    return figure


def _draw_energy(ax: Axes, view: RunView, method: MethodView, limits, colour: str) -> None:
    low, high, unit, power = _axis(*limits)
    ax.set(ylim=(low, high), ylabel=f"dE/dt{_bracket(power)}")
    ax.yaxis.set_major_locator(MaxNLocator(3))
    ax.axhline(0, color="black", lw=0.9, ls=(0, (4, 3)))
    if method.energy_rate is None:
        return _note(ax, "not known for this method")
    keep = _thin(len(view.times))
    lower, median, upper = method.energy_rate[:, keep] / unit
    ax.fill_between(view.times[keep], lower, upper, color=colour, alpha=0.3, lw=0)
    ax.plot(view.times[keep], median, color=colour, lw=1.4)
    worst = float(np.max(np.abs(method.energy_rate)))
    ax.set_title(f"|dE/dt| ≤ {_number(worst)}", loc="right", fontsize=11, color=QUIET)


def _draw_entropy(ax: Axes, view: RunView, method: MethodView, limits, colour: str) -> None:
    ax.set_yscale("log")
    ax.set(ylim=limits, ylabel="min dS/dt")
    ax.yaxis.set_major_locator(LogLocator(numticks=4))
    ax.minorticks_off()
    rates = method.entropy_rate_min
    if rates is None:
        return _note(ax, "not known for this method")
    positive = np.isfinite(rates) & (rates > 0)
    keep = _thin_to_minima(np.where(positive, rates, np.inf))
    ax.plot(view.times[keep], np.where(positive, rates, np.nan)[keep], color=colour, lw=1.6)
    bad = int(np.sum(~positive))
    if not bad:
        text = f"positive throughout, ≥ {_number(float(rates.min()))}"
        ax.set_title(text, loc="right", fontsize=11, color=QUIET)
        return
    times, where = view.times[~positive], ax.get_xaxis_transform()
    style = {"marker": "x", "ms": 7, "mew": 1.8, "ls": "none", "clip_on": False}
    ax.plot(times, np.full(bad, 0.06), color="black", transform=where, **style)
    text = f"× not positive at {bad} of {rates.size} times, down to {_number(np.min(rates))}"
    ax.set_title(text, loc="right", fontsize=11, color="black", fontweight="bold")


def _entropy_limits(view: RunView) -> tuple[float, float]:
    rates = [m.entropy_rate_min for m in view.methods if m.entropy_rate_min is not None]
    low, high = _extent(*(rate[rate > 0] for rate in rates))
    return (low / 3, high * 3) if high > 0 else (1e-3, 1.0)


def _laws_finding(view: RunView) -> str:
    energies = [np.max(np.abs(m.energy_rate)) for m in view.methods if m.energy_rate is not None]
    known = [m for m in view.methods if m.entropy_rate_min is not None]
    falling = [m.name for m in known if not np.all(m.entropy_rate_min > 0)]  # pyright: ignore
    text = f"Energy rate at most {_number(float(max(energies, key=_rank)))}; " if energies else ""
    if falling:
        text += f"entropy does not always grow: {', '.join(falling)}"
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
    figure.set_layout_engine("constrained", rect=(0, 0, 1, 1 - 0.68 / height))


def _save(figure: Figure, path: Path) -> Path:
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=DPI, metadata={"Software": None}, pil_kwargs={"compress_level": 3})
    return path


def _name(ax: Axes, method: MethodView, colour: str) -> None:
    count = f", {method.samples} samples" if method.uncertain else ""
    ax.set_title(method.name + count, loc="left", color=_shade(colour), fontweight="bold", size=11)


def _note(ax: Axes, text: str) -> None:
    box = {"fc": "white", "ec": "none", "alpha": 0.85, "pad": 1.5}
    ax.text(0.03, 0.06, text, transform=ax.transAxes, size=10, bbox=box, zorder=5)


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
    return np.array([a + int(np.argmin(values[a:b])) for a, b in zip(edges, edges[1:], strict=False)])


def _extent(*arrays: np.ndarray) -> tuple[float, float]:
    """Smallest and largest finite value; zeros if there is none."""
    values = np.concatenate([np.ravel(a) for a in arrays]) if arrays else np.zeros(0)
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)


def _quantiles(values: np.ndarray, *levels: float) -> np.ndarray:
    values = values[np.isfinite(values)]
    return np.quantile(values, levels) if values.size else np.zeros(0)


def _median(errors: np.ndarray) -> np.ndarray:
    """Over trajectories, a diverged one counting as infinitely wrong."""
    return np.median(np.where(np.isfinite(errors), errors, np.inf), axis=0)


def _common(limits: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """One range for all, unless it would leave one of them less than an eighth of its axis."""
    if not limits:
        return {}
    low, high = min(a for a, _ in limits.values()), max(b for _, b in limits.values())
    if all(8 * (b - a) >= high - low for a, b in limits.values()):
        return dict.fromkeys(limits, (low, high))
    return limits


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


def _number(value: float) -> str:
    """Two digits, with a power of ten where plain digits would be long."""
    if not isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "not a number"
    if value == 0 or 0.01 <= abs(value) < 1000:
        return f"{value:.2g}".replace("-", "−") if abs(value) < 100 else f"{value:.0f}"
    digits, power = f"{abs(value):.1e}".split("e")
    return f"{'−' if value < 0 else ''}{digits}·{_power(int(power))}"


def _power(exponent: int) -> str:
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _bracket(power: int) -> str:
    return f" ({_power(power)})" if power else ""


def _span(values: Iterable, joint: str = "–") -> str:
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
