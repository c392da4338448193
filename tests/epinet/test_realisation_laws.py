"""Every realisation obeys both laws: random networks, states and indices."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spenn.epinet import INDICES
from support import assert_lawful, law_errors, random_spenn

NETWORKS, PAIRS = 200, 100


def _index(law, shape):
    return law.draw(shape, key=jax.random.key(5))


@pytest.mark.parametrize("size, law", [(3, "half-normal"), (6, "uniform"), (16, "exponential")])
def test_laws(dtype, size, law):
    models = random_spenn(size, law=law, count=NETWORKS)
    states = jnp.asarray(2 * np.random.default_rng(0).normal(size=(NETWORKS, PAIRS, size)))
    indices = _index(INDICES[law](), (NETWORKS, PAIRS, 3))

    @eqx.filter_jit
    @eqx.filter_vmap
    def errors(model, states, indices):
        return jax.vmap(lambda x, z: law_errors(model.realise(z), x))(states, indices)

    found = errors(models, states, indices)
    assert found.energy.shape == (NETWORKS, PAIRS) and found.energy.dtype == dtype
    assert_lawful(found)


@pytest.mark.parametrize("law", INDICES)
def test_dissipation_stays_convex_at_any_amplitude(x64, law):
    networks, pairs, size = 60, 20, 4
    models = random_spenn(size, law=law, count=networks, amplitude=10.0)
    rng = np.random.default_rng(1)
    x, y = jnp.asarray(2 * rng.normal(size=(2, networks, pairs, size)))
    indices = _index(INDICES[law](), (networks, pairs, 3))

    @eqx.filter_jit
    @eqx.filter_vmap
    def hessians(model, x, y, z):
        def one(x, y, z):
            (part,) = model.realise(z).blocks.dissipation
            return jax.hessian(part, 1)(x, y)

        return jax.vmap(one)(x, y, z)

    eigenvalues = np.linalg.eigvalsh(hessians(models, x, y, indices))
    largest = eigenvalues[..., -1:]
    assert np.all(largest > 0)
    assert np.all(eigenvalues >= -1e-12 * largest)
