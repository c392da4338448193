"""Fine-tuning of a base on short rollouts, by gradients through the stepper.

    python benchmarks/rollouts.py chemical-motor runs/motor/model.spenn --reference converged
        16,500,1e-3 100,500,1e-3

Each variant is the number of records of a rollout, the number of steps of the optimiser and its
rate. The model must come from `spenn run` of that system with that reference: its data are made
again. Errors are mean absolute ones of the base's forecasts, per variable.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import spenn
from spenn.experiment import REFERENCES, preset
from spenn.experiment._data import make_data
from spenn.fitting import hold_out, learnable
from spenn.forecast import evaluate
from spenn.generic import Deterministic, Generic, is_learned
from spenn.integrate import rk4, rollout
from spenn.physics import Physics
from spenn.systems import SYSTEMS
from spenn.training import advance, begin, member, stack

JUDGED = 30  # trajectories that were learned from
SYSTEMS_OF_POINTS = ("oscillator", "chemical-motor")


def main() -> None:
    """Print one row for the base as it is, and one per variant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("system", choices=SYSTEMS_OF_POINTS)
    parser.add_argument("model", type=Path)
    parser.add_argument("variants", nargs="*", metavar="records,steps,rate")
    parser.add_argument("--reference", choices=REFERENCES, default="paper")
    parser.add_argument("--records-at-once", type=int, default=4096)
    options = parser.parse_intermixed_args()
    system, model = SYSTEMS[options.system], spenn.load(options.model).base
    seed = model.provenance.seed
    run = replace(preset("paper", options.system), reference=options.reference, seed=seed)
    data = make_data(system, run)
    learning, _ = hold_out(data.train, model.config, seed)
    learning = learnable(learning, model.config, Physics(domain=system.domain()))
    print(f"{system.title}, seed {seed}, on {jax.devices()[0].device_kind}\n")
    names = ", ".join(system.names)
    print(f"| rollouts | s | loss over the base's | learned from: {names} | test |")
    print("|" + "---|" * 5)
    row("none", model, learning, data.test, "", "1")
    for variant in options.variants:
        records, steps, rate = variant.split(",")
        began = time.perf_counter()
        tuned, losses = tune(
            model, learning, int(records), int(steps), float(rate), options.records_at_once
        )
        seconds = f"{time.perf_counter() - began:.0f}"
        what = f"{records} records, {steps} steps, rate {rate}"
        row(what, tuned, learning, data.test, seconds, f"{losses[-1]:.2f}")


def tune(model, learning, records, steps, rate, at_once):
    """The base after so many steps on rollouts, and the mean losses of stretches on the way.

    Errors count in units of what the base's own are, so that all variables start alike.
    """
    windows = cut(model.coordinates.on_host().scaled(learning.states), records)
    gaps = jnp.diff(jnp.asarray(learning.times[: records + 1], float)) / model.coordinates.time_unit
    windows = jnp.asarray(windows, float)

    def errors(blocks, window):
        return rollout(rk4, Generic(blocks).velocity, window[0], gaps)[1:] - window[1:]

    before = eqx.filter_jit(jax.vmap(errors, (None, 0)))(model.blocks, windows)
    sizes = jnp.sqrt(jnp.mean(before**2, (0, 1)))

    def loss(blocks, batch, key):
        """One for the base as it is."""
        del key
        return jnp.mean((jax.vmap(errors, (None, 0))(blocks, batch) / sizes) ** 2)

    learned, fixed = eqx.partition(model.blocks, is_learned(model.blocks))
    losses = []
    progress, _ = advance(
        loss,
        begin(stack([learned])),
        fixed,
        windows,
        until=steps,
        total=steps,
        batch=max(1, at_once // records),
        learning_rate=rate,
        key=jax.random.key(0),
        report=lambda _, value: losses.append(value),
    )
    blocks = eqx.combine(member(progress.trainable, 0), fixed)
    return replace(model, method=Deterministic(blocks)), losses


def cut(states, records):
    """All windows of so many steps, overlapping by half, (window, records + 1, variable)."""
    starts = range(0, states.shape[1] - records, max(1, records // 2))
    return np.concatenate([states[:, s : s + records + 1] for s in starts])


def row(what, model, learning, test, seconds, losses) -> None:
    """One line of the table."""
    cells = (", ".join(f"{e:.1e}" for e in mae(model, d)) for d in (learning[:JUDGED], test))
    print(f"| {what} | {seconds} | {losses} | " + " | ".join(cells) + " |", flush=True)


def mae(model, data):
    """Mean absolute error per variable."""
    chosen = model.integrator_for(data.times)
    made = evaluate(
        model.method, model.coordinates, data, model.draw(1), required=0, integrator=chosen
    )
    return np.abs(made.summary.mean - data.states[:, 1:]).mean((0, 1))


if __name__ == "__main__":
    main()
