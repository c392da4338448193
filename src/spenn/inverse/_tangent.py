"""All errors of a fit as one vector, and how it answers to every unknown.

Errors are in their own units: measurements in those of the noise, the equation in those of its
tolerance, coefficients of the source in those of their prior. Half the sum of their squares is the
negative logarithm of the posterior, but for the prior of the network's weights.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from ._problem import Problem
from ._setting import Fit, InverseConfig, Setting, as_vector, learned

# Points of the equation per point of a training step; points whose slopes are held at once.
DENSER = 10
BATCH = 50
POLISH = 10


class Tangent(NamedTuple):
    """Errors and their slopes by all unknowns, in double precision."""

    errors: Float[np.ndarray, " row"]
    slopes: Float[np.ndarray, "row unknown"]


def points_and_weight(
    problem: Problem, setting: Setting, key: PRNGKeyArray
) -> tuple[Float[Array, "point d"], float]:
    """Many points, and the weight that makes them count as much as those of training did."""
    points = setting.collocation(key, DENSER * problem.collocation)
    return points, DENSER**-0.5 / problem.tolerance


def tangent(setting: Setting, fit: Fit, points: Float[Array, "point d"], weight: float) -> Tangent:
    """Errors of a fit and their slopes."""
    blocks = _tangent(setting, fit, points, weight)
    return Tangent(*(np.concatenate([np.asarray(b, np.float64) for b in part]) for part in blocks))


def misfit(
    setting: Setting, fit: Fit, points: Float[Array, "point d"], weight: Any
) -> Float[Array, ""]:
    """Sum of the squares of all errors."""
    errors = [
        jax.vmap(lambda s: setting.equation(fit.network, fit, s))(points) * weight,
        setting.field.errors(fit.network),
        setting.measured_source.errors(lambda s: setting.source(fit.source, s)),
        setting.prior_errors(fit),
    ]
    return jnp.sum(jnp.stack([jnp.sum(e**2) for e in errors]))


_misfit = eqx.filter_jit(misfit)


@eqx.filter_jit
def _tangent(setting, fit, points, weight):
    theta, of = as_vector(fit)
    field, source = setting.field, setting.measured_source

    def physics(theta, s):
        return weight * setting.equation(of(theta).network, of(theta), s)

    def field_error(theta, s, value):
        return field.error(of(theta).network(s), value)

    def source_error(theta, s, value):
        return source.error(setting.source(of(theta).source, s), value)

    def prior(theta):
        return setting.prior_errors(of(theta))

    blocks = [
        slopes_by_row(physics, theta, points),
        slopes_by_row(field_error, theta, field.points, field.values),
        (prior(theta), jax.jacrev(prior)(theta)),
    ]
    if len(source.points):
        blocks.append(slopes_by_row(source_error, theta, source.points, source.values))
    return tuple(zip(*blocks, strict=True))


def slopes_by_row(function, theta, *rows):
    """Values of `function(theta, *row)` and their slopes by `theta`, some rows at a time."""

    def both(theta, row):
        value = function(theta, *row)
        return value, value

    slopes, values = lax.map(
        lambda row: jax.jacrev(both, has_aux=True)(theta, row), rows, batch_size=BATCH
    )
    return values.ravel(), slopes.reshape(-1, theta.size)


def precision(fit: Fit, config: InverseConfig) -> Float[np.ndarray, " unknown"]:
    """One over the prior variance of every weight; other priors are among the errors."""
    unknown = eqx.filter(fit, learned(fit))
    every = jax.tree.map(lambda a: jnp.full_like(a, config.prior**-2), unknown)
    nothing = (jnp.zeros_like(unknown.raw), jnp.zeros_like(unknown.source))
    every = eqx.tree_at(lambda f: (f.raw, f.source), every, nothing)
    return np.asarray(ravel_pytree(every)[0], np.float64)


def root_of(slopes: Float[np.ndarray, "row n"], prior: Float[np.ndarray, " n"]) -> np.ndarray:
    """Lower Cholesky factor of `J' J + A`."""
    return scipy.linalg.cholesky(slopes.T @ slopes + np.diag(prior), lower=True)


def polish(problem: Problem, fit: Fit, config: InverseConfig, *, key: PRNGKeyArray) -> Fit:
    """Gauss-Newton steps to the bottom of the misfit, where SOAP only comes near.

    The prior of the weights damps each of them, centred on where the step starts, and more so after
    one that failed. Points are fresh in every step: the equation must not be solved at some points
    at the cost of the others.
    """
    setting = Setting.of(problem)
    prior, damping = precision(fit, config), 1.0
    for number in range(POLISH):
        points, weight = points_and_weight(problem, setting, jax.random.fold_in(key, number))
        errors, slopes = tangent(setting, fit, points, weight)
        theta, of = as_vector(fit)
        step = scipy.linalg.cho_solve((root_of(slopes, damping * prior), True), slopes.T @ errors)
        moved = of(theta - jnp.asarray(step, theta.dtype))
        if _misfit(setting, moved, points, weight) < np.sum(errors**2):
            fit, damping = moved, max(1.0, damping / 3)
        else:
            damping *= 5
    return fit
