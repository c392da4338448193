"""Training of the baselines, by the optimiser and the loop of the base."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..config import FitConfig
from ..data import Trajectories, differing
from ..fitting import ALL_LEARNED, DEFAULT, Report, check, learnable, open_checkpoint, prepare
from ..generic import is_learned
from ..model import Model
from ..physics import Physics
from ..training import (
    Samples,
    Schedule,
    base_loss,
    race,
    separate,
    stack,
    states_of,
)
from ._dropout import MCDropout
from ._ensemble import DeepEnsemble, pad

# Share of the steps after which the starts of a member are compared: a plateau shows early.
RACE = 0.1


def fit_ensemble(
    train: Trajectories,
    seed: int = 0,
    config: FitConfig = DEFAULT,
    physics: Physics = ALL_LEARNED,
    report: Report = lambda stage, steps, loss: None,
    checkpoint: str | Path | None = None,
) -> Model:
    """A deep ensemble of `config.members` models, all trained at once.

    Each is the best of `config.races` starts. They are shared out over the devices that JAX sees.
    """
    check(config, seed)
    physics = physics.named(train.names)
    members = config.members
    learning = learnable(train, config, physics)
    coordinates, samples = prepare(learning, config, physics)
    start_key, data_key = jax.random.split(jax.random.fold_in(jax.random.key(seed), 2))

    def start(number):
        width = config.member_widths[number % members % len(config.member_widths)]
        key = jax.random.fold_in(start_key, number)
        return physics.blocks(coordinates, len(train.names), width, config.depth, key=key)

    kept = open_checkpoint(checkpoint, "deep-ensemble", lambda: start(0), train, seed, config)
    starts = [start(number) for number in range(config.races * members)]
    weights, shared = separate(starts, is_learned)
    weights, masks = pad(weights)
    heats = [stack(weights[i : i + members]) for i in range(0, len(starts), members)]
    batch = states_of(config.member_batch, physics.domain)
    race_steps = int(RACE * config.member_steps)
    best = race(
        base_loss,
        heats,
        shared,
        samples,
        Schedule(race_steps, config.member_steps, batch, config.learning_rate),
        winners=members,
        masks=stack(masks[:members]),
        key=data_key,
        report=lambda steps, loss: report("deep-ensemble", steps, loss),
        checkpoint=kept,
    )
    method = DeepEnsemble(eqx.combine(stack(best), shared), members)
    return Model.of(train, seed, coordinates, method, config, differing(train, learning))


def fit_dropout(
    train: Trajectories,
    seed: int = 0,
    config: FitConfig = DEFAULT,
    physics: Physics = ALL_LEARNED,
    report: Report = lambda stage, steps, loss: None,
    checkpoint: str | Path | None = None,
) -> Model:
    """Monte Carlo dropout at the rate `config.dropout`: every state meets a mask of its own."""
    check(config, seed)
    physics = physics.named(train.names)
    learning = learnable(train, config, physics)
    coordinates, samples = prepare(learning, config, physics)
    start_key, data_key = jax.random.split(jax.random.fold_in(jax.random.key(seed), 3))

    def start(number):
        key = jax.random.fold_in(start_key, number)
        width = config.dropout_width
        blocks = physics.blocks(coordinates, len(train.names), width, config.depth, key=key)
        return MCDropout(blocks, config.dropout)

    kept = open_checkpoint(checkpoint, "mc-dropout", lambda: start(0).base, train, seed, config)
    weights, shared = separate(
        [start(number) for number in range(config.races)],
        lambda method: MCDropout(is_learned(method.base), method.rate),
    )
    (best,) = race(
        dropout_loss,
        [stack(weights)],
        shared,
        samples,
        Schedule.of_base(config, physics.domain),
        key=data_key,
        report=lambda steps, loss: report("mc-dropout", steps, loss),
        checkpoint=kept,
    )
    method = eqx.combine(best, shared)
    return Model.of(train, seed, coordinates, method, config, differing(train, learning))


def dropout_loss(method: MCDropout, samples: Samples, key: PRNGKeyArray) -> Float[Array, ""]:
    """Weighted mean square of residuals, each under a fresh mask."""
    indices = method.draw(len(samples.states), key=key)
    velocities = jax.vmap(lambda x, z: method.realise(z).velocity(x))(samples.states, indices)
    return jnp.mean(jnp.sum(samples.weights * (velocities - samples.velocities) ** 2, -1))
