"""What figures and page draw of an inverse problem: limits of axes, bands and bars."""

from math import sqrt

import numpy as np

from .._inverse import InverseView, Panel
from ._drawing import _common, _extent

Limits = tuple[float, float]


def panel_limits(panel: Panel) -> dict[str, Limits]:
    """Of the ordinate by method: one for all, unless that would flatten one of them.

    All of truth, mean and measurements is inside; a band that is far wider than these is cut.
    """
    return _common({method: _limits(panel, method) for method in panel.estimates})


def _limits(panel: Panel, method: str) -> Limits:
    low, high = _extent(panel.truth, panel.measured, panel.estimates[method].mean)
    room = max(high - low, 1e-12)
    lower, upper = _extent(*band(panel, method))
    return widened(max(min(low, lower), low - room), min(max(high, upper), high + room))


def band(panel: Panel, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Two standard deviations below and above the mean."""
    mean, std = panel.estimates[method]
    return np.asarray(mean) - 2 * np.asarray(std), np.asarray(mean) + 2 * np.asarray(std)


def panel_reach(panel: Panel) -> Limits:
    """Of the abscissa."""
    return widened(*_extent(panel.at, panel.measured_at))


def ordinate(panel: Panel) -> str:
    """What a panel shows: a component has a name of its own, a cut says where it is."""
    return f"u at {panel.name}" if "=" in panel.name else panel.name


def bars(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Heights and edges of a histogram: about as many bars as the root of the samples."""
    finite = np.asarray(samples, float)
    finite = finite[np.isfinite(finite)]
    count = int(np.clip(round(sqrt(finite.size)), 8, 40))
    return np.histogram(finite, count, widened(*_extent(finite)))


def parameter_limits(view: InverseView, name: str, truth: float | None) -> dict[str, Limits]:
    """Of the abscissa of histograms by method: one for all, unless that would flatten one."""
    known = np.array([] if truth is None else [truth], float)
    found = {
        method: samples[name] for method, samples in view.parameters.items() if name in samples
    }
    return _common({m: widened(*_extent(s, known)) for m, s in found.items()})


def widened(low: float, high: float) -> Limits:
    """Limits with something between them."""
    room = 1e-9 * max(abs(low), abs(high))
    half = 0.05 * max(abs(low), abs(high)) or 0.5
    return (low, high) if high - low > room else (low - half, high + half)
