"""Tensors by what they do, against einsum."""

import jax.numpy as jnp
import numpy as np
import pytest

from spenn.networks import Tensor


@pytest.mark.parametrize("leading", [(), (2,)])
def test_rows_are_skew_parts_times_the_vector(x64, leading):
    rng = np.random.default_rng(0)
    entries, vector = rng.normal(size=(*leading, 4, 4, 4)), rng.normal(size=4)
    skew = entries - np.swapaxes(entries, -1, -2)
    q = Tensor(jnp.asarray(entries))(jnp.asarray(vector))
    np.testing.assert_allclose(q, np.einsum("...ijk,k->...ij", skew, vector), rtol=1e-13)
    np.testing.assert_allclose(q @ vector, 0, atol=1e-14)
