"""Tensors by what they do, against einsum."""

import jax.numpy as jnp
import numpy as np
import pytest

from spenn.networks import Tensor


@pytest.mark.parametrize("leading", [(), (2,)])
def test_contract_and_expand(x64, leading):
    rng = np.random.default_rng(0)
    entries, matrix = rng.normal(size=(*leading, 4, 4, 4)), rng.normal(size=(4, 4))
    tensor = Tensor(jnp.asarray(entries))
    skew = entries - np.swapaxes(entries, -1, -2)
    np.testing.assert_allclose(
        tensor.contract(matrix), np.einsum("...ijk,jk->...i", entries, matrix), rtol=1e-13
    )
    np.testing.assert_allclose(
        tensor.expand(matrix), np.einsum("...ijk,ik->...j", skew, matrix), rtol=1e-13
    )
