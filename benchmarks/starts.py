"""Starts of stage one side by side to the end: when does their loss tell which is the best?

    python benchmarks/starts.py viscoplastic width=30,steps=6000 [--seeds 3] [--reference converged]

Values are those of TOML, over the configuration of the quick preset.
"""

import argparse
from dataclasses import replace

import jax
import numpy as np

from epinets import changed
from spenn.experiment import REFERENCES, preset
from spenn.experiment._data import make_data
from spenn.fitting import hold_out, learnable, prepare
from spenn.generic import is_learned
from spenn.networks import split
from spenn.physics import Physics
from spenn.systems import SYSTEMS
from spenn.training import Schedule, base_loss, separate, stack
from spenn.training._loop import advance, begin

SHARES = (0.05, 0.1, 0.2, 0.5, 0.75, 1)


def main() -> None:
    """Print one row per seed and share of the steps, with the loss of every start."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("changes", nargs="?", default="", metavar="name=value[,name=value...]")
    parser.add_argument("--reference", choices=REFERENCES, default="converged")
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_intermixed_args()
    run = replace(preset("quick", options.system), reference=options.reference)
    run = replace(run, fit=changed(run.fit, options.changes))
    head = " | ".join(f"start {i}" for i in range(run.fit.races))
    print(f"| seed | steps | {head} |\n|" + "---|" * (2 + run.fit.races))
    for seed in range(options.seeds):
        for steps, losses in trace(replace(run, seed=seed)):
            print(
                f"| {seed} | {steps} | " + " | ".join(f"{x:.1e}" for x in losses) + " |", flush=True
            )


def trace(run):
    """Steps, and the recent mean loss of every start, as training goes on."""
    system, fit = SYSTEMS[run.system], run.fit
    physics = Physics(domain=system.domain())
    train, _ = hold_out(make_data(system, run).train, fit, run.seed)
    coordinates, samples = prepare(learnable(train, fit, physics), fit, physics)
    start_key, key = split(jax.random.key(run.seed), 2)  # as in `fit_base`
    keys, size = split(start_key, fit.races), samples.states.shape[1]
    starts = [physics.blocks(coordinates, size, fit.width, fit.depth, key=k) for k in keys]
    weights, shared = separate(starts, is_learned)
    schedule, progress = Schedule.of_base(fit, physics.domain), begin(stack(weights))
    for until in np.array(SHARES) * fit.steps:
        progress, losses = advance(
            base_loss,
            progress,
            shared,
            samples,
            until=int(until),
            total=fit.steps,
            batch=schedule.batch,
            learning_rate=schedule.learning_rate,
            key=key,
            report=lambda steps, loss: None,
        )
        yield int(until), losses


if __name__ == "__main__":
    main()
