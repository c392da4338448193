"""Slopes in use are the derivatives of the values: no gradient is stopped on the way.

With stopped features `DE . dx/dt = 0` still reads zero while the energy itself drifts.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spenn.generic import Generic
from support import central_difference, random_blocks, random_spenn

SIZE = 4


def _field(kind, seed):
    if kind == "base":
        return Generic(random_blocks(SIZE, seed=seed, gain=(1.0, 1.0)))
    model = random_spenn(SIZE, seed=seed, gain=(1.0, 1.0))
    return model.realise(model.draw(1, key=jax.random.key(seed))[0])


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", ["base", "realisation"])
def test_slopes_against_finite_differences(x64, kind, seed):
    field = _field(kind, seed)
    x, y = jnp.asarray(np.random.default_rng(seed).normal(size=(2, SIZE)))

    @jax.jit
    def both(x, y):
        def raw(y):
            return sum(part(x, y) for part in field.blocks.dissipation)

        exact = (
            jax.grad(field.energy)(x),
            jax.grad(field.entropy)(x),
            field.dissipation_slope(x, y),
        )
        values = ((field.energy, x), (field.entropy, x), (raw, y))
        return exact, tuple(central_difference(f, at) for f, at in values)

    for exact, differences in zip(*both(x, y), strict=True):
        assert np.linalg.norm(exact) > 1e-3
        np.testing.assert_allclose(exact, differences, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["base", "realisation"])
def test_rates_are_the_derivatives_of_the_values_along_the_velocity(x64, kind):
    field = _field(kind, 2)
    x = jnp.asarray(np.random.default_rng(2).normal(size=SIZE))

    @jax.jit
    def both(x):
        rates = field.rates(x)
        step = 1e-5 * rates.velocity
        differences = [(f(x + step) - f(x - step)) / 2e-5 for f in (field.energy, field.entropy)]
        return rates, differences

    rates, (energy_rate, entropy_rate) = both(x)
    np.testing.assert_allclose(energy_rate, 0, atol=1e-8)
    np.testing.assert_allclose(rates.entropy_rates[0], entropy_rate, rtol=1e-6)
    assert entropy_rate > 1e-3
