"""Both laws along rollouts of a saved oscillator model, in float32 and float64.

python benchmarks/rollout_laws.py runs/demo/model.spenn [--samples 50] [--trajectories 20]
"""

import argparse

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import spenn
from spenn.experiment._results import laws
from spenn.forecast import evaluate
from spenn.systems import OSCILLATOR, simulate


def main() -> None:
    """Print the audit of one model in both precisions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--trajectories", type=int, default=20)
    options = parser.parse_args()
    model = spenn.load(options.model)
    indices = model.draw(options.samples)
    initial = OSCILLATOR.draw(np.random.default_rng(0), options.trajectories)
    data = simulate(OSCILLATOR, initial)
    for dtype in (jnp.float32, jnp.float64):
        with jax.enable_x64(dtype is jnp.float64):
            method, coordinates, z = jax.tree.map(
                lambda a, t=dtype: jnp.asarray(a, t) if eqx.is_inexact_array(a) else a,
                (model.method, model.coordinates, indices),
            )
            evaluation = evaluate(method, coordinates, data, z)
            print(jnp.dtype(dtype).name, laws(evaluation.summary, evaluation.diverged))


if __name__ == "__main__":
    main()
