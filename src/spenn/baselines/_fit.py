"""Training of the baselines, by the optimiser and the loop of the base."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from ..config import FitConfig
from ..data import Trajectories
from ..generic import Coordinates, is_learned
from ..model import Model
from ..training import (
    Physics,
    Progress,
    Samples,
    SoapState,
    advance,
    base_loss,
    begin,
    keep,
    make_samples,
    race,
    stack,
    states_of,
)
from ._dropout import MCDropout
from ._ensemble import DeepEnsemble, pad

Report = Callable[[str, int, float], None]
STARTS = 2  # per member: one in three ends on a plateau without dissipation, and shows it early
DEFAULT = FitConfig()
ALL_LEARNED = Physics()


def fit_ensemble(
    train: Trajectories,
    seed: int = 0,
    config: FitConfig = DEFAULT,
    physics: Physics = ALL_LEARNED,
    report: Report = lambda stage, steps, loss: None,
) -> Model:
    """A deep ensemble of `config.members` models, all trained at once.

    They are shared out over the devices that JAX sees.
    """
    coordinates, samples, size = _prepare(train, config, physics)
    start_key, data_key = jax.random.split(jax.random.fold_in(jax.random.key(seed), 2))

    def start(number):
        width = config.member_widths[number % config.members % len(config.member_widths)]
        key = jax.random.fold_in(start_key, number)
        blocks = physics.blocks(coordinates, size, width, config.depth, key=key)
        return eqx.partition(blocks, is_learned(blocks))

    weights, (shared, *_) = zip(*map(start, range(STARTS * config.members)), strict=True)
    weights, masks = (share_out(stack(trees)) for trees in pad(weights))

    def run(progress, masks, until):
        return advance(
            base_loss,
            progress,
            shared,
            samples,
            until=until,
            total=config.member_steps,
            batch=states_of(config.member_batch, physics.domain),
            learning_rate=config.learning_rate,
            key=data_key,
            report=lambda steps, loss: report("deep-ensemble", steps, loss),
            masks=masks,
        )

    progress, losses = run(begin(weights), masks, min(config.race_steps, config.member_steps))
    losses = np.where(np.isnan(losses), np.inf, losses)[: STARTS * config.members]
    best = np.argmin(losses.reshape(STARTS, config.members), 0)
    chosen = best * config.members + np.arange(config.members)
    masks = share_out(jax.tree.map(lambda a: a[chosen], masks))
    weights, (step, *averages), _ = keep(progress, chosen)
    weights, averages = share_out((weights, averages))
    progress = Progress(weights, SoapState(step, *averages), step)
    progress, _ = run(progress, masks, config.member_steps)
    every = jax.tree.map(lambda a: a[: config.members], progress.trainable)
    method = DeepEnsemble(eqx.combine(every, shared), config.members)
    return Model(tuple(train.names), coordinates, method, config)


def fit_dropout(
    train: Trajectories,
    seed: int = 0,
    config: FitConfig = DEFAULT,
    physics: Physics = ALL_LEARNED,
    report: Report = lambda stage, steps, loss: None,
) -> Model:
    """Monte Carlo dropout at the rate `config.dropout`: every state meets a mask of its own."""
    coordinates, samples, size = _prepare(train, config, physics)
    start_key, data_key = jax.random.split(jax.random.fold_in(jax.random.key(seed), 3))

    def start(number):
        key = jax.random.fold_in(start_key, number)
        blocks = physics.blocks(coordinates, size, config.width, config.depth, key=key)
        return MCDropout(blocks, config.dropout)

    method = race(
        dropout_loss,
        start,
        lambda method: MCDropout(is_learned(method.base), method.rate),
        samples,
        physics,
        config,
        key=data_key,
        report=lambda steps, loss: report("mc-dropout", steps, loss),
    )
    return Model(tuple(train.names), coordinates, method, config)


def share_out(members: PyTree) -> PyTree:
    """The same arrays shared out over all devices by member, some repeated so that they fill up."""
    devices = jax.devices()
    if len(devices) == 1:
        return members
    mesh = Mesh(np.array(devices), ("member",))

    def place(array):
        rows = np.resize(np.arange(len(array)), -(-len(array) // len(devices)) * len(devices))
        return jax.device_put(array[rows], NamedSharding(mesh, PartitionSpec("member")))

    return jax.tree.map(place, members)


def dropout_loss(method: MCDropout, samples: Samples, key: PRNGKeyArray) -> Float[Array, ""]:
    """Weighted mean square of residuals, each under a fresh mask."""
    indices = method.draw(len(samples.states), key=key)
    velocities = jax.vmap(lambda x, z: method.realise(z).velocity(x))(samples.states, indices)
    return jnp.mean(jnp.sum(samples.weights * (velocities - samples.velocities) ** 2, -1))


def _prepare(
    train: Trajectories, config: FitConfig, physics: Physics
) -> tuple[Coordinates, Samples, int]:
    """Coordinates, samples in them, and the number of entries of a state."""
    size = train.states.shape[-1]
    flat = (a.reshape(-1, size) for a in (train.states, train.derivatives))
    coordinates = physics.domain.coordinates(*flat)
    return coordinates, make_samples(train, coordinates, config, physics.domain), size
