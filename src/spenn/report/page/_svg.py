"""Charts as SVG, made in Python: a page that shows nothing else needs no JavaScript."""

from collections.abc import Sequence
from html import escape
from itertools import count
from math import floor, log10

import numpy as np
from matplotlib.ticker import MaxNLocator

from .._inverse_words import shortened
from ..figures._drawing import _axis, _bracket

WIDTH, HEIGHT = 340, 236
LEFT, RIGHT, TOP, BOTTOM = 46, 322, 30, 194
"""A panel as wide as a phone is, so that its text is read there at its own size."""


class Chart:
    """One panel with axes, into which lines, bands, marks and bars are drawn in turn."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        margins: tuple[bool, bool] = (True, True),
    ):
        self.x = _Scale(*x, LEFT, RIGHT, margins[0])
        self.y = _Scale(*y, BOTTOM, TOP, margins[1])
        self.parts: list[str] = []

    def line(self, kind: str, x: np.ndarray, y: np.ndarray) -> None:
        """A line of a CSS class, broken where a number is missing."""
        self._path(kind, _joined(self.x(x), self.y(y)))

    def band(self, x: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """The area between two lines, in pieces where a number is missing."""
        places = self.x(x), self.y(low), self.y(high)
        pieces = []
        for a, b in _runs(np.logical_and.reduce(np.isfinite(places))):
            there = _points(places[0][a:b], places[2][a:b])
            back = _points(places[0][a:b], places[1][a:b])[::-1]
            pieces.append(f"M{'L'.join([*there, *back])}Z")
        self._path("band", "".join(pieces))

    def marks(self, kind: str, x: np.ndarray, y: np.ndarray) -> None:
        """Round dots: strokes of no length with round ends."""
        known = np.isfinite(x) & np.isfinite(y)
        dots = _points(self.x(x[known]), self.y(y[known]))
        self._path(kind, "".join(f"M{dot}h0" for dot in dots))

    def bars(self, heights: np.ndarray, edges: np.ndarray) -> None:
        """A histogram, from zero."""
        x, y, zero = self.x(edges), self.y(heights), self.y(np.zeros(1))[0]
        steps = "".join(f"V{_short(h)}H{_short(e)}" for h, e in zip(y, x[1:], strict=True))
        self._path("bar", f"M{_short(x[0])},{_short(zero)}{steps}V{_short(zero)}Z")

    def upright(self, kind: str, x: float) -> None:
        """A line from bottom to top."""
        place = _short(self.x(np.array([x]))[0])
        self._path(kind, f"M{place},{BOTTOM}V{TOP}")

    def _path(self, kind: str, path: str) -> None:
        if path:
            self.parts.append(f'<path class="{kind}" d="{path}"/>')

    def render(self, identity: str, labels: tuple[str, str], aside: str, words: tuple[str, str]):
        """The chart as SVG: labels of both axes, a note on top, and its title and description."""
        x_label, y_label = (
            escape(shortened(f"{text}{_bracket(scale.power)}"))
            for text, scale in zip(labels, (self.x, self.y), strict=True)
        )
        title, description = map(escape, words)
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-labelledby="{identity}t {identity}d"><title id="{identity}t">{title}</title>'
            f'<desc id="{identity}d">{description}</desc>'
            f'<text class="name" x="2" y="16">{y_label}</text>'
            f'<text class="aside" x="{RIGHT}" y="16" text-anchor="end">{escape(aside)}</text>'
            f"{''.join(self.parts)}{self._axes()}"
            f'<text x="{RIGHT}" y="{HEIGHT - 6}" text-anchor="end">{x_label}</text></svg>'
        )

    def _axes(self) -> str:
        lines = f"M{LEFT},{TOP}V{BOTTOM}H{RIGHT}"
        texts = []
        for place, text in self.x.ticks(4):
            lines += f"M{_short(place)},{BOTTOM}v4"
            where = f'x="{_short(place)}" y="{BOTTOM + 18}" text-anchor="middle"'
            texts.append(f'<text class="tick" {where}>{text}</text>')
        for place, text in self.y.ticks(4):
            lines += f"M{LEFT},{_short(place)}h-4"
            where = f'x="{LEFT - 7}" y="{_short(place + 4)}" text-anchor="end"'
            texts.append(f'<text class="tick" {where}>{text}</text>')
        return f'<path class="axis" d="{lines}"/>{"".join(texts)}'


class _Scale:
    """Numbers to places, with the power of ten that the axis is written in."""

    def __init__(self, low: float, high: float, start: float, end: float, margin: bool):
        wide_low, wide_high, self.unit, self.power = _axis(low, high)
        ends = (wide_low, wide_high) if margin else (low / self.unit, high / self.unit)
        self.low, self.high, self.start, self.end = *ends, start, end

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Places, held at the ends of the axis where a number is beyond them."""
        values = np.clip(np.asarray(values, float) / self.unit, self.low, self.high)
        share = (values - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * share

    def ticks(self, most: int) -> list[tuple[float, str]]:
        locator = MaxNLocator(most, steps=[1, 2, 5, 10])
        found = np.asarray(locator.tick_values(self.low, self.high))
        room = 1e-9 * (self.high - self.low)
        inside = found[(found >= self.low - room) & (found <= self.high + room)]
        places = self(inside * self.unit)
        return list(zip(map(float, places), _texts(inside), strict=True))


def _texts(ticks: np.ndarray) -> list[str]:
    """All with as many decimals as the step between them asks for."""
    step = float(ticks[1] - ticks[0]) if len(ticks) > 1 else 1.0
    decimals = next(d for d in count(max(0, -floor(log10(step)))) if _whole(step * 10.0**d))
    return [f"{tick + 0.0:.{decimals}f}".replace("-", "−") for tick in ticks]


def _whole(value: float) -> bool:
    return abs(value - round(value)) < 1e-6 * max(value, 1)


def _joined(x: np.ndarray, y: np.ndarray) -> str:
    runs = _runs(np.isfinite(x) & np.isfinite(y))
    return "".join(f"M{'L'.join(_points(x[a:b], y[a:b]))}" for a, b in runs)


def _runs(holds: np.ndarray) -> list[tuple[int, int]]:
    """Stretches in which a condition holds."""
    changes = np.flatnonzero(np.diff(np.concatenate([[0], holds.astype(int), [0]])))
    return [(int(a), int(b)) for a, b in zip(changes[::2], changes[1::2], strict=True)]


def _points(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> list[str]:
    return [f"{_short(a)},{_short(b)}" for a, b in zip(x, y, strict=True)]


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
