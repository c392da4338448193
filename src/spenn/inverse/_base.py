"""Stage one: a physics-informed network and one value of the parameters.

The loss is twice the negative logarithm of a posterior, but for the prior of the weights:
measurements by their noise, the equation by its tolerance, constants by their priors. A tight
tolerance from the start would freeze the network in the first field that solves the equation,
whatever the data say, so it is tightened over the first half of training.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..training import CHUNK, advance, begin, member, stack
from ._problem import Problem
from ._setting import Fit, InverseConfig, Setting, learned, start
from ._tangent import misfit, polish

LOOSE = 100.0


class Training(eqx.Module):
    """What the optimiser sees: a fit, to be changed, and all that stays."""

    fit: Fit
    setting: Setting
    tolerance: Float[Array, ""]
    collocation: int = eqx.field(static=True)


def fit_base(
    problem: Problem,
    config: InverseConfig,
    *,
    key: PRNGKeyArray,
    report: Callable[[int, float], None] = lambda steps, loss: None,
) -> Fit:
    """The field and the parameters that are likeliest: SOAP near them, Gauss-Newton to them."""
    setting = Setting.of(problem)
    fit = start(problem, setting, config, jax.random.fold_in(key, 0))
    model = Training(fit, setting, jnp.zeros(()), problem.collocation)
    nothing = jax.tree.map(lambda _: False, model)
    unknown, fixed = eqx.partition(model, eqx.tree_at(lambda m: m.fit, nothing, learned(fit)))
    progress = begin(stack([unknown]))
    for done in range(0, config.steps, CHUNK):
        tight = min(1.0, 2 * done / config.steps)
        tolerance = jnp.asarray(problem.tolerance * LOOSE ** (1 - tight), float)
        progress, _ = advance(
            posterior_loss,
            progress,
            eqx.tree_at(lambda m: m.tolerance, fixed, tolerance),
            None,
            until=min(done + CHUNK, config.steps),
            total=config.steps,
            learning_rate=config.learning_rate,
            key=jax.random.fold_in(key, 1),
            report=report,
        )
    fit = eqx.combine(member(progress.trainable, 0), fixed).fit
    return polish(problem, fit, config, key=jax.random.fold_in(key, 2))


def posterior_loss(model: Training, samples: None, key: PRNGKeyArray) -> Float[Array, ""]:
    """Squares of all errors in their units, the equation at fresh points."""
    points = model.setting.collocation(key, model.collocation)
    return misfit(model.setting, model.fit, points, 1 / model.tolerance)
