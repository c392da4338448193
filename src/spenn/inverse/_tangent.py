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
from ._setting import Fit, InverseConfig, Setting, learned

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
    physics = jax.vmap(lambda s: setting.equation(fit.network, fit, s))(points) * weight
    squares = [jnp.sum(e**2) for e in (physics, *setting.data_errors(fit), fit.source)]
    return jnp.sum(jnp.stack(squares))


_misfit = eqx.filter_jit(misfit)


@eqx.filter_jit
def _tangent(setting, fit, points, weight):
    unknown, fixed = eqx.partition(fit, learned(fit))
    theta, restore = ravel_pytree(unknown)

    def of(theta):
        return eqx.combine(restore(theta), fixed)

    def direct(theta):
        fit = of(theta)
        return jnp.concatenate([e.ravel() for e in (*setting.data_errors(fit), fit.source)])

    def physics(s):
        def left(theta):
            fit = of(theta)
            value = weight * setting.equation(fit.network, fit, s)
            return value, value

        slopes, value = jax.jacrev(left, has_aux=True)(theta)
        return value, slopes

    values, slopes = lax.map(physics, points, batch_size=BATCH)
    return (
        (direct(theta), values.ravel()),
        (jax.jacrev(direct)(theta), slopes.reshape(-1, theta.size)),
    )


def precision(problem: Problem, fit: Fit, config: InverseConfig) -> Float[np.ndarray, " unknown"]:
    """One over the prior variance of every unknown; that of the source is among the errors."""
    unknown = eqx.filter(fit, learned(fit))
    every = jax.tree.map(lambda a: jnp.full_like(a, config.prior**-2), unknown)
    priors = jnp.array([parameter.prior**-2 for parameter in problem.parameters.values()])
    source = jnp.zeros_like(unknown.source)
    every = eqx.tree_at(lambda f: (f.raw, f.source), every, (priors, source))
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
    prior, damping = precision(problem, fit, config), 1.0
    for number in range(POLISH):
        points, weight = points_and_weight(problem, setting, jax.random.fold_in(key, number))
        errors, slopes = tangent(setting, fit, points, weight)
        factor = root_of(slopes, damping * prior)
        moved = _moved(fit, -scipy.linalg.cho_solve((factor, True), slopes.T @ errors))
        if _misfit(setting, moved, points, weight) < np.sum(errors**2):
            fit, damping = moved, max(1.0, damping / 3)
        else:
            damping *= 5
    return fit


def _moved(fit: Fit, step: Float[np.ndarray, " unknown"]) -> Fit:
    unknown, fixed = eqx.partition(fit, learned(fit))
    theta, restore = ravel_pytree(unknown)
    return eqx.combine(restore(theta + jnp.asarray(step, theta.dtype)), fixed)
