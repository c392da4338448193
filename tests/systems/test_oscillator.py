"""Exact physics, reference data and the floor that no method can be below."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spenn.forecast import ensemble
from spenn.generic import Coordinates, Deterministic
from spenn.systems import OSCILLATOR, SYSTEMS, simulate


@pytest.fixture(scope="module")
def references():
    initial = OSCILLATOR.draw(np.random.default_rng(0), 40)
    return {name: simulate(OSCILLATOR, initial, name) for name in ("paper", "converged")}


def test_velocity_is_the_closed_form(dtype):
    q, p, _ = states = jnp.asarray(np.random.default_rng(0).normal(size=(3, 200)))
    expected = np.stack([p, -1.2 * q - 0.4 * p, 0.4 * p**2])
    ours = jax.jit(jax.vmap(OSCILLATOR.exact().velocity))(states.T).T
    np.testing.assert_allclose(ours, expected, atol=20 * jnp.finfo(dtype).eps)


def test_protocol():
    assert SYSTEMS["oscillator"] is OSCILLATOR
    assert OSCILLATOR.times.shape == (1000,)
    np.testing.assert_allclose(np.diff(OSCILLATOR.times), 0.015)
    rng = np.random.default_rng(0)
    inside, outside = OSCILLATOR.draw(rng, 500), OSCILLATOR.draw_outside(rng, 500)
    assert np.all(np.abs(inside[:, :2]) <= 1) and np.all(np.abs(outside[:, :2]) >= 1.5)
    assert np.all(inside[:, 2] == 0) and np.all(outside[:, 2] == 0)
    assert np.min(outside[:, :2]) < -1.5  # both signs


@pytest.mark.parametrize("name, drift", [("paper", 1e-12), ("converged", 1e-11)])
def test_references_obey_both_laws(references, name, drift):
    q, p, eps = np.moveaxis(references[name].states, -1, 0)
    energies = p**2 / 2 + 1.2 * q**2 / 2 + eps
    assert np.max(np.abs(energies - energies[:, :1])) < drift
    assert np.min(np.diff(eps, axis=1)) >= 0
    assert references[name].names == ("q", "p", "eps")


def test_references_carry_exact_derivatives(references):
    for data in references.values():
        q, p, _ = np.moveaxis(data.states, -1, 0)
        expected = np.stack([p, -1.2 * q - 0.4 * p, 0.4 * p**2], -1)
        np.testing.assert_allclose(data.derivatives, expected, atol=1e-14)


def test_converged_reference_is_the_exact_solution(references):
    data = references["converged"]
    decay, frequency = 0.2, np.sqrt(1.2 - 0.04)
    q, p = data.states[:, :1, 0], data.states[:, :1, 1]
    t = data.times
    exact = np.exp(-decay * t) * (
        q * np.cos(frequency * t) + (p + decay * q) / frequency * np.sin(frequency * t)
    )
    np.testing.assert_allclose(data.states[..., 0], exact, atol=1e-9)


def test_references_differ_by_the_error_of_the_papers_integrator(references):
    gap = np.abs(references["paper"].states - references["converged"].states).mean((0, 1))
    assert np.all(gap > np.array([1.5e-5, 1.7e-5, 4e-6]) / 2)
    assert np.all(gap < np.array([1.5e-5, 1.7e-5, 4e-6]) * 2)


def test_floor_of_the_protocol(references):
    """Exact physics by RK4 in float32, against the paper's reference."""
    data = references["paper"]
    (chunk,) = ensemble(
        Deterministic(OSCILLATOR.exact().blocks),
        Coordinates.identity(3),
        data.states[:, 0],
        data.times,
        jnp.zeros((1, 0)),
    )
    assert chunk.states.dtype == jnp.float32
    floor = np.abs(np.asarray(chunk.states)[:, 0] - data.states).mean((0, 1))
    np.testing.assert_array_less(floor, 2 * np.array([1.5e-5, 1.7e-5, 4e-6]))
    np.testing.assert_array_less(np.array([1.5e-5, 1.7e-5, 4e-6]) / 2, floor)


def test_unknown_reference():
    with pytest.raises(ValueError, match="there is no reference 'exact'"):
        simulate(OSCILLATOR, np.zeros((1, 3)), "exact")
