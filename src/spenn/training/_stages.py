"""Stage one fits the base; stage two freezes it and fits the epinets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax.tree_util import Partial
from jaxtyping import PRNGKeyArray, PyTree

from ..config import FitConfig
from ..epinet import INDICES, SPENN, Shape, attach, scale_priors, trainable
from ..generic import (
    BLOCKS,
    AbstractDomain,
    Blocks,
    Coordinates,
    KnownDissipation,
    KnownPoisson,
    KnownPotential,
    Point,
    is_learned,
    learned_dissipation,
    learned_poisson,
    learned_potential,
)
from ..networks import split
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
from ._losses import PER_STATE, POINT, base_loss, epinet_loss


@dataclass(frozen=True)
class Physics:
    """What is known, as functions in the user's units, and which blocks are learned.

    A block with a function that is not in `learned` is taken as known; one that is in `learned` as
    well is known + learned. By default everything is learned, of a state without extent; on another
    `domain` the functions are those of its local states. Rows of `conserved` are coefficients of
    linear combinations of the variables that never change, such as atoms in a closed vessel.
    """

    energy: Callable | None = None
    entropy: Callable | None = None
    poisson: Callable | None = None
    dissipation: Callable | None = None
    learned: tuple[str, ...] = BLOCKS
    domain: AbstractDomain = POINT
    conserved: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self):
        """Refuse unknown names and empty energy or entropy."""
        if unknown := set(self.learned) - set(BLOCKS):
            raise ValueError(f"there is no block {sorted(unknown)[0]!r}; the blocks are {BLOCKS}.")
        for name in ("energy", "entropy"):
            if name not in self.learned and getattr(self, name) is None:
                raise ValueError(f"the {name} must be given, learned or both.")
        if self.conserved and not isinstance(self.domain, Point):
            raise ValueError("conserved combinations are those of a state without extent.")

    def blocks(
        self, coordinates: Coordinates, size: int, width: int, depth: int, *, key: PRNGKeyArray
    ) -> Blocks:
        """Known parts in scaled coordinates and fresh networks for the learned ones."""
        domain = self._domain(coordinates, size)
        sizes, units = domain.sizes(size), domain.units(coordinates)
        shape = (width, depth)
        kinds = {
            "energy": (
                lambda f: KnownPotential(f, units.energy, units.energy_unit),
                lambda key: learned_potential(sizes.energy, *shape, key=key),
            ),
            "entropy": (
                lambda f: KnownPotential(f, units.entropy),
                lambda key: learned_potential(sizes.entropy, *shape, key=key),
            ),
            "poisson": (
                lambda f: KnownPoisson(f, coordinates, domain.directions),
                lambda key: learned_poisson(size, sizes.poisson, *shape, key=key),
            ),
            "dissipation": (
                lambda f: KnownDissipation(f, units.energy, domain.directions),
                lambda key: learned_dissipation(sizes.energy, sizes.force, *shape, key=key),
            ),
        }
        if self.poisson is not None and not sizes.poisson:
            raise ValueError("this domain has a Poisson operator of its own; leave it out.")

        def parts(name, key) -> tuple:
            if name == "poisson" and not sizes.poisson:
                return ()
            known, learned = kinds[name]
            function = getattr(self, name)
            given = () if function is None else (known(function),)
            drawn = (learned(key),) if name in self.learned else ()
            return given + drawn

        keys = split(key, len(BLOCKS))
        every = {name: parts(name, k) for name, k in zip(BLOCKS, keys, strict=True)}
        return Blocks(**every, domain=domain.scaled())

    def _domain(self, coordinates: Coordinates, size: int) -> AbstractDomain:
        if not self.conserved:
            return self.domain
        rows = np.atleast_2d(np.asarray(self.conserved, np.float64))
        if rows.shape[1] != size:
            raise ValueError(
                f"a conserved combination needs one coefficient for each of {size} variables."
            )
        return Point.keeping(rows * coordinates.on_host().scale)


def fit_base(
    samples: Samples,
    coordinates: Coordinates,
    physics: Physics,
    config: FitConfig,
    *,
    key: PRNGKeyArray,
    report: Report = lambda steps, loss: None,
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
) -> list[PyTree]:
    """Train all starts for a while or to the end, and as many `winners` to the end.

    Starts of one heat, stacked weights, are trained together; heats follow each other, and only
    the first is reported. Of the starts whose numbers differ by multiples of `winners`, the one
    with the lowest loss wins.
    """

    def run(progress, until, report=report):
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
        )
        # Devices may have been filled up with repeated members.
        return over_members(lambda a: a[:together], progress), losses[:together]

    together = len(jax.tree.leaves(heats[0])[0])
    until = min(schedule.race_steps, schedule.steps)
    finished = [run(begin(heats[0]), until)]
    finished += [run(begin(heat), until, lambda steps, loss: None) for heat in heats[1:]]
    losses = np.concatenate([losses for _, losses in finished])
    rivals = np.where(np.isnan(losses), np.inf, losses).reshape(-1, winners)
    best = np.argmin(rivals, 0) * winners + np.arange(winners)
    progress, _ = run(keep(join([progress for progress, _ in finished]), best), schedule.steps)
    return [member(progress.trainable, number) for number in range(winners)]


def fit_epinet(
    base: Blocks,
    samples: Samples,
    amplitude: float,
    config: FitConfig,
    *,
    key: PRNGKeyArray,
    report: Report = lambda steps, loss: None,
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
