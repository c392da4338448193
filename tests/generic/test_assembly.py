"""The few lines that all methods inherit both laws from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spenn.generic import Generic, degenerate_action, irreversible, restricted_action, without
from spenn.networks import Tensor
from support import random_blocks


def _vectors(size, count, seed=0):
    return [jnp.asarray(v) for v in np.random.default_rng(seed).normal(size=(count, size))]


def _operator(action, size):
    """The matrix of an action, from unit vectors."""
    return jax.vmap(action, out_axes=1)(jnp.eye(size))


class TestWithout:
    @given(seed=st.integers(0, 10**6), size=st.integers(2, 16), exponent=st.integers(-15, 15))
    def test_result_is_orthogonal(self, seed, size, exponent):
        direction, vector = _vectors(size, 2, seed)
        direction = direction * 10.0**exponent
        rest = without(direction, vector)
        bound = np.linalg.norm(direction) * np.linalg.norm(vector) * np.finfo(np.float32).eps
        assert abs(np.dot(np.float64(direction), np.float64(rest))) <= 2 * bound

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


class TestDegenerateAction:
    size = 5

    def _action(self, seed=0):
        rng = np.random.default_rng(seed)
        raw, tensor = rng.normal(size=(self.size,) * 2), rng.normal(size=(self.size,) * 3)
        slope = jnp.asarray(rng.normal(size=self.size))
        raw, tensor = jnp.asarray(raw), Tensor(jnp.asarray(tensor))
        return (lambda v: degenerate_action(raw, tensor, slope, v)), raw, tensor, slope

    def test_is_the_formula_of_the_docstring(self, x64):
        action, raw, tensor, slope = self._action()
        skew = tensor.entries - jnp.swapaxes(tensor.entries, 1, 2)
        turn = jnp.einsum("ijk,k->ij", skew, slope)
        expected = turn.T @ (raw - raw.T) @ turn
        # Row i of Q is (B_i - B_i^T) DS up to a common sign, which Q^T ... Q does not see.
        np.testing.assert_allclose(_operator(action, self.size), expected, rtol=1e-11, atol=1e-12)

    def test_is_skew(self, x64):
        action, *_ = self._action()
        operator = _operator(action, self.size)
        size = np.max(np.abs(operator))
        assert size > 0.1
        np.testing.assert_allclose(operator, -operator.T, atol=1e-14 * size * self.size)

    def test_form_is_skew_for_any_two_vectors(self, x64):
        action, *_ = self._action()
        u, v = _vectors(self.size, 2, seed=3)
        np.testing.assert_allclose(u @ action(v), -(v @ action(u)), rtol=1e-12)

    def test_maps_the_entropy_slope_to_zero_exactly(self, dtype):
        action, *_, slope = self._action()
        np.testing.assert_array_equal(action(slope), np.zeros(self.size))


class TestRestrictedAction:
    def test_leaves_a_degenerate_operator_alone(self, x64):
        operator = jnp.array([[0.0, 2.0, 0.0], [-2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        slope = jnp.array([0.0, 0.0, 3.0])
        action = _operator(lambda v: restricted_action(operator, slope, v), 3)
        np.testing.assert_array_equal(action, operator)

    def test_makes_any_matrix_skew_and_degenerate(self, x64):
        rng = np.random.default_rng(0)
        matrix, slope = jnp.asarray(rng.normal(size=(4, 4))), jnp.asarray(rng.normal(size=4))
        operator = _operator(lambda v: restricted_action(matrix, slope, v), 4)
        projector = np.eye(4) - np.outer(slope, slope) / np.dot(slope, slope)
        expected = projector @ (matrix - matrix.T) @ projector / 2
        np.testing.assert_allclose(operator, expected, atol=1e-14)
        np.testing.assert_allclose(operator @ slope, 0, atol=1e-14)


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
