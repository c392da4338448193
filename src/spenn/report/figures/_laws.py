"""Laws: one row per method, energy on the left, entropy on the right."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .._view import MethodView, RunView
from ._drawing import (
    DPI,
    _aside,
    _axis,
    _blank,
    _bracket,
    _common,
    _extent,
    _head,
    _header,
    _label_y,
    _log_axis,
    _log_limits,
    _name,
    _number,
    _rank,
    _shade,
    _thin,
    _thin_to_minima,
    method_colours,
)


def draw_laws(view: RunView) -> Figure:
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
    _head(axes[0, 0], "Energy rate (energy range / model time)")
    _head(axes[0, 1], "Smallest entropy rate (entropy / model time)")
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
    rates = {m.name: m.entropy_rate_min for m in known}
    falling = [name for name, r in rates.items() if not np.all(r >= 0)]  # pyright: ignore
    resting = any(np.any(r == 0) for r in rates.values())  # a bar ahead of the first wave
    worst = _number(float(max(energies, key=_rank))) if energies else ""
    text = f"Energy rate within ±{worst}; " if energies else ""
    if falling:
        text += f"entropy does not always grow ({', '.join(falling)})"
    elif known:
        text += "entropy never falls" if resting else "entropy grows in every sample"
    return text[:1].upper() + text[1:] if text else "No rates to show"
