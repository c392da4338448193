"""One run: data, base, epinets, forecasts, calibration, scores."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from ..baselines import DeepEnsemble, fit_dropout, fit_ensemble
from ..calibrate import Conformal
from ..epinet import SPENN
from ..fitting import add_uncertainty, fit_deterministic
from ..forecast import evaluate
from ..generic import Coordinates, Deterministic
from ..integrate import divided
from ..integrate import integrator as by_name
from ..machine import Clock, environment
from ..model import Calibration, Model
from ..physics import Physics
from ..systems import SYSTEMS, System
from . import _results as results
from ._config import RunConfig
from ._data import RunData, make_data
from ._layout import Layout
from ._parts import Part, Parts
from ._rehearsal import Rehearsal
from ._scene import Scene
from ._views import show

Report = Callable[[str, int, int, float], None]


@dataclass(frozen=True)
class Outcome:
    """All that a run leaves behind; models and parts are those of its methods."""

    results: dict
    models: dict[str, Model]
    scene: Scene
    parts: dict[str, Part]


def run(
    config: RunConfig,
    report: Report = lambda stage, done, total, loss: None,
    out: Path | None = None,
) -> Outcome:
    """Run one system from data to scores; what was done before in the folder is not redone."""
    by_name(config.integrator)  # refuses what is unknown or not installed before any work is done
    clock, kept = Clock(), Parts(out, config)
    system = SYSTEMS[config.system]
    with clock.stage("data"):
        data = make_data(system, config)
    layout = Layout.of(system.names, system.domain())
    models, parts = {}, {}

    def finish(name, make):
        found = kept.get(name)
        models[name], parts[name] = found or make(kept.training(name))
        if found is None:
            kept.put(name, models[name], parts[name])

    finish("base", lambda folder: _deterministic(layout, data, config, clock, report, folder))
    floor = _floor(system, layout, data, models["base"], config.integrator)
    for method in config.methods:
        finish(
            method,
            lambda folder, method=method: _probabilistic(
                method, models["base"], parts["base"], layout, data, config, clock, report, folder
            ),
        )
    entries = {name: part.entry for name, part in parts.items()}
    step = models["base"].longest_step
    document = _document(system, config, data, floor, entries) | {"longest_step": step}
    scene = Scene.of(
        system.title, system.labels, system.time_label, layout, data.test, len(data.calibration)
    )
    return Outcome(document, models, scene, parts)


def _floor(system: System, layout: Layout, data: RunData, base: Model, integrator: str) -> dict:
    """Exact physics through the same protocol: in the model's steps, in the same precision."""
    exact = Deterministic(system.exact().blocks)
    units = Coordinates.identity(data.test.states.shape[-1])
    chosen = divided(by_name(integrator), data.test.times, base.longest_step)
    summary = evaluate(exact, units, data.test, jnp.zeros((1, 0)), integrator=chosen).summary
    scores = results.accuracy(layout, summary.mean, layout.forecast(data.test))
    scores["rl2e"] = {name: value["median"] for name, value in scores["rl2e"].items()}
    return scores


def _deterministic(
    layout: Layout, data: RunData, config, clock: Clock, report: Report, folder: Path | None
):
    """The base alone, trained while the rest is compiled."""
    rehearsal = Rehearsal(config, data)

    def base_report(stage, steps, loss):
        # The first report means that the base is compiled: from here on the host is idle.
        rehearsal.start()
        report("base", steps, config.fit.steps, loss)

    physics = Physics(domain=SYSTEMS[config.system].domain())
    with clock.stage("train_base"):
        base = fit_deterministic(data.train, config.seed, config.fit, physics, base_report, folder)
    rehearsal.wait()
    with clock.stage("forecast_base"):
        evaluation = evaluate(
            base.method,
            base.coordinates,
            data.test,
            base.draw(1),
            integrator=base.integrator_for(data.test.times, config.integrator),
        )
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
    return base, Part(entry, *show("base", layout, data.test, evaluation, summary))


def _probabilistic(
    method: str,
    base: Model,
    base_part: Part,
    layout: Layout,
    data: RunData,
    config: RunConfig,
    clock: Clock,
    report: Report,
    folder: Path | None,
):
    """Train one method, forecast with it, calibrate and score it."""
    compiled, stages = clock.compile, (f"train {method}", f"forecast {method}")
    with clock.stage(stages[0]):
        model = _train(method, base, data, config, report, folder)
        model = replace(model, longest_step=base.longest_step)
    samples = model.method.members if isinstance(model.method, DeepEnsemble) else config.samples
    everything = data.forecast
    with clock.stage(stages[1]):
        evaluation = evaluate(
            model.method,
            model.coordinates,
            everything,
            model.draw(samples, config.seed),
            keep=len(data.calibration),
            required=len(data.calibration) + len(data.test),
            integrator=model.integrator_for(everything.times, config.integrator),
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
        "laws": results.laws(*data.audited(evaluation, inside=True)),
        "laws_outside": results.laws(*data.audited(evaluation, inside=False)),
        "seconds": _seconds(model, base_part, clock, *stages, clock.compile - compiled),
    }
    model = replace(model, calibration=Calibration(data.test.times, conformal))
    return model, Part(entry, *show(method, layout, data.test, evaluation, test, conformal))


def _train(
    method: str,
    base: Model,
    data: RunData,
    config: RunConfig,
    report: Report,
    folder: Path | None,
) -> Model:
    """One trained model, by the name of its method."""
    fit, physics = config.fit, Physics(domain=SYSTEMS[config.system].domain())
    baselines = {
        "deep-ensemble": (fit_ensemble, fit.member_steps),
        "mc-dropout": (fit_dropout, fit.steps),
    }
    if method in baselines:
        train, total = baselines[method]
        return train(
            data.train,
            config.seed,
            fit,
            physics,
            lambda _, n, loss: report(method, n, total, loss),
            folder,
        )
    fit = replace(fit, index=method.removeprefix("spenn-"))
    return add_uncertainty(
        base,
        data.train,
        config.seed,
        fit,
        report=lambda stage, steps, loss: report(method, steps, fit.epinet_steps, loss),
        checkpoint=folder,
    )


def _seconds(
    model: Model, base: Part, clock: Clock, training: str, forecasting: str, compiling: float
) -> dict:
    """Times of one method; an S-PENN needs the base, a baseline does not."""
    train, forecast = clock.seconds[training], clock.seconds[forecasting]
    if isinstance(model.method, SPENN):
        parts = {"train_base": base.entry["seconds"]["train_base"], "train_epinet": train}
    else:
        parts = {"train": train}
    total = sum(parts.values()) + forecast
    return {**parts, "forecast": forecast, "compile": compiling, "total": total}


def _document(system: System, config: RunConfig, data: RunData, floor: dict, entries: dict) -> dict:
    return {
        "system": system.name,
        "preset": config.preset,
        "seed": config.seed,
        "environment": environment(),
        "reference": config.reference,
        "integrator": config.integrator,
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
