"""One run of an inverse problem: data, both stages or chains, and what they say."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..calibrate import relative_l2_error
from ..folders import number
from ..machine import Clock, environment
from ..report import Estimate, InverseView, Panel
from ._base import fit_base
from ._benchmark import BENCHMARKS, Benchmark, Curve
from ._epinet import attach
from ._hmc import HMCConfig, Sampler, require_blackjax
from ._problem import Problem

METHODS = ("epinet", "hmc")
Report = Callable[[str, int, int, float], None]


@dataclass(frozen=True)
class InverseRun:
    """One run of an inverse problem; written as `config.toml` beside its results."""

    problem: str
    methods: tuple[str, ...] = METHODS[:1]
    data: str | None = None
    samples: int | None = None
    chains: int = HMCConfig().chains
    warm_up: int = HMCConfig().warm_up
    draws: int = HMCConfig().draws
    seed: int = 0

    def __post_init__(self):
        """Refuse what cannot be run, with a sentence."""
        if self.problem not in BENCHMARKS:
            known = ", ".join(BENCHMARKS)
            raise ValueError(f"there is no problem {self.problem!r}; choose from {known}.")
        for method in self.methods:
            if method not in METHODS:
                known = ", ".join(METHODS)
                raise ValueError(f"there is no method {method!r}; choose from {known}, or all.")
        least = {"samples": 2, "chains": 1, "warm_up": 20, "draws": 4, "seed": 0}
        for name, smallest in least.items():
            value = getattr(self, name)
            if value is not None and value < smallest:
                raise ValueError(f"{name.replace('_', '-')} must be at least {smallest}.")


@dataclass(frozen=True)
class Answer:
    """What one method says: fields along the curves, parameters, and an entry of the results."""

    fields: list[np.ndarray]
    parameters: dict[str, np.ndarray]
    entry: dict[str, Any]


def run_inverse(config: InverseRun, report: Report = lambda *_: None) -> InverseView:
    """Solve one problem of the paper by one method or both."""
    if "hmc" in config.methods:
        require_blackjax()
    benchmark = BENCHMARKS[config.problem]()
    problem = benchmark.problem(config.seed, Path(config.data) if config.data else None)
    solve = {"epinet": _by_epinet, "hmc": _by_hmc}
    answers = {m: solve[m](benchmark, problem, config, report) for m in config.methods}
    results = {
        "problem": config.problem,
        "data": _data(problem, config),
        "seed": config.seed,
        "environment": environment(),
        "methods": {name: _entry(benchmark, answer) for name, answer in answers.items()},
        "paper": benchmark.paper,
    }
    panels = [_panel(i, c, benchmark, problem, answers) for i, c in enumerate(benchmark.curves)]
    return InverseView(results, panels, {name: a.parameters for name, a in answers.items()})


def _by_epinet(
    benchmark: Benchmark, problem: Problem, config: InverseRun, report: Report
) -> Answer:
    key = jax.random.key(config.seed)
    fitting, clock = benchmark.config, Clock()
    with clock.stage("train_base"):
        base = fit_base(
            problem,
            fitting,
            key=jax.random.fold_in(key, 0),
            report=lambda steps, loss: report("base", steps, fitting.steps, loss),
        )
    with clock.stage("train_epinet"):
        posterior = attach(problem, base, fitting, key=jax.random.fold_in(key, 1))
        jax.block_until_ready(posterior.epinets.raw.learn)
    count = benchmark.samples if config.samples is None else config.samples
    with clock.stage("sample"):
        indices = posterior.draw(count, key=jax.random.fold_in(key, 2))
        fields = [
            np.asarray(posterior.fields(jnp.asarray(c.points), indices))[:, :, c.component]
            for c in benchmark.curves
        ]
        parameters = {n: np.asarray(v) for n, v in posterior.constants(indices).items()}
    entry = {"samples": count, "index": posterior.dimension, "seconds": _seconds(clock)}
    return Answer(fields, parameters, entry)


def _by_hmc(benchmark: Benchmark, problem: Problem, config: InverseRun, report: Report) -> Answer:
    clock = Clock()
    hmc = HMCConfig(config.chains, config.warm_up, config.draws)

    def said(stage, done, total):
        report(f"hmc {stage}", done, total, np.nan)

    key = jax.random.fold_in(jax.random.key(config.seed), 3)
    sampler = Sampler.of(problem, benchmark.config, hmc)
    with clock.stage("warm_up"):
        warm = sampler.warm_up(key=jax.random.fold_in(key, 0), report=said)
    with clock.stage("sample"):
        chains = sampler.draw(warm, key=jax.random.fold_in(key, 1), report=said)
    count = benchmark.samples if config.samples is None else config.samples
    fields = [chains.fields(c.points, count)[:, :, c.component] for c in benchmark.curves]
    raw = jnp.asarray(chains.raw.reshape(-1, chains.raw.shape[-1]))
    parameters = {n: np.asarray(v) for n, v in problem.constants(raw).items()}
    gradients = hmc.chains * hmc.draws * hmc.leapfrogs
    entry = {
        "samples": len(raw),
        "chains": hmc.chains,
        "acceptance": chains.acceptance,
        "ess": dict(zip(parameters, map(number, chains.ess), strict=True)),
        "rhat": dict(zip(parameters, map(number, chains.rhat), strict=True)),
        "seconds": {**_seconds(clock), "per_gradient": clock.seconds["sample"] / gradients},
    }
    return Answer(fields, parameters, entry)


def _seconds(clock: Clock) -> dict[str, float]:
    return {**clock.seconds, "total": sum(clock.seconds.values())}


def _entry(benchmark: Benchmark, answer: Answer) -> dict:
    def error(curve: Curve, fields):
        return float(relative_l2_error(jnp.asarray(fields.mean(0)), jnp.asarray(curve.truth)))

    def inside(curve: Curve, fields):
        return float(np.mean(np.abs(fields.mean(0) - curve.truth) < 2 * fields.std(0)))

    def summary(name, values):
        low, high = np.quantile(values, [0.025, 0.975])
        return {
            "mean": float(values.mean()),
            "std": float(values.std()),
            "interval95": [float(low), float(high)],
            "truth": benchmark.truth[name],
        }

    pairs = list(zip(benchmark.curves, answer.fields, strict=True))
    return {
        **answer.entry,
        "rl2e": {curve.name: error(curve, fields) for curve, fields in pairs},
        "inside": {curve.name: inside(curve, fields) for curve, fields in pairs},
        "parameters": {n: summary(n, values) for n, values in answer.parameters.items()},
    }


def _data(problem: Problem, config: InverseRun) -> dict:
    source = problem.source
    return {
        "file": Path(config.data).name if config.data else None,
        "field": int(problem.field.known.sum()),
        "source": 0 if source is None else int(source.known.sum()),
        "noise": {"field": problem.field.noise, "source": None if source is None else source.noise},
    }


def _panel(number: int, curve: Curve, benchmark: Benchmark, problem: Problem, answers) -> Panel:
    points, values = problem.field.points, problem.field.values[:, curve.component]
    across = np.abs(points[:, 1:] - curve.points[0, 1:]).max(1, initial=0.0)
    shown = (across <= benchmark.near) & ~np.isnan(values)
    return Panel(
        curve.name,
        curve.axis,
        curve.at,
        curve.truth,
        points[shown, 0],
        values[shown],
        {
            name: Estimate(answer.fields[number].mean(0), answer.fields[number].std(0))
            for name, answer in answers.items()
        },
    )
