"""Networks side by side give what they give one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spenn.networks import MLP, PICNN, parallel_mlps, parallel_picnns
from support import randomised

KEY = jax.random.key(0)


def _several(make, count=3):
    return [randomised(make, seed=s) for s in range(count)]


@pytest.mark.parametrize("depth", [1, 2])
def test_mlps(x64, depth):
    networks = _several(lambda: MLP(4, 2, 5, depth, key=KEY))
    x = jnp.asarray(np.random.default_rng(0).normal(size=4))
    separate = jnp.concatenate([n(x) for n in networks])
    np.testing.assert_allclose(parallel_mlps(networks)(x), separate, rtol=1e-13)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("monotone_size", [0, 3])
def test_picnns(x64, depth, monotone_size):
    networks = _several(lambda: PICNN(4, 2, 1, 5, depth, monotone_size=monotone_size, key=KEY))
    rng = np.random.default_rng(0)
    x, y, m = (jnp.asarray(rng.normal(size=n)) for n in (4, 2, monotone_size))
    m = m if monotone_size else None
    separate = jnp.concatenate([n(x, y, m) for n in networks])
    joined = parallel_picnns(networks)
    np.testing.assert_allclose(joined(x, jnp.tile(y, 3), m), separate, rtol=1e-13)
