"""Stage one with some of its configuration changed: how good is the base, and how soon?

    python benchmarks/bases.py chemical-motor steps=20000 steps=40000 [--seeds 3]

Values are those of TOML, over the configuration of a preset. Mean absolute and median relative
errors are those of whole test trajectories, and of as many that were learned from.
"""

import argparse
import time
from dataclasses import replace

import jax
import numpy as np

from epinets import changed, forecast
from spenn.experiment import PRESETS, REFERENCES, preset
from spenn.experiment._data import make_data
from spenn.experiment._layout import Layout
from spenn.experiment._results import accuracy
from spenn.fitting import fit_deterministic, hold_out
from spenn.physics import Physics
from spenn.systems import SYSTEMS


def main() -> None:
    """Print one row per variant and seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("variants", nargs="*", metavar="name=value[,name=value...]")
    parser.add_argument("--preset", choices=PRESETS, default="quick")
    parser.add_argument("--reference", choices=REFERENCES, default="paper")
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_intermixed_args()
    system, run = SYSTEMS[options.system], preset(options.preset, options.system)
    print(
        f"{system.title}, {options.reference} reference, on {jax.devices()[0].device_kind}: ",
        end="",
    )
    print(", ".join(system.names) + "\n")
    head = "variant | seed | s | loss | test: MAE | RL2E | learned from: MAE | RL2E"
    print(f"| {head} |\n|" + "---|" * 8)
    for variant in options.variants or [""]:
        for seed in range(options.seeds):
            config = replace(
                run, seed=seed, reference=options.reference, fit=changed(run.fit, variant)
            )
            row(variant.replace(",", ", ") or "as it is", system, config)


def row(what, system, config) -> None:
    """Train one base, and print a line of the table."""
    data, losses, began = make_data(system, config), [], time.perf_counter()
    physics = Physics(domain=system.domain())
    model = fit_deterministic(
        data.train, config.seed, config.fit, physics, lambda _, n, loss: losses.append(loss)
    )
    seconds = time.perf_counter() - began
    learned, _ = hold_out(data.train, config.fit, config.seed)
    layout = Layout.of(system.names, system.domain())
    cells = [f"{config.seed}", f"{seconds:.0f}", f"{losses[-1]:.1e}"]
    for some in (data.test, learned[: len(data.test)]):
        scores = accuracy(layout, np.asarray(forecast(model, some, 1).mean), layout.forecast(some))
        errors = [scores["mae"][n] for n in layout.names]
        relative = [scores["rl2e"][n]["median"] for n in layout.names]
        cells += [", ".join(f"{e:.1e}" for e in row) for row in (errors, relative)]
    print(f"| {what} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
