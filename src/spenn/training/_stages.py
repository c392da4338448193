"""Stage one fits the base; stage two freezes it and fits the epinets."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import equinox as eqx
import jax
import numpy as np
from jax.tree_util import Partial
from jaxtyping import PRNGKeyArray, PyTree

from ..config import FitConfig
from ..epinet import INDICES, SPENN, Shape, attach, scale_priors, trainable
from ..generic import (
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
from ._loop import Loss, Report, Samples, advance, begin, keep, member, stack
from ._losses import PER_STATE, POINT, base_loss, epinet_loss

Model = TypeVar("Model")
BLOCKS = ("energy", "entropy", "poisson", "dissipation")


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

    return race(base_loss, start, is_learned, samples, physics, config, key=data_key, report=report)


def race(
    loss: Loss,
    start: Callable[[int], Model],
    learned: Callable[[Model], PyTree],
    samples: Samples,
    physics: Physics,
    config: FitConfig,
    *,
    key: PRNGKeyArray,
    report: Report,
) -> Model:
    """Train `config.races` starts together, for a while or to the end, and the best to the end.

    `learned` says which leaves of a start are trained; the others are the same in all starts.
    """
    starts = [start(number) for number in range(config.races)]
    weights, (shared, *_) = zip(*(eqx.partition(s, learned(s)) for s in starts), strict=True)

    def run(progress, until):
        return advance(
            loss,
            progress,
            shared,
            samples,
            until=until,
            total=config.steps,
            batch=states_of(config.batch, physics.domain),
            learning_rate=config.learning_rate,
            key=key,
            report=report,
        )

    progress, losses = run(begin(stack(weights)), min(config.race_steps, config.steps))
    best = np.argmin(np.where(np.isnan(losses), np.inf, losses), keepdims=True)
    progress, _ = run(keep(progress, best), config.steps)
    return eqx.combine(member(progress, 0), shared)


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
    return eqx.combine(member(progress, 0), fixed)


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
