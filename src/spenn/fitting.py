"""`spenn.fit`: from trajectories to a family of admissible models."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from .config import FitConfig
from .data import Trajectories, agreeing, concatenate, differing
from .epinet import INDICES
from .forecast import evaluate
from .generic import AbstractDomain, Blocks, Coordinates, Deterministic, Generic
from .integrate import RK4, Divided
from .model import Model
from .physics import Physics
from .training import (
    NEAR,
    NOTHING,
    PER_STATE,
    PILOT,
    RANGE,
    Checkpoint,
    Judged,
    Samples,
    balanced,
    correction,
    fit_base,
    fit_epinet,
    make_samples,
)

Report = Callable[[str, int, float], None]
VALIDATION_SAMPLES = 25
JUDGES, FEWEST_JUDGES = 27, 8
MANY_VARIABLES = 6
MOST_STEPS = 8  # of a forecast, from one record to the next
WORTH_IT = 3.0  # what half the step must divide an error by
ROUNDING = 10  # errors of so many units of rounding of the largest value are none
DEFAULT = FitConfig()
ALL_LEARNED = Physics()


def fit(
    train: Trajectories,
    seed: int = 0,
    config: FitConfig | None = None,
    physics: Physics = ALL_LEARNED,
    report: Report = lambda stage, steps, loss: None,
    checkpoint: str | Path | None = None,
) -> Model:
    """Fit the base, then the epinets, with a prior scale found on held-out trajectories.

    **Arguments:** `train`, trajectories with derivatives; `seed`, which fixes the result; `config`,
    by default that of `choose`, and `physics`, see there; `report(stage, steps, loss)`, called as
    training goes on; `checkpoint`, a folder that keeps what is reached: after an interruption of
    any kind the same call goes on from there and ends with the same model, bit for bit. Remove the
    folder once the model is saved.

    **Example:** `model = spenn.fit(train, seed=0)`
    """
    config = choose(train) if config is None else config
    base = fit_deterministic(train, seed, config, physics, report, checkpoint)
    return add_uncertainty(base, train, seed, config, report, checkpoint)


def choose(train: Trajectories) -> FitConfig:
    """A configuration for an unknown system of which there are a few dozen trajectories.

    Narrow networks, as wide ones learn so few trajectories by heart, and several heats of races, in
    case all starts are on the plateau.
    """
    variables = train.states.shape[-1]
    many = variables > MANY_VARIABLES
    return FitConfig(
        width=max(15, variables) if many else 20,
        steps=24_000 if many else 16_000,
        heats=3,
        epinet_batch=1024,
    )


def fit_deterministic(
    train: Trajectories,
    seed: int = 0,
    config: FitConfig = DEFAULT,
    physics: Physics = ALL_LEARNED,
    report: Report = lambda stage, steps, loss: None,
    checkpoint: str | Path | None = None,
) -> Model:
    """Stage one alone: the deterministic model (N-GENN)."""
    check(config, seed)
    physics = physics.named(train.names)
    given, _ = hold_out(train, config, seed)
    learning = learnable(given, config, physics)
    coordinates, samples = prepare(learning, config, physics)
    key = jax.random.key(seed)

    def start():
        return physics.blocks(coordinates, len(train.names), config.width, config.depth, key=key)

    kept = open_checkpoint(checkpoint, "base", start, train, seed, config)
    blocks = fit_base(
        samples,
        coordinates,
        physics,
        config,
        key=key,
        report=lambda steps, loss: report("base", steps, loss),
        checkpoint=kept,
    )
    names = differing(given, learning)
    base = Model.of(train, seed, coordinates, Deterministic(blocks), config, names)
    step = kept.number("longest-step", lambda: find_step(base, learning))
    return replace(base, longest_step=step)


def add_uncertainty(
    base: Model,
    train: Trajectories,
    seed: int = 0,
    config: FitConfig = DEFAULT,
    report: Report = lambda stage, steps, loss: None,
    checkpoint: str | Path | None = None,
) -> Model:
    """Stage two alone: epinets on a deterministic model, which stays as it is."""
    check(config, seed)
    learning, validation = hold_out(train, config, seed)
    if base.provenance.contradicted:  # the same derivatives as the base has learned
        learning = in_agreement(learning, base.blocks.domain)
    samples = make_samples(learning, base.coordinates, config, base.blocks.domain)
    # Found amplitudes depend on the steps of forecasts.
    kept = open_checkpoint(
        checkpoint, "epinet", lambda: base.blocks, train, seed, config, base.longest_step
    )

    def at(amplitude):
        method = fit_epinet(
            base.blocks,
            samples,
            amplitude,
            config,
            key=jax.random.fold_in(jax.random.key(seed), 1),
            report=lambda steps, loss: report("epinet", steps, loss),
            checkpoint=kept,
        )
        return replace(base, method=method, config=config)

    if config.prior_scale is not None:
        return at(config.prior_scale)

    judged = judges(learning, validation, base.blocks.domain.cells)
    judge = cache(lambda: _judge(base, judged, seed))

    def factor(model):
        return kept.number(f"factor-{model.prior_scale!r}", lambda: judge()(model))

    def limited(amplitude):
        return float(np.clip(amplitude, *RANGE))

    model = at(PILOT)
    change = factor(model)
    if not 1 / NEAR < change < NEAR:
        # Far away spread is no longer proportional: train once more, close to where it should be.
        model = at(limited(PILOT * change))
        change = np.clip(factor(model), 1 / NEAR, NEAR)
    return model.with_prior_scale(limited(model.prior_scale * change))


def find_step(base: Model, learning: Trajectories) -> float:
    """The longest step of RK4, of one record or less, that half of it would not improve on by much.

    A model may be better than its integrator at the step of the data. By how much is seen on the
    forecasts of a few trajectories, per variable and on the typical one of them; errors that are
    rounding are all alike. Where that one diverges at every step tried, steps are not to blame.
    """
    data, record = learning[:FEWEST_JUDGES].on_one_grid(), learning.typical_step
    free, variables = _entries(base, data)
    truth, unit = data.states[:, 1:, free], base.coordinates.time_unit
    there, digit = np.isfinite(truth), jnp.finfo(jnp.result_type(float)).eps
    rounding = ROUNDING * digit * np.nanmax(np.abs(truth), (0, 1))

    def errors(step):
        chosen = Divided(RK4, jnp.asarray(step / unit, float))  # one program for all steps
        made = evaluate(
            base.method, base.coordinates, data, base.draw(1), required=0, integrator=chosen
        )
        squares = np.where(there, (made.summary.mean - truth) ** 2 + rounding**2, 0)
        each = [squares[..., variables == i].sum((1, 2)) for i in np.unique(variables)]
        return np.sqrt(np.median(np.nan_to_num(each, nan=np.inf), 1))

    return shortened(record, errors)


def shortened(record: float, errors: Callable[[float], np.ndarray]) -> float:
    """A step of one record, or a part of it, by the errors per variable that steps have."""
    best, now, tried = record, errors(record), record
    while tried > record / MOST_STEPS:
        tried = tried / 2
        finer = errors(tried)
        if np.any(np.isinf(finer)):
            continue
        if not np.any(now > WORTH_IT * finer):
            break
        best, now = tried, finer
    return best


def _entries(base: Model, data: Trajectories):
    """Entries of a state that are forecast, and the variable that each of them belongs to."""
    domain, size = base.blocks.domain, data.states.shape[-1]
    free = domain.free(size)
    return free, domain.variables(size)[free]


def _judge(base: Model, data: Trajectories, seed: int) -> Callable[[Model], float]:
    """A function that says by which factor the amplitude of a model on this base is off."""
    data = data.on_one_grid()
    free, variables = _entries(base, data)
    truth, chosen = data.states[:, 1:, free], base.integrator_for(data.times)
    known = np.isfinite(truth[..., 0])

    def forecast(model, indices):
        how = {"required": 0, "integrator": chosen}
        return evaluate(model.method, model.coordinates, data, indices, **how).summary

    plain = forecast(base.base, base.base.draw(1)).mean

    def factor(model):
        indices = model.draw(VALIDATION_SAMPLES, seed)
        summary = forecast(model, balanced(indices, INDICES[model.config.index]().mean))
        steady = (np.isfinite(plain + summary.mean).all(2) | ~known).all(1)
        if not steady.any():
            raise ValueError(
                "forecasts of all training trajectories leave the finite numbers: train for more "
                "steps, or on more trajectories."
            )
        error, shift = plain - truth, summary.mean - plain
        judged = Judged(*(a[steady] for a in (error, shift, summary.std)))
        return correction(judged, variables)

    return factor


def open_checkpoint(
    folder: str | Path | None,
    work: str,
    start: Callable[[], Blocks],
    train: Trajectories,
    seed: int,
    config: FitConfig,
    longest_step: float | None = None,
) -> Checkpoint:
    """What a folder keeps of some training; all that the result depends on must be the same.

    Functions that are known count by what they compute, from a state of the first blocks on.
    """
    if folder is None:
        return NOTHING
    blocks, state = start(), jnp.zeros(train.states.shape[-1])
    program = jax.jit(lambda x: Generic(blocks).velocity(x)).lower(state).as_text()
    return Checkpoint.of(
        Path(folder), work, program, vars(train), seed, repr((config, longest_step))
    )


def judges(learning: Trajectories, validation: Trajectories, cells: int) -> Trajectories:
    """What the amplitude is found on: all that was held out, then some that was learned from.

    Held-out trajectories tell of overfitting. As they are few, they may happen to be easy ones; the
    others guard against that. A trajectory of many cells tells as much as several.
    """
    number = max(JUDGES // cells, FEWEST_JUDGES)
    return concatenate(validation, learning[: max(0, number - len(validation))])


def prepare(
    learning: Trajectories, config: FitConfig, physics: Physics
) -> tuple[Coordinates, Samples]:
    """Scaled coordinates of some trajectories, and all their records in them."""
    coordinates = physics.domain.coordinates(*learning.records())
    return coordinates, make_samples(learning, coordinates, config, physics.domain)


def hold_out(
    train: Trajectories, config: FitConfig, seed: int
) -> tuple[Trajectories, Trajectories]:
    """Trajectories to learn from, and a few to find the prior scale on."""
    held = max(1, round(config.validation * len(train)))
    if len(train) <= held:
        raise ValueError(
            f"{len(train)} training trajectories are too few: one is held out to find the prior "
            "scale, so at least two are needed."
        )
    learning, validation = train.split(len(train) - held, held, seed=seed)
    return learning, validation


def learnable(train: Trajectories, config: FitConfig, physics: Physics) -> Trajectories:
    """Trajectories with the derivatives that are learned.

    Given ones stay if `config.agreeing` is false, and where some block is known: what is known of
    the exact equations goes with their rates.
    """
    if not config.agreeing or physics.known:
        return train
    return in_agreement(train, physics.domain)


def in_agreement(train: Trajectories, domain: AbstractDomain) -> Trajectories:
    """Trajectories with derivatives of their states where these contradict the given ones."""
    size = train.states.shape[-1]
    return agreeing(train, domain.variables(size), domain.equations(size))


def check(config: FitConfig, seed: int) -> None:
    """Refuse what cannot be fitted, with a sentence."""
    if seed < 0:
        raise ValueError(f"the seed must not be negative; it is {seed}.")
    if config.epinet_batch < PER_STATE:
        raise ValueError(
            f"a batch of stage two must hold at least {PER_STATE}; it is {config.epinet_batch}."
        )
    if config.prior_scale is not None and not config.prior_scale > 0:
        raise ValueError(f"the prior scale must be positive; it is {config.prior_scale}.")
    if not 0 <= config.bootstrap < np.inf:
        raise ValueError(f"the bootstrap must be a number from 0 on; it is {config.bootstrap}.")
    if config.members < 1 or not config.member_widths:
        raise ValueError("an ensemble needs at least one member, and a width for it.")
    if not 0 <= config.dropout < 1:
        raise ValueError(f"the rate of dropout must lie in [0, 1); it is {config.dropout}.")
    if config.index not in INDICES:
        raise ValueError(f"there is no index {config.index!r}; choose from {tuple(INDICES)}.")
