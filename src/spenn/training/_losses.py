"""Losses of the two stages: weighted squares of velocity residuals."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..data import Trajectories
from ..epinet import SPENN
from ..generic import Blocks, Coordinates, Generic
from ._loop import Samples

COMPONENT_EXPONENT = 0.75
SPEED_FLOOR = 0.3


def make_samples(data: Trajectories, coordinates: Coordinates) -> Samples:
    """All records of all trajectories, scaled and weighted."""
    size = data.states.shape[-1]
    exact = coordinates.on_host()
    states = exact.scaled(data.states.reshape(-1, size))
    velocities = exact.scaled_velocity(data.derivatives.reshape(-1, size))
    arrays = (states, velocities, loss_weights(velocities))
    return Samples(*(jnp.asarray(a, float) for a in arrays))


def loss_weights(velocities: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """Weights between absolute and relative errors, over components and over states.

    Components count with their spread to the power of -1.5, between none (0) and full (-2)
    normalisation. States count with one over their squared speed, floored at 0.3 of its root mean
    square: residuals then are relative errors where the system moves, and trajectories near rest
    are learned as well as those far from it.
    """
    spread = velocities.std(0)
    spread = np.where(spread > 0, spread, 1.0)
    components = spread ** (-2 * COMPONENT_EXPONENT)
    square = np.mean(components * velocities**2, 1)
    states = 1 / (square / square.mean() + SPEED_FLOOR**2)
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
