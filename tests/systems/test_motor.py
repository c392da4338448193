"""The chemical motor: GENERIC blocks against the closed forms of the evolution equations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spenn
from spenn.generic import without
from spenn.systems import CHEMICAL_MOTOR, SYSTEMS, simulate

MASS, REST, STIFFNESS, RATE = 0.8, 2.0, 31.6, 2.0
A = np.array([[0.1, 0.1, 0.1], [0.1, 0.1, 0.1], [0.1, 0.1, 20.0]])
B = np.full(3, 0.05)
M = np.array([1.0, 1.2, 2.2])


def closed_form(x):
    """Force of the gas and mass-action kinetics, written out (area one)."""
    q, p, eps = x[:3]
    n = x[3:]
    pairs, free, total = n @ A @ n, q - n @ B, n.sum()
    force = 2 / 3 * (eps * q + pairs) / (q * free) - pairs / q**2
    constant = (
        np.exp(
            3 * total * ((A[0] + A[1] - A[2]) @ n) / (2 * (eps * q + pairs))
            - total * (B[0] + B[1] - B[2]) / (2 * free)
        )
        * (M[0] * M[1] / M[2]) ** 0.75
        * free**0.5
        * (4 * np.pi / (3 * total) * (eps + pairs / q)) ** 0.75
    )
    reaction = RATE / 4 * (constant * n[2] - n[0] * n[1] / constant)
    work = -p / MASS * force
    return np.array(
        [p / MASS, -STIFFNESS * (q - REST) + force, work, reaction, reaction, -reaction]
    )


def _states(count):
    rng = np.random.default_rng(0)
    states = CHEMICAL_MOTOR.draw(rng, count)
    states[:, 1] = rng.normal(size=count)
    states[:, 3:] += rng.uniform(0, 0.5, (count, 3))
    return states


def test_velocity_is_the_closed_form(x64):
    states = _states(200)
    ours = jax.jit(jax.vmap(CHEMICAL_MOTOR.exact().velocity))(jnp.asarray(states))
    expected = np.stack([closed_form(x) for x in states])
    np.testing.assert_allclose(ours, expected, rtol=1e-11, atol=1e-11)


def test_operator_and_potential_are_degenerate_as_given(x64):
    for x in jnp.asarray(_states(10)):
        slope = jax.grad(CHEMICAL_MOTOR.entropy)(x)
        np.testing.assert_allclose(CHEMICAL_MOTOR.poisson(x) @ slope, 0, atol=1e-12)
        # The energy does not know the moles, so projecting it out changes nothing.
        projected = without(jax.grad(CHEMICAL_MOTOR.energy)(x), slope)
        given, same = (CHEMICAL_MOTOR.dissipation(x, y) for y in (slope, projected))
        np.testing.assert_allclose(given, same, rtol=1e-12)


def test_protocol():
    assert SYSTEMS["chemical-motor"] is CHEMICAL_MOTOR
    assert CHEMICAL_MOTOR.split == (140, 50, 30) and CHEMICAL_MOTOR.times.shape == (1000,)
    np.testing.assert_allclose(CHEMICAL_MOTOR.times[-1], 9.99)
    states = CHEMICAL_MOTOR.draw(np.random.default_rng(0), 1000)
    assert np.all(states[:, 1] == 0)
    np.testing.assert_allclose(states.min(0)[[0, 3, 4, 5]], [1.2, 0.8, 1.2, 0.002], rtol=2e-2)
    np.testing.assert_allclose(states.max(0)[[0, 3, 4, 5]], [2.8, 1.3, 2.4, 0.003], rtol=2e-2)
    assert 2.4 <= states[:, 2].min() and states[:, 2].max() <= 6.7
    outside = CHEMICAL_MOTOR.draw_outside(np.random.default_rng(0), 100)
    assert np.all(np.abs(outside[:, 0] - 2) >= 0.9)


@pytest.fixture(scope="module")
def references():
    initial = CHEMICAL_MOTOR.draw(np.random.default_rng(0), 30)
    return {name: simulate(CHEMICAL_MOTOR, initial, name) for name in ("paper", "converged")}


@pytest.mark.parametrize("name, drift", [("paper", 1e-10), ("converged", 1e-7)])
def test_references_obey_both_laws(references, name, drift):
    """Implicit midpoint conserves quadratic invariants exactly; this energy is quadratic."""
    with jax.enable_x64(True):
        states = jnp.asarray(references[name].states)
        energy, entropy = (
            np.asarray(jax.jit(jax.vmap(jax.vmap(f)))(states))
            for f in (CHEMICAL_MOTOR.energy, CHEMICAL_MOTOR.entropy)
        )
    assert np.max(np.abs(energy - energy[:, :1])) < drift
    if name == "converged":  # the midpoint rule promises nothing for the entropy near equilibrium
        assert np.min(np.diff(entropy, axis=1)) > -1e-10
    moles = references[name].states[..., 3:]
    np.testing.assert_allclose(np.ptp(moles[..., 0] + moles[..., 2], 1), 0, atol=1e-12)
    np.testing.assert_allclose(np.ptp(moles[..., 1] + moles[..., 2], 1), 0, atol=1e-12)


def test_references_differ_by_the_error_of_the_midpoint_rule(references):
    """The floor of every score with the paper's reference: second order in the step."""
    paper, converged = (references[n].states for n in ("paper", "converged"))
    error = np.abs(paper - converged).mean((0, 1))
    assert 1e-3 < error[0] < 6e-3 and 5e-3 < error[1] < 3e-2
    assert np.all(error[3:] < 3e-4)


def test_a_short_training_learns_the_motor(references):
    config = spenn.FitConfig(width=16, steps=1200, batch=512, races=3, race_steps=1200)
    train, test = references["converged"].split(26, 4)
    model = spenn.fit_deterministic(train, 0, config)
    states, truth = (a[:, ::50].reshape(-1, 6) for a in (test.states, test.derivatives))
    rates = jax.vmap(lambda x: model.velocity(x, jnp.zeros(0)))(jnp.asarray(states))
    error = np.sqrt(np.mean((rates - truth) ** 2, 0))
    assert np.all(error < 0.3 * truth.std(0))
