"""Bases of many seeds: does every one learn the oscillator?

python benchmarks/seeds.py [--seeds 10] [--preset quick]
"""

import argparse
from dataclasses import replace

import numpy as np

from spenn.experiment import preset
from spenn.experiment._data import make_data
from spenn.experiment._layout import Layout
from spenn.experiment._results import accuracy
from spenn.fitting import fit_deterministic
from spenn.forecast import evaluate
from spenn.systems import OSCILLATOR


def main() -> None:
    """Print one row per seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--preset", default="quick")
    options = parser.parse_args()
    print("| seed | median RL2E q | p | eps |\n|---|---|---|---|")
    layout = Layout.of(OSCILLATOR.names, OSCILLATOR.domain())
    for seed in range(options.seeds):
        config = replace(preset(options.preset), seed=seed)
        data = make_data(OSCILLATOR, config)
        model = fit_deterministic(data.train, seed, config.fit)
        chosen = model.integrator_for(data.test.times)
        made = evaluate(
            model.method, model.coordinates, data.test, model.draw(1), integrator=chosen
        )
        summary = made.summary
        scores = accuracy(layout, np.asarray(summary.mean), layout.forecast(data.test))
        row = " | ".join(f"{scores['rl2e'][n]['median']:.1e}" for n in model.names)
        print(f"| {seed} | {row} |", flush=True)


if __name__ == "__main__":
    main()
