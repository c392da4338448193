"""From finished parts to what figures and page show."""

from dataclasses import replace

import numpy as np

from ..data import Trajectories
from ..forecast import LEVELS, Evaluation, Summary
from ..report import FieldView, MethodView, PageMethod, PageView, RunView
from ._layout import Layout
from ._parts import Part
from ._scene import Scene, shown_trajectories

WIDE = LEVELS.index(0.95)
SHOWN_DRAWS = 12


def run_view(scene: Scene, results: dict, parts: dict[str, Part]) -> RunView:
    """What the figures show: the first test trajectory, and all scores."""
    layout, truth = scene.layout, scene.truth[0]
    return RunView(
        title=scene.title,
        names=layout.names,
        labels=scene.labels,
        times=scene.times,
        truth=truth[:, layout.shown],
        calibration_trajectories=scene.calibration_trajectories,
        floor_rl2e=np.array([results["floor"]["rl2e"][n] for n in layout.names], float),
        methods=tuple(_method_view(layout, part) for part in parts.values()),
        time_label=scene.time_label,
        field_truth=layout.split(truth) if layout.extended else None,
    )


def page_view(scene: Scene, results: dict, parts: dict[str, Part]) -> PageView:
    """What `report.html` shows: several test trajectories, entry by entry."""
    layout = scene.layout
    places = None if layout.places is None else tuple(layout.split(layout.places))
    return PageView(
        results=results,
        title=scene.title,
        labels=scene.labels,
        time_label=scene.time_label,
        times=scene.times,
        levels=LEVELS,
        starts=tuple(int(np.argmax(layout.variables == i)) for i in range(len(layout.names))),
        truth=scene.truth,
        methods=tuple(part.shown for part in parts.values()),
        places=places,
        place_label="place x / l",
    )


def _method_view(layout: Layout, part: Part) -> MethodView:
    entry, shown = part.entry, part.shown
    mean, names = shown.mean[0], layout.names
    std = np.zeros_like(mean) if shown.std is None else shown.std[0]
    reach = None if shown.reach is None else _half_width(shown.reach[WIDE], std)
    coverage = entry.get("coverage", {})
    curves = {
        kind: np.array([coverage[kind][n] for n in names]).T if coverage else None
        for kind in ("raw", "calibrated")
    }
    return MethodView(
        name=shown.name,
        samples=entry["samples"],
        mean=mean[:, layout.shown],
        std=std[:, layout.shown],
        lower=None if reach is None else (mean - reach)[:, layout.shown],
        upper=None if reach is None else (mean + reach)[:, layout.shown],
        draws=None if part.draws is None else part.draws[..., layout.shown],
        levels=np.array(LEVELS) if coverage else None,
        coverage_raw=curves["raw"],
        coverage_calibrated=curves["calibrated"],
        coverage_simultaneous=np.array(coverage["simultaneous"]) if coverage else None,
        rl2e=np.array([entry["rl2e"][n]["per_trajectory"] for n in names]).T,
        energy_rate=shown.energy_rate,
        entropy_rate_min=shown.entropy_rate_min,
        fields=_field_view(layout, mean, std, reach) if layout.extended else None,
    )


def _field_view(layout: Layout, mean, std, reach) -> FieldView:
    split = layout.split
    return FieldView(split(mean), split(std), None if reach is None else split(reach))


def _half_width(reach, std):
    """Infinite where the reach is, also without spread."""
    return np.where(np.isinf(reach), reach, np.where(np.isinf(reach), 0, reach) * std)


def show(
    name: str,
    layout: Layout,
    data: Trajectories,
    evaluation: Evaluation,
    test: Summary,
    conformal=None,
) -> tuple[PageMethod, np.ndarray | None]:
    """Forecasts of the first few test trajectories, from t = 0 on, and draws of the first one.

    `evaluation` holds the samples of that one, `test` the summaries of all.
    """
    count = shown_trajectories(layout, data)
    mean, std = test.mean[:count], test.std[:count]
    initial = data.states[:count, :1, layout.free].astype(mean.dtype)
    laws, finite = evaluation.laws, np.isfinite(evaluation.states).all((1, 2))
    energy_range = float(test.audit.energy_high.max() - test.audit.energy_low.min())
    shown = PageMethod(
        name=name,
        mean=np.concatenate([initial, mean], 1),
        energy_rate=np.quantile(laws.energy_rate[finite], (0.025, 0.5, 0.975), 0) / energy_range,
        entropy_rate_min=laws.entropy_rate[finite]
        .reshape(finite.sum(), len(data.times), -1)
        .min((0, 2)),
    )
    if conformal is None:
        return shown, None
    reach = np.stack([np.asarray(conformal.threshold(level)) for level in LEVELS])
    shown = replace(
        shown,
        std=np.concatenate([np.zeros_like(initial), std], 1),
        reach=np.concatenate([np.zeros_like(reach[:, :1]), reach], 1),
    )
    return shown, evaluation.states[finite][:SHOWN_DRAWS, :, layout.free]
