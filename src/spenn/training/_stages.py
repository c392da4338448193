"""Stage one fits the base; stage two freezes it and fits the epinets."""

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
from ..networks import split
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
    over_members,
    share_out,
    stack,
)
from ._losses import PER_STATE, base_loss, epinet_loss


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
    """Stage one. Several fresh starts are trained side by side; after a while the best goes on."""
    start_key, data_key = split(key, 2)
    size = samples.states.shape[1]

    def start(number):
        key = jax.random.fold_in(start_key, number)
        return physics.blocks(coordinates, size, config.width, config.depth, key=key)

    weights, shared = separate([start(number) for number in range(config.races)], is_learned)
    (best,) = race(
        base_loss,
        [stack(weights)],
        shared,
        samples,
        Schedule.of_base(config, physics.domain),
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
    masks: PyTree | None = None,
    key: PRNGKeyArray,
    report: Report,
    checkpoint: Checkpoint = NOTHING,
) -> list[PyTree]:
    """Train all starts for a while or to the end, and as many `winners` to the end.

    Starts of one heat, stacked weights, are trained together; heats follow each other, and only
    the first is reported. Of the starts whose numbers differ by multiples of `winners`, the one
    with the lowest loss wins. What the checkpoint has is not done again.
    """

    def run(name, progress, until, report=report):
        progress, losses = advance(
            loss,
            over_members(share_out, progress),
            shared,
            samples,
            until=until,
            total=schedule.steps,
            batch=schedule.batch,
            learning_rate=schedule.learning_rate,
            key=key,
            report=report,
            masks=jax.tree.map(share_out, masks),
            checkpoint=checkpoint,
            name=name,
        )
        # Devices may have been filled up with repeated members.
        return over_members(lambda a: a[:together], progress), losses[:together]

    together = len(jax.tree.leaves(heats[0])[0])
    until = min(schedule.race_steps, schedule.steps)
    finished = [run("heat-0", begin(heats[0]), until)]
    finished += [
        run(f"heat-{number}", begin(heat), until, lambda steps, loss: None)
        for number, heat in enumerate(heats[1:], 1)
    ]
    losses = np.concatenate([losses for _, losses in finished])
    rivals = np.where(np.isnan(losses), np.inf, losses).reshape(-1, winners)
    best = np.argmin(rivals, 0) * winners + np.arange(winners)
    chosen = keep(join([progress for progress, _ in finished]), best)
    progress, _ = run("winners", chosen, schedule.steps)
    return [member(progress.trainable, number) for number in range(winners)]


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
    attach_key, train_key = split(key, 2)
    few = samples.states[:: max(1, len(samples.states) // 2000)]
    model = attach_epinets(base, amplitude, config, key=attach_key)
    model = eqx.filter_jit(scale_priors)(model, few)
    learned, fixed = eqx.partition(model, trainable(model))
    progress, _ = advance(
        Partial(epinet_loss, mean_weight=config.mean_weight),
        begin(stack([learned])),
        fixed,
        samples,
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
