"""One change at a time to the defaults, on the oscillator: the table of `docs/ablation.md`.

python benchmarks/ablation.py [--seeds 2] [--steps 3000]
"""

import argparse
from dataclasses import fields, replace
from functools import cache

import jax.numpy as jnp
import numpy as np

from spenn.calibrate import rank_correlation
from spenn.config import FitConfig
from spenn.experiment import RunConfig
from spenn.experiment._data import make_data
from spenn.fitting import add_uncertainty, fit_deterministic
from spenn.forecast import LEVELS, evaluate
from spenn.systems import OSCILLATOR

VARIANTS = {
    "default": {},
    "mean over realisations not weighted": {"mean_weight": 0.0},
    "w = 0.01, mean not weighted": {"mean_weight": 0.0, "prior_scale": 0.01},
    "w = 0.1, mean not weighted": {"mean_weight": 0.0, "prior_scale": 0.1},
    "indices not centred": {"centred": False},
    "two epinet layers": {"epinet_depth": 2},
    "residuals not weighted": {"component_exponent": 0.0, "speed_floor": 100.0},
    "components weighted, states not": {"speed_floor": 100.0},
    "relative errors throughout": {"component_exponent": 1.0, "speed_floor": 0.05},
    "rate 3e-3": {"learning_rate": 3e-3},
    "a single start": {"races": 1},
}
STAGE_TWO = {"mean_weight", "prior_scale", "centred", "epinet_depth"}


@cache
def base_of(config: FitConfig, seed: int):
    """Data and deterministic model, shared by variants that differ in stage two alone."""
    data = make_data(OSCILLATOR, RunConfig("oscillator", seed=seed, outside=2))
    return data, fit_deterministic(data.train, seed, config)


def score(config: FitConfig, seed: int) -> np.ndarray:
    """Base MAE, CRPS, RL2E over the base's, raw 95 % coverage, error-spread correlation."""
    standard = {f.name: f.default for f in fields(FitConfig) if f.name in STAGE_TWO}
    data, base = base_of(replace(config, **standard), seed)
    test = data.test[np.arange(20)]
    model = add_uncertainty(base, data.train, seed, config)
    how = {"integrator": base.integrator_for(test.times)}
    single = evaluate(base.method, base.coordinates, test, base.draw(1), **how).summary
    many = evaluate(model.method, model.coordinates, test, model.draw(32, seed), **how).summary
    truth = test.states[:, 1:]

    def median_error(mean):
        return np.median(np.sqrt(np.sum((mean - truth) ** 2, 1) / np.sum(truth**2, 1)), 0)

    error = jnp.asarray(np.abs(many.mean - truth), float)
    return np.stack(
        [
            np.abs(single.mean - truth).mean((0, 1)),
            many.crps.mean(0),
            median_error(many.mean) / median_error(single.mean),
            100 * many.inside[:, LEVELS.index(0.95)].mean(0),
            np.asarray(rank_correlation(error, jnp.asarray(many.std))),
        ]
    )


def main() -> None:
    """Print one row per variant: geometric means over seeds, for q, p, eps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3000)
    options = parser.parse_args()
    default = FitConfig(steps=options.steps, batch=1024, race_steps=300)
    print("| change | base MAE | CRPS | RL2E / base's | raw 95 % coverage | correlation |")
    print("|---|---|---|---|---|---|")
    for name, change in VARIANTS.items():
        scores = [score(replace(default, **change), seed) for seed in range(options.seeds)]
        mean = np.exp(np.mean(np.log(np.maximum(scores, 1e-12)), 0))
        forms = ("{:.1e}", "{:.1e}", "{:.2f}", "{:.0f}", "{:.2f}")
        cells = (", ".join(f.format(v) for v in row) for f, row in zip(forms, mean, strict=True))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
