"""Losses of the two stages: weighted squares of velocity residuals."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ..config import FitConfig
from ..data import Trajectories
from ..epinet import SPENN
from ..generic import AbstractDomain, Blocks, Coordinates, Generic, Point
from ._loop import Samples

POINT = Point()
PER_STATE = 4  # indices that meet one state in a step of stage two
AT_ONCE = 4096  # states whose residuals are taken together
ROUNDING = 100  # residuals of so many units of rounding, next to velocities, are none


def make_samples(
    data: Trajectories,
    coordinates: Coordinates,
    config: FitConfig,
    domain: AbstractDomain = POINT,
) -> Samples:
    """All records of all trajectories, scaled and weighted."""
    exact = coordinates.on_host()
    variables = domain.variables(data.states.shape[-1])
    states, derivatives = data.records()
    states, velocities = exact.scaled(states), exact.scaled_velocity(derivatives)
    weights = loss_weights(velocities, config.component_exponent, config.speed_floor, variables)
    weights[:, list(domain.prescribed)] = 0
    states, velocities, weights = (jnp.asarray(a, float) for a in (states, velocities, weights))
    owners = np.repeat(np.arange(len(data)), data.lengths)
    return Samples(states, velocities, weights, jnp.asarray(owners))


def loss_weights(
    velocities: Float[np.ndarray, "n d"],
    component_exponent: float,
    speed_floor: float,
    variables: Int[np.ndarray, " d"],
) -> Float[np.ndarray, "n d"]:
    """Weights between absolute and relative errors, over components and over states.

    Entries of one variable share their weight. The exponent lies between 0, components as they are,
    and 1, components of equal spread. The floor is a share of the root mean square speed: above it
    residuals are relative errors, so that trajectories near rest are learned as well as others.
    """
    variance = velocities.var(0)
    pooled = np.bincount(variables, variance) / np.bincount(variables)
    spread = np.sqrt(np.where(pooled > 0, pooled, 1.0))[variables]
    components = spread ** (-2 * component_exponent)
    square = np.mean(components * velocities**2, 1)
    states = 1 / (square / square.mean() + speed_floor**2)
    return components * (states / states.mean())[:, None]


def base_loss(blocks: Blocks, samples: Samples, key: PRNGKeyArray) -> Float[Array, ""]:
    """Weighted mean square of what the base leaves of the velocities."""
    del key
    velocities = jax.vmap(Generic(blocks).velocity)(samples.states)
    return _mean(samples.weights * (velocities - samples.velocities) ** 2)


class Resampled(NamedTuple):
    """Samples, and by how much the velocities that a realisation learns differ from theirs.

    By `w (draw . (z - E[z])) residual`, where `residual` is what the base leaves of a velocity, all
    of them blown up to the size of velocities unless they are rounding, and `draw` is the
    trajectory's own: a wild bootstrap over trajectories. Realisations then differ more where the
    base is more often wrong.
    """

    samples: Samples
    residuals: Float[Array, "n d"]
    draws: Float[Array, "n k"]


@eqx.filter_jit
def resample(base: Blocks, samples: Samples, draws: Float[Array, "trajectory k"]) -> Resampled:
    """Samples for stage two on a base, with one draw per trajectory."""
    velocities = lax.map(Generic(base).velocity, samples.states, batch_size=AT_ONCE)
    residuals = velocities - samples.velocities
    moved, left = (_mean(samples.weights * v**2) for v in (samples.velocities, residuals))
    numbers = jnp.finfo(residuals.dtype)
    left = jnp.maximum(left, (ROUNDING * numbers.eps) ** 2 * moved + numbers.tiny)
    return Resampled(samples, residuals * jnp.sqrt(moved / left), draws[samples.trajectories])


def epinet_loss(
    model: SPENN, resampled: Resampled, key: PRNGKeyArray, mean_weight: float
) -> Float[Array, ""]:
    """Residuals of realisations and of their mean, in units of the squared amplitude.

    Each state meets several fresh indices, as many in all as there are samples, so fewer states are
    used. The products of the residuals of different indices estimate, without bias, the squared
    residual of the mean over all indices. Left to itself the mean strays from the data by as much
    as the realisations do; weighted up, it stays where the base is, or comes closer.
    """
    few, left, draws = jax.tree.map(lambda a: a[: len(a) // PER_STATE], resampled)
    indices = model.draw(len(few.states) * PER_STATE, key=key)
    indices = indices.reshape(len(few.states), PER_STATE, -1)
    every = jax.vmap(jax.vmap(lambda x, z: model.realise(z).velocity(x), (None, 0)))
    lots = model.amplitude * jnp.sum(draws[:, None] * (indices - model.law.mean), -1)
    wanted = few.velocities[:, None] + lots[..., None] * left[:, None]
    residuals = every(few.states, indices) - wanted
    squares = jnp.sum(residuals**2, 1)
    products = jnp.sum(residuals, 1) ** 2 - squares
    each = _mean(few.weights * squares) / PER_STATE
    mean = _mean(few.weights * products) / (PER_STATE * (PER_STATE - 1))
    return (each + mean_weight * mean) / model.amplitude**2


def _mean(terms):
    return jnp.mean(jnp.sum(terms, -1))
