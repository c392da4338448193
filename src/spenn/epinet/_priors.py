"""Prior scaling: every prior starts as large as the block it perturbs.

Sizes are root mean squares over the training states of what the block contributes to the velocity:
the gradient for energy and entropy, the entries for the raw operator and the tensor, the slope
difference for dissipation. The amplitude `w` then reads as a relative perturbation.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..generic import Generic, LearnedDissipation, without
from ..networks import MLP, PICNN, Linear
from ._epinet import ConvexEpinet, Epinet, GlobalEpinet, condition_of
from ._spenn import SPENN, PoissonEpinet

# Convex priors can only add dissipation, also where there is none: a bias, hence a small one. The
# gain on the base, which has no bias, is what dissipation is perturbed by.
CONVEX_SHARE = 0.02


def scale_priors(model: SPENN, states: Float[Array, "n d"]) -> SPENN:
    """Scale all prior branches of a freshly attached model to their blocks."""
    base, domain = Generic(model.base), model.base.domain
    local = jax.vmap(domain.local)(states)
    local = local.reshape(-1, local.shape[-1])
    inner = domain.internal(local)
    energy_slopes = domain.internal(jax.vmap(jax.grad(base.energy_density))(local))
    entropy_slopes = jax.vmap(jax.grad(base.entropy_density))(inner)
    forces = jax.vmap(lambda e, s: without(domain.moving(e), domain.moving(s)))(
        energy_slopes, entropy_slopes
    )

    def scaled(name, part, epinet):
        match epinet:
            case Epinet():
                read = part.read(inner if name == "entropy" else local)
                return _scale_gradient(part.network, epinet, read)
            case PoissonEpinet():
                network = _scale_entries(part.network, epinet.network, states)
                return PoissonEpinet(network, _scale_tensor(part.tensor, epinet.tensor))
            case ConvexEpinet():
                return _scale_slope(part, epinet, local, forces)
            case _:
                return None

    return eqx.tree_at(
        lambda m: m.epinets,
        model,
        type(model.epinets)(
            *(
                tuple(map(partial(scaled, n), getattr(model.base, n), getattr(model.epinets, n)))
                for n in model.epinets.__dataclass_fields__
            )
        ),
    )


def _rms(values, axis=None):
    return jnp.sqrt(jnp.mean(values**2, axis))


def _scale_gradient(network: MLP, epinet: Epinet, states):
    base = jax.vmap(jax.jacrev(network))(states)
    prior = jax.vmap(jax.jacrev(lambda x: epinet.prior(_features(network, x))))(states)
    return _set(epinet, _rms(base), _rms(prior, (0, 2)))


def _scale_entries(network: MLP, epinet: Epinet, states):
    base = jax.vmap(network)(states)
    prior = jax.vmap(lambda x: epinet.prior(_features(network, x)))(states)
    return _set(epinet, _rms(base), _rms(prior.reshape(len(states), -1, base.shape[1]), (0, 2)))


def _scale_tensor(tensor, epinet: GlobalEpinet):
    sizes = _rms(epinet.prior, range(1, epinet.prior.ndim))
    prior = epinet.prior / sizes.reshape(-1, *(1,) * tensor.ndim)
    return eqx.tree_at(lambda e: (e.prior, e.unit), epinet, (prior, _rms(tensor)))


def _scale_slope(part: LearnedDissipation, epinet: ConvexEpinet, states, forces):
    network: PICNN = part.network

    def prior(x, y):
        features = network.features(x, y)
        return epinet.prior(
            condition_of(features, x), jnp.tile(y, epinet.gain.size), features.convex
        )

    def slope_difference(function):
        slope = jax.vmap(jax.jacrev(function, 1))
        return slope(states, forces) - slope(states, jnp.zeros_like(forces))

    base_slope, prior_slopes = slope_difference(network), slope_difference(prior)
    size, sizes = _rms(base_slope), _rms(prior_slopes, (0, 2))
    # Take out of each prior what it has in common with the base: on average a realisation then
    # dissipates as much as the base does.
    common = jnp.mean(prior_slopes * base_slope, (0, 2)) / (sizes * size)
    root = epinet.prior.mix.root / jnp.sqrt(sizes)[:, None]
    conditions = jax.vmap(lambda x, y: condition_of(network.features(x, y), x))(states, forces)
    gains = _rms(jax.vmap(epinet.local_gain.prior)(conditions), 0)
    return eqx.tree_at(
        lambda e: (e.prior.mix.root, e.unit, e.local_gain, e.gain),
        epinet,
        (
            root,
            CONVEX_SHARE * size,
            _set(epinet.local_gain, jnp.ones(()), gains),
            -CONVEX_SHARE * common,
        ),
    )


def _features(network: MLP, x):
    return jnp.concatenate([network.hidden(x), x])


def _set(epinet: Epinet, unit, sizes) -> Epinet:
    readout: Linear = epinet.prior.readout
    rows = jnp.repeat(sizes, readout.bias.size // sizes.size)
    return eqx.tree_at(
        lambda e: (e.unit, e.prior.readout.weight, e.prior.readout.bias),
        epinet,
        (unit, readout.weight / rows[:, None], readout.bias / rows),
    )
