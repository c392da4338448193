"""One run: data, base, epinets, forecasts, calibration, scores."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from .. import __version__
from ..baselines import DeepEnsemble, fit_dropout, fit_ensemble
from ..calibrate import Conformal
from ..epinet import SPENN
from ..fitting import add_uncertainty, fit_deterministic
from ..forecast import LEVELS, Evaluation, Summary, evaluate
from ..generic import Coordinates, Deterministic
from ..model import Calibration, Model
from ..report import FieldView, MethodView, RunView
from ..systems import SYSTEMS, System
from ..training import Physics
from . import _results as results
from ._clock import Clock
from ._config import RunConfig
from ._data import RunData, make_data
from ._layout import Layout
from ._rehearsal import Rehearsal

Report = Callable[[str, int, int, float], None]
SHOWN_DRAWS = 12


@dataclass(frozen=True)
class Outcome:
    """All that a run leaves behind."""

    results: dict
    model: Model
    view: RunView


def run(config: RunConfig, report: Report = lambda stage, done, total, loss: None) -> Outcome:
    """Run one system from data to scores."""
    clock = Clock()
    system = SYSTEMS[config.system]
    with clock.stage("data"):
        data = make_data(system, config)
    rehearsal = Rehearsal(config, data)
    with clock.stage("train_base"):
        total = config.fit.steps

        def base_report(stage, steps, loss):
            # The first report means that the base is compiled: from here on the host is idle.
            rehearsal.start()
            report("base", steps, total, loss)

        physics = Physics(domain=system.domain())
        base = fit_deterministic(data.train, config.seed, config.fit, physics, base_report)
    rehearsal.wait()
    layout = Layout.of(system.names, system.domain())
    floor = _floor(system, layout, data)
    entries, views, model = {}, [], base
    entries["base"], view = _deterministic(base, layout, data, clock)
    views.append(view)
    for method in config.methods:
        model, entries[method], view = _probabilistic(
            method, base, layout, data, config, clock, report
        )
        views.append(view)
    return Outcome(
        _document(system, config, data, floor, entries),
        model,
        _run_view(system, layout, data, floor, views),
    )


def _floor(system: System, layout: Layout, data: RunData) -> dict:
    """Exact physics through the same protocol: RK4 at the data's step, in the same precision."""
    exact = Deterministic(system.exact().blocks)
    units = Coordinates.identity(data.test.states.shape[-1])
    summary = evaluate(exact, units, data.test, jnp.zeros((1, 0))).summary
    scores = results.accuracy(layout, summary.mean, layout.forecast(data.test))
    scores["rl2e"] = {name: value["median"] for name, value in scores["rl2e"].items()}
    return scores


def _deterministic(base: Model, layout: Layout, data: RunData, clock: Clock):
    with clock.stage("forecast_base"):
        evaluation = evaluate(base.method, base.coordinates, data.test, base.draw(1))
    summary = evaluation.summary
    entry = {
        "samples": 1,
        **results.accuracy(layout, summary.mean, layout.forecast(data.test)),
        "laws": results.laws(summary, evaluation.diverged),
        "seconds": {
            "train_base": clock.seconds["train_base"],
            "forecast": clock.seconds["forecast_base"],
        },
    }
    return entry, _method_view("base", layout, data, entry, evaluation, summary, None)


def _probabilistic(
    method: str, base: Model, layout: Layout, data: RunData, config, clock: Clock, report: Report
):
    """Train one method, forecast with it, calibrate and score it."""
    compiled, stages = clock.compile, (f"train {method}", f"forecast {method}")
    with clock.stage(stages[0]):
        model = _train(method, base, data, config, report)
    samples = model.method.members if isinstance(model.method, DeepEnsemble) else config.samples
    everything = data.forecast
    with clock.stage(stages[1]):
        evaluation = evaluate(
            model.method,
            model.coordinates,
            everything,
            model.draw(samples, config.seed),
            keep=len(data.calibration),
            report=lambda done: report(f"forecast {method}", done, len(everything), np.nan),
        )
        calibration, test, outside = data.parts(evaluation.summary)
        conformal = Conformal.fit(
            jnp.asarray(calibration.mean),
            jnp.asarray(calibration.std),
            jnp.asarray(layout.forecast(data.calibration), float),
        )
    truth = layout.forecast(data.test)
    entry = {
        "samples": samples,
        **({"prior_scale": model.prior_scale} if isinstance(model.method, SPENN) else {}),
        **results.accuracy(layout, test.mean, truth),
        **results.uncertainty(layout, test, truth, conformal),
        "spread_outside": results.spread_ratio(layout, outside, test),
        "laws": results.laws(evaluation.summary, evaluation.diverged),
        "seconds": _seconds(model, clock, *stages, clock.compile - compiled),
    }
    model = replace(model, calibration=Calibration(data.test.times, conformal))
    return model, entry, _method_view(method, layout, data, entry, evaluation, test, conformal)


