"""A model of the user's own on data that it has not seen: the same scores, page and figures."""

import time
from collections.abc import Callable

import jax
import numpy as np

from ..data import Trajectories
from ..epinet import SPENN
from ..forecast import evaluate
from ..generic import Coordinates
from ..laws import in_double
from ..machine import environment
from ..model import Model
from . import _results as results
from ._layout import Layout
from ._parts import Part
from ._run import Outcome
from ._scene import Scene
from ._views import show

STARTS, STEPS = 5, 100
"""Of rollouts that are audited without any data."""


def evaluate_model(
    model: Model,
    data: Trajectories,
    title: str,
    samples: int,
    seed: int,
    integrator: str = "rk4",
    report: Callable[[str, int, int, float], None] = lambda stage, done, total, loss: None,
) -> Outcome:
    """Forecast every trajectory from its first state, and score model and base."""
    calibration = model.calibration
    if calibration is None:
        raise ValueError("the model is not calibrated: run spenn calibrate first.")
    data = data.on_one_grid()
    layout = Layout.of(_variables(model), model.method.domain)
    conformal, name = calibration.on(data.times), _name(model)
    parts, how = {}, (model.integrator_for(data.times, integrator), report)
    if isinstance(model.method, SPENN):
        parts["base"] = _part("base", model.base, layout, data, 1, seed, *how)
    parts[name] = _part(name, model, layout, data, samples, seed, *how, conformal)
    steps = {"integrator": integrator, "longest_step": model.longest_step}
    document = _document(model, layout, data, title, seed, parts) | steps
    about = title, _labels(model, layout), _time_label(model)
    scene = Scene.of(*about, layout, data, conformal.trajectories)
    return Outcome(document, {}, scene, parts)


def audit_rollouts(
    model: Model, integrator: str, data: Trajectories | None, samples: int, seed: int
) -> dict:
    """Both laws over every step of every sample, in double precision, in the steps of forecasts.

    Rollouts start from the trajectories given, at their times, or from random states that spread as
    far as the data do, in steps as long as the model's longest, or a twentieth of the time in which
    the data change by their size if that is longer.
    """
    with jax.enable_x64(True):
        method, coordinates = in_double((model.method, model.coordinates))
        data = _random_starts(model, coordinates, seed) if data is None else data.on_one_grid()
        indices = method.draw(samples, key=jax.random.key(seed))
        chosen = model.integrator_for(data.times, integrator)
        found = evaluate(method, coordinates, data, indices, required=0, integrator=chosen)
    records = samples * int(np.sum(data.lengths - 1))
    return {"records": records, **results.laws(found.summary, found.diverged)}


def _random_starts(model: Model, coordinates: Coordinates, seed: int) -> Trajectories:
    exact, rng = coordinates.on_host(), np.random.default_rng(seed)
    start = exact.unscaled(rng.normal(size=(STARTS, 1, len(model.names))))
    step = max(float(exact.time_unit) / 20, model.longest_step or 0)
    times = step * np.arange(STEPS + 1)
    states = np.repeat(start, len(times), 1)
    return Trajectories(times, states, np.zeros_like(states), model.names)


def _part(name, model, layout, data, samples, seed, integrator, report, conformal=None) -> Part:
    start = time.perf_counter()
    evaluation = evaluate(
        model.method,
        model.coordinates,
        data,
        model.draw(samples, seed),
        integrator=integrator,
        report=lambda done: report(f"forecast {name}", done, len(data), np.nan),
    )
    seconds, summary = time.perf_counter() - start, evaluation.summary
    truth = layout.forecast(data)
    entry = {
        "samples": samples,
        **({"prior_scale": model.prior_scale} if conformal is not None else {}),
        **results.accuracy(layout, summary.mean, truth),
        **({} if conformal is None else results.uncertainty(layout, summary, truth, conformal)),
        "laws": results.laws(summary, evaluation.diverged),
        "seconds": {"forecast": seconds, "total": seconds},
    }
    return Part(entry, *show(name, layout, data, evaluation, summary, conformal))


def _document(model, layout, data, title, seed, parts) -> dict:
    unknown = dict.fromkeys(layout.names)
    return {
        "system": title,
        "seed": seed,
        "environment": environment(),
        "data": {
            "train": len(model.provenance.trajectories),
            "calibration": model.calibration.conformal.trajectories,
            "test": len(data),
            "steps": int(data.lengths.max()) - 1,
        },
        "floor": {"rl2e": unknown, "mae": unknown},
        "methods": {name: part.entry for name, part in parts.items()},
        "paper": {},
    }


def _name(model: Model) -> str:
    kinds = {"DeepEnsemble": "deep-ensemble", "MCDropout": "mc-dropout", "Deterministic": "base"}
    return kinds.get(type(model.method).__name__, f"spenn-{model.config.index}")


def _variables(model: Model) -> tuple[str, ...]:
    """Names of the variables; entries of a field are called `u[0]`, `u[1]`, ..."""
    if model.method.domain.cells == 1:
        return model.names
    return tuple(dict.fromkeys(name.partition("[")[0] for name in model.names))


def _labels(model: Model, layout: Layout) -> tuple[str, ...]:
    units = dict(zip(model.names, model.units, strict=False))
    given = ((name, units.get(name)) for name in layout.names)
    return tuple(f"{name} ({unit})" if unit else name for name, unit in given)


def _time_label(model: Model) -> str:
    return f"time ({model.time_unit})" if model.time_unit else "time"
