"""Softplus and its derivatives against closed forms and those of JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from spenn.networks import product, softplus

POINTS = np.concatenate(
    [
        np.linspace(-30, 30, 601),
        [0.0, -0.0, 1e-30, -1e-30, 1e-8, -1e-8, 80, -80, 200, -200, 1e4, -1e4],
    ]
)


def _nth_derivative(function, n):
    for _ in range(n):
        function = jax.grad(function)
    return jax.vmap(function)


EXACT = (
    lambda x: np.logaddexp(x, 0),
    expit,
    lambda x: expit(x) * expit(-x),
    lambda x: -np.tanh(x / 2) * expit(x) * expit(-x),
)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_softplus_and_its_derivatives(dtype, order):
    points = jnp.asarray(POINTS, dtype)
    ours, library = (
        np.asarray(_nth_derivative(f, order)(points)) for f in (softplus, jax.nn.softplus)
    )
    assert ours.dtype == dtype
    eps = jnp.finfo(dtype).eps
    # Values and slopes are accurate even where they are tiny; higher derivatives cancel at large x.
    floor = jnp.finfo(dtype).tiny if order < 2 else 2 * eps
    np.testing.assert_allclose(
        ours, EXACT[order](np.asarray(points, np.float64)), rtol=8 * eps, atol=floor
    )
    np.testing.assert_allclose(ours, library, rtol=64 * eps, atol=16 * eps)


@pytest.mark.parametrize("order, value", [(0, np.log(2)), (1, 0.5), (2, 0.25), (3, 0.0)])
def test_softplus_at_zero(dtype, order, value):
    for zero in (0.0, -0.0):
        ours = _nth_derivative(softplus, order)(jnp.full(1, zero, dtype))
        np.testing.assert_allclose(ours, value, rtol=2 * jnp.finfo(dtype).eps)


def test_softplus_forward_and_reverse_derivatives_agree():
    points = jnp.asarray(POINTS, jnp.float32)
    forward = jax.vmap(jax.jacfwd(jax.jacfwd(softplus)))(points)
    np.testing.assert_allclose(forward, _nth_derivative(softplus, 2)(points), rtol=1e-5)


def test_product_asks_for_full_precision():
    matrix, vector = jnp.ones((2, 3)), jnp.ones(3)
    text = str(jax.make_jaxpr(product)(matrix, vector))
    assert "HIGHEST" in text
    np.testing.assert_array_equal(product(matrix, vector), [3, 3])