def _train(method: str, base: Model, data: RunData, config: RunConfig, report: Report) -> Model:
    """One trained model, by the name of its method."""
    fit, physics = config.fit, Physics(domain=SYSTEMS[config.system].domain())
    baselines = {
        "deep-ensemble": (fit_ensemble, fit.member_steps),
        "mc-dropout": (fit_dropout, fit.steps),
    }
    if method in baselines:
        train, total = baselines[method]
        return train(
            data.train, config.seed, fit, physics, lambda _, n, loss: report(method, n, total, loss)
        )
    fit = replace(fit, index=method.removeprefix("spenn-"))
    return add_uncertainty(
        base,
        data.train,
        config.seed,
        fit,
        report=lambda stage, steps, loss: report(method, steps, fit.epinet_steps, loss),
    )


def _seconds(model: Model, clock: Clock, training: str, forecasting: str, compiling: float) -> dict:
    """Times of one method; an S-PENN needs the base, a baseline does not."""
    train, forecast = clock.seconds[training], clock.seconds[forecasting]
    if isinstance(model.method, SPENN):
        parts = {"train_base": clock.seconds["train_base"], "train_epinet": train}
    else:
        parts = {"train": train}
    total = sum(parts.values()) + forecast
    return {**parts, "forecast": forecast, "compile": compiling, "total": total}


def _method_view(
    name, layout: Layout, data: RunData, entry, evaluation: Evaluation, test: Summary, conformal
):
    """What the figures show of one method: the first test trajectory, and all scores."""
    names, laws = layout.names, evaluation.laws
    finite = np.isfinite(evaluation.states).all((1, 2))
    mean, std = test.mean[0], test.std[0]
    initial = data.test.states[0][:1, layout.free]
    bounds = (None, None)
    if conformal is not None:
        bounds = conformal.interval(jnp.asarray(mean), jnp.asarray(std), 0.95)
        bounds = tuple(np.concatenate([initial, np.asarray(b)]) for b in bounds)
    coverage = entry.get("coverage", {})
    curves = {
        kind: np.array([coverage[kind][n] for n in names]).T if coverage else None
        for kind in ("raw", "calibrated")
    }
    audit = test.audit
    energy_range = float(audit.energy_high.max() - audit.energy_low.min())
    draws = evaluation.states[finite][:SHOWN_DRAWS, :, layout.free]
    mean, std = np.concatenate([initial, mean]), np.concatenate([np.zeros_like(initial), std])

    lower, upper = (None if b is None else b[:, layout.shown] for b in bounds)

    return MethodView(
        name=name,
        samples=entry["samples"],
        mean=mean[:, layout.shown],
        std=std[:, layout.shown],
        lower=lower,
        upper=upper,
        draws=draws[..., layout.shown] if conformal is not None else None,
        levels=np.array(LEVELS) if coverage else None,
        coverage_raw=curves["raw"],
        coverage_calibrated=curves["calibrated"],
        coverage_simultaneous=np.array(coverage["simultaneous"]) if coverage else None,
        rl2e=np.array([entry["rl2e"][n]["per_trajectory"] for n in names]).T,
        energy_rate=np.quantile(laws.energy_rate[finite], (0.025, 0.5, 0.975), 0) / energy_range,
        entropy_rate_min=laws.entropy_rate[finite].min(0),
        fields=_field_view(layout, mean, std, bounds) if layout.extended else None,
    )


def _field_view(layout: Layout, mean, std, bounds) -> FieldView:
    lower, upper = bounds
    reach = None if lower is None else layout.split((upper - lower) / 2)
    return FieldView(layout.split(mean), layout.split(std), reach)


def _run_view(
    system: System, layout: Layout, data: RunData, floor: dict, views: list[MethodView]
) -> RunView:
    truth = data.test.states[0][:, layout.free]
    return RunView(
        title=system.title,
        names=system.names,
        labels=system.labels,
        times=data.test.times,
        truth=truth[:, layout.shown],
        calibration_trajectories=len(data.calibration),
        floor_rl2e=np.array([floor["rl2e"][n] for n in system.names]),
        methods=tuple(views),
        time_label=system.time_label,
        field_truth=layout.split(truth) if layout.extended else None,
    )


def _document(system: System, config: RunConfig, data: RunData, floor: dict, entries: dict) -> dict:
    return {
        "system": system.name,
        "preset": config.preset,
        "seed": config.seed,
        "environment": {
            "spenn": __version__,
            "jax": jax.__version__,
            "device": jax.devices()[0].device_kind,
        },
        "reference": config.reference,
        "data": {
            "train": len(data.train),
            "calibration": len(data.calibration),
            "test": len(data.test),
            "outside": len(data.outside),
            "steps": system.records - 1,
            "dt": system.dt,
        },
        "floor": floor,
        "methods": entries,
        "paper": system.paper,
    }
