"""Recipes of stage one side by side on one GPU: the tables of `docs/ablation.md` for motor and bar.

python benchmarks/recipes.py chemical-motor --width 50 --steps 10000 --batch 8192 0.75,0.1 1,0.1,1

A recipe is component_exponent,speed_floor[,seed]. All are trained at once, on all training
trajectories, and judged on 80 fresh ones that neither training nor the tables of scores have seen.
"""

import argparse
import time
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from spenn.config import FitConfig
from spenn.experiment import RunConfig
from spenn.experiment._data import make_data
from spenn.experiment._layout import Layout
from spenn.forecast import evaluate
from spenn.generic import Deterministic, is_learned
from spenn.physics import Physics
from spenn.systems import SYSTEMS, simulate
from spenn.training import (
    Samples,
    base_loss,
    make_samples,
    scale_by_soap,
    states_of,
)
from spenn.training._loop import _cosine

CHUNK = 200


def train(system, train, configs, seeds, steps, batch):
    """Blocks and losses of all recipes, trained together."""
    domain, size = system.domain(), train.states.shape[-1]
    flat = (a.reshape(-1, size) for a in (train.states, train.derivatives))
    coordinates = domain.coordinates(*flat)
    every = [make_samples(train, coordinates, config, domain) for config in configs]
    states, velocities, _, owners = every[0]
    weights = jnp.stack([samples.weights for samples in every])

    def blocks(key):
        shape = (configs[0].width, configs[0].depth)
        return Physics(domain=domain).blocks(coordinates, size, *shape, key=key)

    fixed = eqx.filter(blocks(jax.random.key(0)), is_learned(blocks(jax.random.key(0))), True)
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    learned = jax.vmap(lambda k: eqx.filter(b := blocks(k), is_learned(b)))(keys)
    optimiser = scale_by_soap()
    state = jax.vmap(optimiser.init)(learned)
    state = state._replace(step=jnp.zeros((), jnp.int32))  # shared: its `cond` stays one branch
    axes = jax.tree.map(lambda _: 0, state)._replace(step=None)

    def step(carry, i):
        learned, state = carry
        key = jax.random.fold_in(jax.random.key(7), i)
        rows = jax.random.randint(key, (states_of(batch, domain),), 0, len(states))

        def loss(learned, weights):
            chosen = Samples(states[rows], velocities[rows], weights, owners[rows])
            return base_loss(eqx.combine(learned, fixed), chosen, key)

        losses, gradients = jax.vmap(jax.value_and_grad(loss))(learned, weights[:, rows])
        directions, state = jax.vmap(optimiser.update, (0, axes), (0, axes))(gradients, state)
        rate = _cosine(configs[0].learning_rate, steps)(i)
        return (jax.tree.map(lambda p, d: p - rate * d, learned, directions), state), losses

    run = jax.jit(lambda carry, start: lax.scan(step, carry, start + jnp.arange(CHUNK)))
    carry = (learned, state)
    for start in range(0, steps, CHUNK):
        carry, losses = run(carry, jnp.asarray(start))
    each = [
        eqx.combine(jax.tree.map(lambda a, i=i: a[i], carry[0]), fixed) for i in range(len(configs))
    ]
    return coordinates, each, np.asarray(losses.mean(0))


def main() -> None:
    """Print one row per recipe: final loss and mean absolute errors of rollouts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("recipes", nargs="+", metavar="exponent,floor[,seed]")
    parser.add_argument("--reference", default="converged")
    for name, default in (("width", 30), ("steps", 2000), ("batch", 2048)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    system = SYSTEMS[options.system]
    recipes = [tuple(map(float, r.split(","))) for r in options.recipes]
    configs = [
        replace(FitConfig(width=options.width), component_exponent=r[0], speed_floor=r[1])
        for r in recipes
    ]
    seeds = [int(r[2]) if len(r) > 2 else 0 for r in recipes]
    data = make_data(system, RunConfig(options.system, reference=options.reference))
    fresh = simulate(system, system.draw(np.random.default_rng(12345), 80), options.reference)
    began = time.perf_counter()
    coordinates, every, losses = train(
        system, data.train, configs, seeds, options.steps, options.batch
    )
    print(f"{time.perf_counter() - began:.0f} s of training on {jax.devices()[0].device_kind}\n")
    layout = Layout.of(system.names, system.domain())
    print("| exponent | floor | seed | loss | " + " | ".join(system.names) + " |")
    print("|---" * (4 + len(system.names)) + "|")
    for recipe, seed, blocks, loss in zip(recipes, seeds, every, losses, strict=True):
        summary = evaluate(Deterministic(blocks), coordinates, fresh, jnp.zeros((1, 0))).summary
        errors = layout.mean(np.abs(summary.mean - layout.forecast(fresh)).mean((0, 1)))
        cells = (f"{recipe[0]:g}", f"{recipe[1]:g}", f"{seed}", f"{loss:.1e}")
        print("| " + " | ".join((*cells, *(f"{e:.1e}" for e in errors))) + " |", flush=True)


if __name__ == "__main__":
    main()
