"""A PICNN is convex in `y`, convex and non-decreasing in `m`, for every setting of its weights."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spenn.networks import PICNN, NonNegative
from support import randomised

STATE, CONVEX, MONOTONE, OUT = 3, 4, 2, 2
NETWORKS, POINTS = 60, 20


def _networks(depth, monotone_size=MONOTONE):
    key = jax.random.key(0)
    return randomised(
        lambda: PICNN(STATE, CONVEX, OUT, 6, depth, monotone_size=monotone_size, key=key),
        count=NETWORKS,
        gain=(0.3, 8.0),
    )


def _points(seed=1):
    rng = np.random.default_rng(seed)
    x, y, m = (2 * rng.normal(size=(NETWORKS, POINTS, n)) for n in (STATE, CONVEX, MONOTONE))
    return jnp.asarray(x), jnp.concatenate([jnp.asarray(y), jnp.asarray(m)], -1)


def _value(network, x, ym):
    return network(x, ym[:CONVEX], ym[CONVEX:])


def _everywhere(function):
    """Over networks, and over points of each."""
    per_network = lambda network, *points: jax.vmap(lambda *p: function(network, *p))(*points)  # noqa: E731
    return eqx.filter_jit(eqx.filter_vmap(per_network))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_hessian_has_no_negative_eigenvalue(x64, depth):
    x, ym = _points()
    hessians = _everywhere(lambda n, *p: jax.hessian(_value, 2)(n, *p))(_networks(depth), x, ym)
    eigenvalues = np.linalg.eigvalsh(hessians)
    assert eigenvalues.shape == (NETWORKS, POINTS, OUT, CONVEX + MONOTONE)
    largest = eigenvalues[..., -1:]
    assert np.max(largest) > 1e-2
    assert np.all(eigenvalues >= -1e-12 * largest - 1e-300)


@pytest.mark.parametrize("depth", [1, 2])
def test_chords_lie_above(x64, depth):
    x, start = _points()
    _, end = _points(seed=2)
    value, networks = _everywhere(_value), _networks(depth)
    below = value(networks, x, (start + end) / 2)
    ends = value(networks, x, start), value(networks, x, end)
    gap = (ends[0] + ends[1]) / 2 - below
    assert np.all(gap >= -1e-13 * (np.abs(below) + np.abs(ends[0]) + np.abs(ends[1])))
    assert np.median(gap) > 1e-3


@pytest.mark.parametrize("depth", [1, 2])
def test_never_falls_in_the_monotone_input(x64, depth):
    x, ym = _points()
    slopes = _everywhere(lambda n, *p: jax.jacrev(_value, 2)(n, *p))(_networks(depth), x, ym)
    assert np.all(slopes[..., CONVEX:] >= 0)
    assert np.any(slopes[..., CONVEX:] > 1e-2)
    assert np.any(slopes[..., :CONVEX] < -1e-2)  # in y it may fall


@pytest.mark.parametrize("depth", [1, 2])
def test_is_free_in_the_state(x64, depth):
    x, ym = _points()
    hessians = _everywhere(lambda n, *p: jax.hessian(_value, 1)(n, *p))(_networks(depth), x, ym)
    assert np.min(np.linalg.eigvalsh(hessians)) < -1e-2


def test_works_without_a_monotone_input():
    network = PICNN(STATE, CONVEX, OUT, 6, 2, key=jax.random.key(0))
    assert network(jnp.ones(STATE), jnp.ones(CONVEX)).shape == (OUT,)


def test_starts_at_order_one():
    network = PICNN(10, 10, 200, 50, 2, key=jax.random.key(0))
    values = network(jnp.ones(10), jnp.ones(10))
    assert 0.2 < float(jnp.mean(values)) < 5


def test_non_negative_matrix(x64):
    matrix = NonNegative(3, 2, key=jax.random.key(0))
    np.testing.assert_allclose(matrix(jnp.eye(3)[1]), matrix.root[:, 1] ** 2, rtol=1e-15)
