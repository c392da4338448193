"""Integrators on a trained model: both laws over every step of every sample, accuracy, and cost.

    python benchmarks/integrators.py oscillator runs/demo/model.spenn [--every 1,5,20]
        [--samples 2000] [--trajectories 40] [--precisions float32,float64] [--untimed]
        [--picture laws.png]

`--every` takes steps of so many records; with `--finer 4` there are four records where there was
one, for shorter steps. Error is the median relative error of the mean forecast against the
converged reference. Cost is that of the rollouts of one chunk, without compilation and scores, in
nanoseconds per sample and record as the system has them, however many steps that takes.
"""

import argparse
import time
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import jax
import numpy as np

import spenn
from spenn.calibrate import relative_l2_error
from spenn.data import Trajectories
from spenn.experiment import _results as results
from spenn.forecast import chunk_size, driving, ensemble, evaluate
from spenn.integrate import integrator
from spenn.laws import in_double
from spenn.systems import SYSTEMS, simulate

HEAD = "integrator | step | precision | energy drift | entropy step | violations | lost | sweeps | "
HEAD += "error | ns per record"


def main() -> None:
    """Print one line of a table per integrator, step and precision."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("model", type=Path)
    parser.add_argument("--integrators", default="rk4,discrete-gradient")
    parser.add_argument("--every", default="1")
    parser.add_argument("--finer", type=int, default=1)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--trajectories", type=int, default=10)
    parser.add_argument("--precisions", default="float32,float64")
    parser.add_argument("--untimed", action="store_true", help="leave the cost out")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    system, model = SYSTEMS[options.system], spenn.load(options.model)
    cases = system.draw(np.random.default_rng(1), options.trajectories)
    records = options.finer * (system.records - 1) + 1
    dense = replace(system, dt=system.dt / options.finer, records=records)
    data = simulate(dense, cases, "converged")
    print(f"\n{system.title}, {options.samples} samples of {len(data)} trajectories, on", end=" ")
    print(f"{jax.devices()[0].device_kind}\n\n| {HEAD} |\n|" + "---|" * HEAD.count("|") + "---|")
    audits = {}
    for precision in options.precisions.split(","):
        for every in map(int, options.every.split(",")):
            for name in options.integrators.split(","):
                audits[precision, every, name] = line(model, data, name, every, precision, options)
    if options.picture:
        draw(system, audits, options.picture)


def line(model, data, name, every, precision, options):
    """Roll out and score, roll out once more against the clock, and print what was seen."""
    with jax.enable_x64(precision == "float64"):
        if precision == "float64":
            parts = in_double((model.method, model.coordinates))
            model = replace(model, method=parts[0], coordinates=parts[1])
        coarse = thinned(data, every)
        method, coordinates = model.method, model.coordinates
        indices = model.draw(options.samples, 1)
        chosen = integrator(name)
        made = evaluate(method, coordinates, coarse, indices, integrator=chosen, required=0)
        cost = ""
        if not options.untimed:
            step = clock(method, coordinates, coarse, indices, chosen)
            cost = f"{step * options.finer / every:.0f}"
    laws = results.laws(made.summary, made.diverged)
    free = model.method.domain.free(coarse.states.shape[-1])
    pairs = zip(made.summary.mean, coarse.states[:, 1:, free], strict=True)
    error = np.nanmedian([np.nanmedian(relative_l2_error(m, t)) for m, t in pairs])
    violations = laws["energy_violations"] + laws["entropy_violations"]
    sweeps = f"{laws['mean_sweeps']:.1f}, {laws['max_sweeps']:.0f}" if "max_sweeps" in laws else ""
    print(
        f"| {name} | {every / options.finer:g} | {precision} | {laws['max_energy_drift']:.1e} | "
        f"{laws['min_entropy_step']:.1e} | {violations} | {laws['diverged']} | {sweeps} | "
        f"{error:.2e} | {cost} |",
        flush=True,
    )
    audit = made.summary.audit
    energy = np.nanmax(audit.energy_high) - np.nanmin(audit.energy_low)
    entropy = np.nanmax(audit.entropy_high) - np.nanmin(audit.entropy_low)
    drift, step = np.nanmax(audit.energy_drift, 0), np.nanmin(audit.entropy_step, 0)
    return coarse.times, drift / energy, step / entropy


def clock(method, coordinates, data: Trajectories, indices, chosen) -> float:
    """Nanoseconds per step of a sample, in one chunk of a size that is compiled already."""
    shape = len(indices), len(data.times), data.states.shape[-1], method.domain.cells
    few = data[: chunk_size(len(data), *shape)]
    drive = driving(method.domain, coordinates, few)
    start = time.perf_counter()
    for _ in ensemble(
        method, coordinates, few.states[:, 0], few.times, indices, drive, None, chosen
    ):
        pass
    steps = len(few) * len(indices) * (len(data.times) - 1)
    return 1e9 * (time.perf_counter() - start) / steps


def thinned(data: Trajectories, every: int) -> Trajectories:
    """One record of so many."""
    return replace(
        data,
        times=data.times[::every],
        states=data.states[:, ::every],
        derivatives=data.derivatives[:, ::every],
    )


def draw(system, audits, path: Path) -> None:
    """Energy error and smallest entropy step over time, in double precision where there is any."""
    from matplotlib.figure import Figure

    precision = max(precision for precision, *_ in audits)
    shown = {key[1:]: value for key, value in audits.items() if key[0] == precision}
    steps = sorted({every for every, _ in shown})
    figure = Figure(figsize=(3.6 * len(steps), 5.2), layout="constrained")
    axes = figure.subplots(2, len(steps), sharex=True, sharey="row", squeeze=False)
    for column, every in enumerate(steps):
        here = [(name, *seen) for (step, name), seen in shown.items() if step == every]
        # Dashes show what lies beneath them.
        for style, (name, times, drift, step) in zip(cycle(("-", "--")), here, strict=False):
            axes[0, column].semilogy(times[1:], np.maximum(drift[1:], 1e-17), style, label=name)
            axes[1, column].plot(times[1:], step, style, label=name)
        words = "the step of the data" if every == 1 else f"{every} times that step"
        axes[0, column].set_title(words)
        axes[1, column].set_xlabel(system.time_label)
        axes[1, column].set_yscale("symlog", linthresh=1e-12)
        axes[1, column].axhline(0, color="black", lw=0.8)
    axes[0, 0].set_ylabel("largest energy error / range")
    axes[1, 0].set_ylabel("smallest entropy step / range")
    axes[0, 0].legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
