"""Stage one fits the base; stage two freezes it and fits the epinets."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax.tree_util import Partial
from jaxtyping import PRNGKeyArray, PyTree

from ..config import FitConfig
from ..epinet import INDICES, SPENN, Shape, attach, scale_priors, trainable
from ..generic import AbstractDomain, Blocks, Coordinates, is_learned
from ..networks import normal, split
from ..physics import Physics
from ._checkpoint import NOTHING, Checkpoint
from ._loop import (
    Loss,
    Report,
    Samples,
    advance,
    begin,
    join,
    keep,
    member,
    stack,
)
from ._losses import PER_STATE, base_loss, epinet_loss, resample

# Loss per variable. Starts that do not dissipate yet stand at 1e-2, others soon below 1e-3.
PLATEAU = 3e-3


def fit_base(
    samples: Samples,
    coordinates: Coordinates,
    physics: Physics,
    config: FitConfig,
    *,
    key: PRNGKeyArray,
    report: Report = lambda steps, loss: None,
    checkpoint: Checkpoint = NOTHING,
) -> Blocks:
    """Stage one. Several fresh starts are trained side by side; after a while the best goes on.

    Where all of them are still on the plateau, others are tried, for as many heats as configured.
    """
    start_key, data_key = split(key, 2)
    size = samples.states.shape[1]

    def start(number):
        key = jax.random.fold_in(start_key, number)
        return physics.blocks(coordinates, size, config.width, config.depth, key=key)

    number = config.races
    weights, shared = separate([start(i) for i in range(config.heats * number)], is_learned)
    heats = [stack(weights[i : i + number]) for i in range(0, len(weights), number)]
    (best,) = race(
        base_loss,
        heats,
        shared,
        samples,
        Schedule.of_base(config, physics.domain),
        enough=PLATEAU * size,
        key=data_key,
        report=report,
        checkpoint=checkpoint,
    )
    return eqx.combine(best, shared)


class Schedule(NamedTuple):
    """How long starts race, how long the best of them are trained, on what batches, how fast."""

    race_steps: int
    steps: int
    batch: int
    learning_rate: float

    @classmethod
    def of_base(cls, config: FitConfig, domain: AbstractDomain) -> "Schedule":
        """The schedule of the base."""
        batch = states_of(config.batch, domain)
        return cls(config.race_steps, config.steps, batch, config.learning_rate)


def separate(
    starts: Sequence[PyTree], learned: Callable[[PyTree], PyTree]
) -> tuple[list[PyTree], PyTree]:
    """Weights of every start, and the rest, which is the same in all of them."""
    pairs = [eqx.partition(start, learned(start)) for start in starts]
    return [weights for weights, _ in pairs], pairs[0][1]


def race(
    loss: Loss,
    heats: Sequence[PyTree],
    shared: PyTree,
    samples: Samples,
    schedule: Schedule,
    *,
    winners: int = 1,
    enough: float = 0.0,
    masks: PyTree | None = None,
    key: PRNGKeyArray,
    report: Report,
    checkpoint: Checkpoint = NOTHING,
) -> list[PyTree]:
    """Train all starts for a while or to the end, and as many `winners` to the end.

    Starts of one heat, stacked weights, are trained together; heats follow each other until a loss
    is below `enough`, and only the first is reported. Of the starts whose numbers differ by
    multiples of `winners`, the one with the lowest loss wins. What the checkpoint has is not done
    again.
    """

    def run(name, progress, until, report=report):
        return advance(
            loss,
            progress,
            shared,
            samples,
            until=until,
            total=schedule.steps,
            batch=schedule.batch,
            learning_rate=schedule.learning_rate,
            key=key,
            report=report,
            masks=masks,
            checkpoint=checkpoint,
            name=name,
        )

    until = min(schedule.race_steps, schedule.steps)
    finished, losses = [], np.zeros(0)
    for number, heat in enumerate(heats):
        progress, latest = run(
            f"heat-{number}", begin(heat), until, report if not number else _hush
        )
        finished.append(progress)
        losses = np.append(losses, np.where(np.isnan(latest), np.inf, latest))
        if losses.min() < enough:
            break
    best = np.argmin(losses.reshape(-1, winners), 0) * winners + np.arange(winners)
    progress, _ = run("winners", keep(join(finished), best), schedule.steps)
    return [member(progress.trainable, number) for number in range(winners)]


def _hush(steps: int, loss: float) -> None:
    del steps, loss


def fit_epinet(
    base: Blocks,
    samples: Samples,
    amplitude: float,
    config: FitConfig,
    *,
    key: PRNGKeyArray,
    report: Report = lambda steps, loss: None,
    checkpoint: Checkpoint = NOTHING,
) -> SPENN:
    """Stage two, at a given amplitude. The base is not touched."""
    attach_key, train_key, draw_key = split(key, 3)
    few = samples.states[:: max(1, len(samples.states) // 2000)]
    model = attach_epinets(base, amplitude, config, key=attach_key)
    model = eqx.filter_jit(scale_priors)(model, few)
    learned, fixed = eqx.partition(model, trainable(model))
    shape = (int(samples.trajectories[-1]) + 1, config.dimension)
    draws = normal(draw_key, shape, config.bootstrap / math.sqrt(config.dimension))
    progress, _ = advance(
        Partial(epinet_loss, mean_weight=config.mean_weight),
        begin(stack([learned])),
        fixed,
        resample(base, samples, draws),
        until=config.epinet_steps,
        total=config.epinet_steps,
        batch=states_of(config.epinet_batch, base.domain),
        learning_rate=config.epinet_learning_rate,
        key=train_key,
        report=report,
        checkpoint=checkpoint,
        name=f"amplitude-{amplitude!r}",
    )
    return eqx.combine(member(progress.trainable, 0), fixed)


def attach_epinets(
    base: Blocks, amplitude: float, config: FitConfig, *, key: PRNGKeyArray
) -> SPENN:
    """Fresh epinets of the configured shape, priors not yet scaled."""
    return attach(
        base,
        INDICES[config.index](),
        Shape(config.dimension, config.epinet_width, config.prior_width, config.epinet_depth),
        amplitude=amplitude,
        centred=config.centred,
        key=key,
    )


def states_of(batch: int, domain: AbstractDomain) -> int:
    """States with about as many local states as a batch asks for, in whole groups of stage two."""
    return PER_STATE * max(1, batch // (PER_STATE * domain.cells))
