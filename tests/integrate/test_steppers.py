"""Orders of convergence and what the steppers conserve, on a damped oscillator solved exactly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from spenn.generic import Generic
from spenn.integrate import audited_rollout, implicit_midpoint, rk4, rollout
from spenn.systems import OSCILLATOR
from support import random_blocks

MATRIX = np.array([[0.0, 1.0], [-1.2, -0.4]])
START = np.array([0.8, -0.5])


def _error(step, count):
    states = rollout(
        step, lambda x: jnp.asarray(MATRIX) @ x, jnp.asarray(START), jnp.full(count, 2.0 / count)
    )
    assert states.shape == (count + 1, 2)
    return np.linalg.norm(states[-1] - expm(2 * MATRIX) @ START)


@pytest.mark.parametrize("step, order", [(rk4, 4), (implicit_midpoint, 2)])
def test_order(x64, step, order):
    counts = np.array([10, 20, 40, 80])
    errors = [_error(step, n) for n in counts]
    slope = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert abs(slope - order) < 0.25


@pytest.mark.parametrize("step", [rk4, implicit_midpoint])
def test_unequal_steps(x64, step):
    exact = expm(0.03 * MATRIX) @ START
    states = rollout(
        step, lambda x: jnp.asarray(MATRIX) @ x, jnp.asarray(START), jnp.array([0.02, 0.01])
    )
    np.testing.assert_array_equal(states[0], START)
    np.testing.assert_allclose(states[-1], exact, rtol=1e-5)


def test_rk4_with_a_known_first_stage_is_the_same_step(x64):
    velocity = lambda x: jnp.sin(x) + x[::-1]  # noqa: E731
    x = jnp.asarray(START)
    np.testing.assert_array_equal(rk4(velocity, x, 0.1), rk4(velocity, x, 0.1, velocity(x)))


def test_implicit_midpoint_conserves_quadratic_invariants(x64):
    x = jnp.array([0.8, -0.5, 0.0])
    field = OSCILLATOR.exact()
    steps = jnp.full(300, 0.1)
    drifts = []
    for step in (implicit_midpoint, rk4):
        states = jax.jit(lambda x, step=step: rollout(step, field.velocity, x, steps))(x)
        energies = jax.vmap(field.energy)(states)
        drifts.append(np.max(np.abs(energies - energies[0])))
    assert drifts[0] < 1e-13
    assert drifts[1] > 1e-8


def test_midpoint_that_does_not_converge_is_nan():
    stiff = implicit_midpoint(lambda x: -100.0 * x, jnp.ones(2), 1.0)
    assert np.all(np.isnan(stiff))
    # No chain reaction from a NaN velocity either: it is NaN, and the loop ends.
    assert np.all(np.isnan(implicit_midpoint(lambda x: x * jnp.nan, jnp.ones(2), 0.1)))


def test_audited_rollout(x64):
    field = Generic(random_blocks(3, gain=(1.0, 1.0)))
    x, steps = jnp.array([0.3, -0.2, 0.5]), jnp.array([0.01, 0.02, 0.01, 0.03])
    states, laws = jax.jit(lambda x: audited_rollout(field, x, steps))(x)
    plain = jax.jit(lambda x: rollout(rk4, field.velocity, x, steps))(x)
    np.testing.assert_allclose(states, plain, rtol=1e-13)
    rates = jax.jit(jax.vmap(field.rates))(plain)
    np.testing.assert_allclose(laws.energy, rates.energy, rtol=1e-12)
    np.testing.assert_allclose(laws.entropy, rates.entropies, rtol=1e-12)
    np.testing.assert_allclose(laws.entropy_rate, rates.entropy_rates[:, 0], rtol=1e-10)
    np.testing.assert_allclose(laws.energy_rate, 0, atol=1e-13)
