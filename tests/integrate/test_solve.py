"""Implicit equations: what sweeps alone solve, what they do not, and derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spenn.integrate._solve import NEWTON, SWEEPS, fixed_point

SHIFT = np.array([1.0, -2.0, 0.5])


def solved(sweep, guess, tolerance):
    """The fixed point of a sweep that tells nothing beside."""
    return fixed_point(lambda v: (sweep(v), ()), guess, tolerance)


def _linear(factor):
    """A map that stretches all differences by about the factor, turning them as well."""
    turn = factor * jnp.array([[0.0, -1.0, 0.1], [1.0, 0.0, 0.0], [0.0, 0.2, -0.7]])
    return lambda v: jnp.dot(turn, v, precision="highest") + SHIFT, jnp.eye(3) - turn


@pytest.mark.parametrize("factor", [0.0, 0.5, 0.99, 3.0, 100.0])
def test_a_linear_map_is_solved_however_it_stretches(dtype, factor):
    sweep, matrix = _linear(factor)
    tolerance = 100 * jnp.finfo(dtype).eps * (1 + factor)
    found = jax.jit(lambda v: solved(sweep, v, tolerance))(jnp.zeros(3))
    assert found.converged and found.sweeps <= 12
    np.testing.assert_allclose(found.value, np.linalg.solve(matrix, SHIFT), rtol=1e3 * tolerance)


def test_sweeps_are_counted_for_each_of_many(x64):
    factors = jnp.array([0.0, 0.01, 0.9])

    def solve(factor):
        return solved(lambda v: factor * jnp.sin(v[::-1]) + SHIFT, SHIFT, jnp.asarray(1e-14))

    found = jax.jit(jax.vmap(solve))(factors)
    assert np.all(found.converged) and found.sweeps[0] == 1
    assert np.all(np.diff(found.sweeps) > 0)


def test_kinks_do_not_mislead_sweeps_for_long():
    """What contracts is solved without Newton's method, for which all of a batch would wait."""

    def sweeps(key):
        keys = jax.random.split(key, 3)
        turn = jax.random.normal(keys[0], (6, 6))
        turn = 0.9 * turn / jnp.linalg.norm(turn, 2)
        shift, guess = jax.random.normal(keys[1], (6,)), 10 * jax.random.normal(keys[2], (6,))
        folded = lambda v: jnp.abs(jnp.dot(turn, v, precision="highest")) + shift  # noqa: E731
        return solved(folded, guess, jnp.asarray(1e-5)).sweeps

    counts = jax.jit(jax.vmap(sweeps))(jax.random.split(jax.random.key(0), 500))
    assert np.max(counts) < SWEEPS


def test_newton_takes_over_where_sweeps_leave_the_domain(x64):
    """The plain sweep from 0.1 leads to the logarithm of a negative number."""
    sweep = lambda v: v - 5 * jnp.log(v + 1) - 4  # noqa: E731
    found = solved(sweep, jnp.full(2, 0.1), jnp.asarray(1e-13))
    assert found.converged
    np.testing.assert_allclose(found.value, np.exp(-0.8) - 1, rtol=1e-12)


def test_what_has_no_solution_is_said_to_have_none(x64):
    found = solved(lambda v: v**2 + v + 1, jnp.ones(2), jnp.asarray(1e-12))
    assert not found.converged and found.sweeps <= SWEEPS + NEWTON
    lost = solved(lambda v: v * jnp.nan, jnp.ones(2), jnp.asarray(jnp.nan))
    assert not lost.converged and lost.sweeps == 1


def test_derivatives_are_those_of_the_solution(x64):
    def solution(a):
        return solved(lambda v: jnp.cos(a * v), jnp.ones(2), jnp.asarray(1e-15)).value

    a, h = jnp.array([0.6, 0.9]), 1e-6
    forward, reverse = jax.jacfwd(solution)(a), jax.jacrev(solution)(a)
    steps = h * np.eye(2)
    numeric = np.stack([(solution(a + s) - solution(a - s)) / (2 * h) for s in steps], 1)
    np.testing.assert_allclose(forward, numeric, atol=1e-8)
    np.testing.assert_allclose(reverse, forward, atol=1e-12)
