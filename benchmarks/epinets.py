"""Stage two again, on the base of a model, with some of its configuration changed.

    python benchmarks/epinets.py chemical-motor runs/motor/model.spenn --reference converged
        epinet_steps=3000 epinet_steps=3000,dimension=10 [--samples 500]

Values are those of TOML. The model must come from `spenn run` of that system with that reference:
its data are made again. Scores are those of the test trajectories, per variable.
"""

import argparse
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

import spenn
from spenn.config import with_table
from spenn.experiment import REFERENCES, preset
from spenn.experiment._data import make_data
from spenn.experiment._layout import Layout
from spenn.experiment._results import accuracy, error_spread_correlations
from spenn.fitting import add_uncertainty
from spenn.forecast import LEVELS, evaluate
from spenn.systems import SYSTEMS


def main() -> None:
    """Print one row for the model as it is, and one per variant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("model", type=Path)
    parser.add_argument("variants", nargs="*", metavar="name=value[,name=value...]")
    parser.add_argument("--reference", choices=REFERENCES, default="paper")
    parser.add_argument("--samples", type=int, default=200)
    options = parser.parse_intermixed_args()
    system, model = SYSTEMS[options.system], spenn.load(options.model)
    seed = model.provenance.seed
    run = replace(preset("paper", options.system), reference=options.reference, seed=seed)
    data = make_data(system, run)
    base = forecast(model.base, data.test, 1)
    print(f"{system.title}, seed {seed}, on {jax.devices()[0].device_kind}: ", end="")
    print(", ".join(system.names) + "\n")
    head = "variant | amplitude | s | CRPS over the base's MAE | RL2E over the base's"
    print(f"| {head} | raw 95 % | correlation |\n|" + "---|" * 7)
    layout = Layout.of(system.names, system.domain())
    row("as it is", model, layout, data.test, base, options.samples, None)
    for variant in options.variants:
        config = changed(model.config, variant)
        began = time.perf_counter()
        made = add_uncertainty(model.base, data.train, seed, config)
        seconds = time.perf_counter() - began
        row(variant.replace(",", ", "), made, layout, data.test, base, options.samples, seconds)


def changed(config, variant: str):
    """A configuration with the values that a variant names."""
    return with_table(config, tomllib.loads(variant.replace(",", "\n")), Path(variant))


def forecast(model, test, samples):
    """What `evaluate` makes of some trajectories."""
    indices, chosen = model.draw(samples, 1), model.integrator_for(test.times)
    every = evaluate(model.method, model.coordinates, test, indices, required=0, integrator=chosen)
    return every.summary


def row(what, model, layout, test, base, samples, seconds) -> None:
    """One line of the table."""
    made, truth = forecast(model, test, samples), layout.forecast(test)
    plain, mean = (accuracy(layout, np.asarray(s.mean), truth) for s in (base, made))
    correlations = error_spread_correlations(layout, np.abs(made.mean - truth), made.std)
    inside = layout.mean(made.inside.mean(0))[LEVELS.index(0.95)]
    scores = layout.mean(made.crps.mean(0)) / np.array(list(plain["mae"].values()))
    ratios = [mean["rl2e"][n]["median"] / plain["rl2e"][n]["median"] for n in layout.names]
    cells = (
        f"{model.prior_scale:.1e}",
        "" if seconds is None else f"{seconds:.0f}",
        *(", ".join(f"{v:.2f}" for v in values) for values in (scores, ratios)),
        ", ".join(f"{100 * v:.0f}" for v in inside),
        ", ".join(f"{v:.2f}" for v in correlations),
    )
    print(f"| {what} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
