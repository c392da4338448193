"""Fields over space and time: forecast, reference, error, and uncertainty raw and calibrated."""

import numpy as np
from matplotlib.figure import Figure

from .._view import FieldView, MethodView, RunView
from ._drawing import DPI, QUIET, _header, _number


def draw_fields(view: RunView) -> dict[str, Figure]:
    """One figure per method that has fields to show."""
    if view.field_truth is None:
        return {}
    shown = [(m, m.fields) for m in view.methods if m.fields is not None and m.uncertain]
    return {f"fields-{m.name}": _draw(view, m, fields) for m, fields in shown}


def _draw(view: RunView, method: MethodView, fields: FieldView) -> Figure:
    assert view.field_truth is not None
    rows = _rows(view.field_truth, fields)
    columns = len(view.names)
    figure = Figure(figsize=(3.3 * columns + 0.8, 2.1 * len(rows) + 1.0), dpi=DPI)
    _header(figure, _finding(view, fields), f"{view.title}, one test run, {method.name}")
    axes = figure.subplots(len(rows), columns, sharex=True, sharey=True, squeeze=False)
    for i, (title, panels, colours) in enumerate(rows):
        for j, panel in enumerate(panels):
            # Forecast and reference share their colours, so that they can be compared.
            values = rows[1][1][j] if i == 0 else panel
            low, high = _limits(values)
            image = axes[i, j].imshow(
                panel.T,
                origin="lower",
                aspect="auto",
                extent=(view.times[0], view.times[-1], 0, 1),
                cmap=colours,
                vmin=low,
                vmax=high,
                interpolation="nearest",
            )
            bar = figure.colorbar(image, ax=axes[i, j], pad=0.02)
            bar.ax.tick_params(labelsize=9)
            bar.formatter.set_powerlimits((-2, 3))  # type: ignore[attr-defined]
            axes[i, j].set_title(
                view.labels[j] if i == 0 else "", fontweight="bold", fontsize=11, y=1.0
            )
        axes[i, 0].set_ylabel(f"{title}\nplace x / l", fontsize=10)
    for ax in axes[-1]:
        ax.set_xlabel(view.time_label, color=QUIET)
        ax.xaxis.get_major_formatter().set_powerlimits((-2, 3))
    return figure


def _rows(truth: list[np.ndarray], fields: FieldView) -> list[tuple[str, list[np.ndarray], str]]:
    errors = [np.abs(m - t) for m, t in zip(fields.mean, truth, strict=True)]
    rows = [
        ("forecast", fields.mean, "viridis"),
        ("reference", truth, "viridis"),
        ("absolute error", errors, "magma"),
        ("std of samples", fields.std, "magma"),
    ]
    if fields.reach is not None:
        rows.append(("calibrated 95 %", fields.reach, "magma"))
    return rows


def _limits(values: np.ndarray) -> tuple[float, float]:
    """All but the most extreme values, a few of which would take the colours from the rest."""
    finite = values[np.isfinite(values)]
    low, high = np.quantile(finite, (0.002, 0.998)) if finite.size else (0.0, 1.0)
    return float(low), float(high)


def _finding(view: RunView, fields: FieldView) -> str:
    assert view.field_truth is not None
    pairs = zip(fields.mean, view.field_truth, strict=True)
    errors = [float(np.linalg.norm(m - t) / np.linalg.norm(t)) for m, t in pairs]
    listed = ", ".join(f"{n} {_number(e)}" for n, e in zip(view.names, errors, strict=True))
    return f"Relative L2 errors: {listed}"
