"""What the figures share: colours, axes, numbers as text."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator
from matplotlib.transforms import ScaledTranslation
from PIL import Image

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
    "epinet": "#0072B2",  # of inverse problems, which show neither of those above
    "hmc": "#009E73",
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


def method_colours(names: Iterable[str]) -> dict[str, str]:
    """The colour of each method: its own where it has one, else a spare one, in order."""
    colours = {}
    for name in names:
        spare = SPARE_COLOURS[len(colours.keys() - COLOURS.keys()) % len(SPARE_COLOURS)]
        colours[name] = COLOURS.get(name, spare)
    return colours


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
