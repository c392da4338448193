"""Losses of the two stages: weighted squares of velocity residuals."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..config import FitConfig
from ..data import Trajectories
from ..epinet import SPENN
from ..generic import Blocks, Coordinates, Generic
from ._loop import Samples


def make_samples(data: Trajectories, coordinates: Coordinates, config: FitConfig) -> Samples:
    """All records of all trajectories, scaled and weighted."""
    size = data.states.shape[-1]
    exact = coordinates.on_host()
    states = exact.scaled(data.states.reshape(-1, size))
    velocities = exact.scaled_velocity(data.derivatives.reshape(-1, size))
    weights = loss_weights(velocities, config.component_exponent, config.speed_floor)
    arrays = (states, velocities, weights)
    return Samples(*(jnp.asarray(a, float) for a in arrays))


def loss_weights(
    velocities: Float[np.ndarray, "n d"], component_exponent: float, speed_floor: float
) -> Float[np.ndarray, "n d"]:
    """Weights between absolute and relative errors, over components and over states.

    The exponent lies between 0, components as they are, and 1, components of equal spread. The
    floor is a share of the root mean square speed: above it residuals are relative errors, so that
    trajectories near rest are learned as well as those far from it.
    """
    spread = velocities.std(0)
    spread = np.where(spread > 0, spread, 1.0)
    components = spread ** (-2 * component_exponent)
    square = np.mean(components * velocities**2, 1)
    states = 1 / (square / square.mean() + speed_floor**2)
    return components * (states / states.mean())[:, None]


def base_loss(blocks: Blocks, samples: Samples, key: PRNGKeyArray) -> Float[Array, ""]:
    """Weighted mean square of what the base leaves of the velocities."""
    del key
    velocities = jax.vmap(Generic(blocks).velocity)(samples.states)
    return _mean_square(velocities, samples)


def epinet_loss(model: SPENN, samples: Samples, key: PRNGKeyArray) -> Float[Array, ""]:
    """The same for one fresh realisation per state, in units of the squared amplitude."""
    indices = model.draw(len(samples.states), key=key)
    velocities = jax.vmap(lambda x, z: model.realise(z).velocity(x))(samples.states, indices)
    return _mean_square(velocities, samples) / model.amplitude**2


def _mean_square(velocities, samples):
    residuals = velocities - samples.velocities
    return jnp.mean(jnp.sum(samples.weights * residuals**2, -1))
