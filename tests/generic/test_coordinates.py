"""Scaled coordinates change numbers, not physics."""

import jax
import jax.numpy as jnp
import numpy as np

from spenn.generic import Coordinates, Generic, KnownPotential
from spenn.systems import OSCILLATOR
from support import central_difference, known_blocks


def _field(units):
    system = OSCILLATOR
    parts = (system.energy, system.entropy, system.poisson, system.dissipation)
    return Generic(known_blocks(units, *parts))


UNITS = ([0.3, -2.0, 7.0], [2.0, 0.1, 30.0], 0.05)


def test_there_and_back(x64):
    units = Coordinates.of(*UNITS)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(10, 3)))
    np.testing.assert_allclose(units.unscaled(units.scaled(x)), x, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(units.unscaled_velocity(units.scaled_velocity(x)), x, rtol=1e-13)


def test_velocity_is_the_time_derivative_of_the_state(x64):
    units = Coordinates.of(*UNITS)
    path = lambda t: jnp.array([jnp.sin(t), t**2, jnp.exp(t)])  # noqa: E731
    scaled_path = lambda tau: units.scaled(path(tau * units.time_unit))  # noqa: E731
    scaled = jax.jacfwd(scaled_path)(0.7 / units.time_unit)
    np.testing.assert_allclose(units.scaled_velocity(jax.jacfwd(path)(0.7)), scaled, rtol=1e-13)


def test_known_blocks_give_one_velocity_in_all_coordinates(x64):
    # The exact blocks are degenerate, so no projection depends on the metric of the coordinates.
    units = Coordinates.of(*UNITS)
    plain, scaled = _field(Coordinates.identity(3)), _field(units)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(50, 3)))
    expected = jax.jit(jax.vmap(plain.velocity))(x)
    ours = units.unscaled_velocity(jax.jit(jax.vmap(scaled.velocity))(units.scaled(x)))
    np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-12)
    for name in ("energy", "entropy"):
        values = jax.vmap(getattr(scaled, name))(units.scaled(x))
        np.testing.assert_allclose(values, jax.vmap(getattr(plain, name))(x), rtol=1e-12)


def test_data_become_order_one():
    rng = np.random.default_rng(0)
    states = rng.normal(size=(500, 3)) * [1e-6, 1.0, 1e5] + [1e-5, 300.0, -1e6]
    derivatives = rng.normal(size=(500, 3)) * [1e-3, 1e2, 1e7]
    units = Coordinates.from_data(states, derivatives)
    velocities = np.asarray(units.scaled_velocity(derivatives))
    np.testing.assert_allclose(np.sqrt(np.mean(velocities**2)), 1, rtol=1e-5)
    np.testing.assert_allclose(units.offset, states.mean(0), rtol=1e-6)
    np.testing.assert_allclose(units.scale, states.std(0), rtol=1e-6)


def test_a_variable_that_does_not_vary_is_left_as_it_is():
    states = np.stack([np.arange(4.0), np.full(4, 5.0)], 1)
    units = Coordinates.from_data(states, np.zeros((4, 2)))
    np.testing.assert_array_equal(units.scale[1], 1)
    np.testing.assert_array_equal(units.time_unit, 1)


def test_slopes_transform_as_covectors(x64):
    units = Coordinates.of(*UNITS)
    energy = KnownPotential(OSCILLATOR.energy, units)
    xi = jnp.array([0.1, 0.2, 0.3])
    expected = central_difference(OSCILLATOR.energy, units.unscaled(xi)) * units.scale
    np.testing.assert_allclose(jax.grad(energy)(xi), expected, rtol=1e-7)
