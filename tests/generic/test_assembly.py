"""The few lines that all methods inherit both laws from."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spenn.generic import (
    Generic,
    above_diagonal,
    degenerate_operator,
    irreversible,
    restricted_operator,
    rows_without,
    without,
)
from support import random_blocks


def _vectors(size, count, seed=0):
    return [jnp.asarray(v) for v in np.random.default_rng(seed).normal(size=(count, size))]


class TestWithout:
    @given(seed=st.integers(0, 10**6), size=st.integers(2, 16), exponent=st.integers(-30, 30))
    def test_result_is_orthogonal(self, seed, size, exponent):
        direction, vector = _vectors(size, 2, seed)
        direction = direction * 10.0**exponent
        rest = without(direction, vector)
        direction = np.float64(direction)
        bound = np.linalg.norm(direction) * np.linalg.norm(vector) * np.finfo(np.float32).eps
        assert abs(np.dot(direction, np.float64(rest))) <= 2 * bound

    def test_is_the_projection(self, x64):
        direction, vector = _vectors(5, 2)
        projector = np.eye(5) - np.outer(direction, direction) / np.dot(direction, direction)
        np.testing.assert_allclose(without(direction, vector), projector @ vector, rtol=1e-13)

    def test_keeps_the_vector_where_the_direction_vanishes(self):
        (vector,) = _vectors(4, 1)
        np.testing.assert_array_equal(without(jnp.zeros(4), vector), vector)

    def test_has_finite_derivatives_where_the_direction_vanishes(self):
        (vector,) = _vectors(4, 1)
        for argument in (0, 1):
            assert np.all(np.isfinite(jax.jacrev(without, argument)(jnp.zeros(4), vector)))


class TestDegenerateOperator:
    size = 5

    def _operator(self, seed=0):
        rng = np.random.default_rng(seed)
        raw, tensor, slope = (rng.normal(size=(self.size,) * n) for n in (2, 3, 1))
        q = rows_without(jnp.asarray(tensor), jnp.asarray(slope))
        return degenerate_operator(jnp.asarray(raw), q), raw, tensor, slope

    def test_is_the_formula_of_the_docstring(self, x64):
        operator, raw, tensor, slope = self._operator()
        turn = np.einsum("ijk,k->ij", tensor - np.swapaxes(tensor, 1, 2), slope)
        np.testing.assert_allclose(operator, turn.T @ (raw - raw.T) @ turn, atol=1e-12)

    def test_is_skew_to_the_last_bit(self, dtype):
        operator, *_ = self._operator()
        np.testing.assert_array_equal(operator, -operator.T)
        assert np.max(np.abs(operator)) > 0.1

    @pytest.mark.parametrize("seed", range(5))
    def test_maps_the_entropy_slope_to_zero(self, dtype, seed):
        operator, *_, slope = self._operator(seed)
        size = np.linalg.norm(operator) * np.linalg.norm(slope)
        bound = 100 * jnp.finfo(dtype).eps * size
        np.testing.assert_allclose(operator @ jnp.asarray(slope), 0, atol=bound)


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_entries_above_the_diagonal_stand_row_by_row(size):
    where = np.triu_indices(size, 1)
    entries = 1.0 + np.arange(max(len(where[0]), 1))
    expected = np.zeros((size, size)) if size > 1 else np.ones((1, 1))
    expected[where] = entries[: len(where[0])]
    np.testing.assert_array_equal(above_diagonal(jnp.asarray(entries), size), expected)


def test_no_output_of_a_poisson_network_is_idle(x64):
    """What no operator shows would be learned from rounding errors."""
    (part,) = random_blocks(
        5
    ).poisson  # on two directions or one no operator but zero is admissible
    bias = part.network.readout.bias

    def operator(bias, x, slope):
        moved = eqx.tree_at(lambda p: p.network.readout.bias, part, bias)
        return moved.operator(x, slope)

    states, slopes = np.random.default_rng(0).normal(size=(2, 8, 5))
    effects = jax.vmap(jax.jacrev(operator), (None, 0, 0))(bias, states, slopes)
    assert np.linalg.matrix_rank(effects.reshape(-1, bias.size)) == bias.size == 10


def test_outputs_weigh_as_much_as_the_skew_half_of_a_full_matrix(x64):
    """`|W - W^T| = 2 |(W - W^T) / 2|`: what is learned is as large, and moves as far in a step."""
    (part,) = random_blocks(5).poisson
    x = jnp.asarray(np.random.default_rng(0).normal(size=5))
    raw = part.raw(x)
    size = jnp.linalg.norm(part.network(x))
    np.testing.assert_allclose(jnp.linalg.norm(raw - raw.T), 2 * size, rtol=1e-14)


@pytest.mark.parametrize("size", [3, 6])
def test_poisson_blocks_act_as_their_matrix(x64, size):
    field = Generic(random_blocks(size))
    x, slope, u, v = _vectors(size, 4)
    action = lambda vector: field.poisson(x, slope, vector)  # noqa: E731
    matrix = jax.jit(jax.vmap(action, out_axes=1))(jnp.eye(size))
    (part,) = field.blocks.poisson
    np.testing.assert_allclose(matrix, part.operator(x, slope), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(u @ action(v), -(v @ action(u)), rtol=1e-11)


class TestRestrictedOperator:
    def test_leaves_a_degenerate_operator_alone(self, x64):
        operator = jnp.array([[0.0, 2.0, 0.0], [-2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        slope = jnp.array([0.0, 0.0, 3.0])
        np.testing.assert_array_equal(restricted_operator(operator, slope), operator)

    def test_makes_any_matrix_skew_and_degenerate(self, x64):
        rng = np.random.default_rng(0)
        matrix, slope = jnp.asarray(rng.normal(size=(4, 4))), jnp.asarray(rng.normal(size=4))
        operator = restricted_operator(matrix, slope)
        projector = np.eye(4) - np.outer(slope, slope) / np.dot(slope, slope)
        expected = projector @ (matrix - matrix.T) @ projector / 2
        np.testing.assert_allclose(operator, expected, atol=1e-14)
        np.testing.assert_allclose(operator @ slope, 0, atol=1e-14)
        np.testing.assert_array_equal(operator, -operator.T)


class TestDissipation:
    """The potential that `irreversible` is the slope of, from the formula in its docstring."""

    @staticmethod
    def _potential(field, x, energy_slope):
        def raw(y):
            return sum(part(x, y) for part in field.blocks.dissipation)

        def potential(conjugate):
            y, zero = without(energy_slope, conjugate), jnp.zeros_like(conjugate)
            return raw(y) - raw(zero) - jnp.sum(jax.grad(raw)(zero) * y)

        return potential

    @pytest.mark.parametrize("size", [3, 6])
    def test_irreversible_is_its_slope(self, x64, size):
        field = Generic(random_blocks(size))
        x, energy_slope, entropy_slope = _vectors(size, 3)
        slope = irreversible(energy_slope, entropy_slope, lambda y: field.dissipation_slope(x, y))
        expected = jax.grad(self._potential(field, x, energy_slope))(entropy_slope)
        np.testing.assert_allclose(slope, expected, rtol=1e-10, atol=1e-13)

    @pytest.mark.parametrize("seed", range(3))
    def test_is_zero_at_zero_and_positive_elsewhere(self, x64, seed):
        field = Generic(random_blocks(4, seed=seed))
        x, energy_slope = _vectors(4, 2)
        potential = jax.jit(jax.vmap(self._potential(field, x, energy_slope)))
        points = 3 * np.random.default_rng(1).normal(size=(500, 4))
        values = potential(jnp.asarray(points))
        assert np.all(values >= -1e-13 * np.max(values))
        assert np.max(values) > 1e-4
        np.testing.assert_allclose(potential(jnp.zeros((1, 4))), 0, atol=1e-14)

    def test_nothing_moves_without_a_force(self, dtype):
        field = Generic(random_blocks(4))
        x, energy_slope = _vectors(4, 2)
        slope = irreversible(energy_slope, jnp.zeros(4), lambda y: field.dissipation_slope(x, y))
        np.testing.assert_array_equal(slope, 0)


def test_rows_are_skew_parts_times_the_vector(x64):
    rng = np.random.default_rng(0)
    tensor, vector = rng.normal(size=(4, 4, 4)), rng.normal(size=4)
    skew = tensor - np.swapaxes(tensor, -1, -2)
    q = rows_without(jnp.asarray(tensor), jnp.asarray(vector))
    np.testing.assert_allclose(q, np.einsum("ijk,k->ij", skew, vector), rtol=1e-13)
    np.testing.assert_allclose(q @ vector, 0, atol=1e-14)
