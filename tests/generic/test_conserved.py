"""Conserved combinations stay what they are, in every realisation, and cost no law."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spenn.config import FitConfig
from spenn.epinet import scale_priors
from spenn.generic import Coordinates, Generic
from spenn.physics import Physics
from spenn.systems import CHEMICAL_MOTOR
from spenn.training import attach_epinets

# Two elements of a closed reactor, of six variables.
ATOMS = ((0, 0, 0, 1, 0, 1), (0, 0, 0, 0, 1, 1))
UNITS = Coordinates.of(np.arange(6.0), [1.0, 2.0, 0.5, 3.0, 0.1, 1.0], 2.0)


def _blocks(physics, units=UNITS):
    return physics.blocks(units, 6, 8, 2, key=jax.random.key(0))


def test_every_realisation_keeps_them_and_both_laws(x64):
    base = _blocks(Physics(conserved=ATOMS))
    states = jnp.asarray(np.random.default_rng(0).normal(size=(200, 6)))
    model = attach_epinets(base, 0.5, FitConfig(epinet_width=4), key=jax.random.key(1))
    model = scale_priors(model, states)
    indices = model.draw(200, key=jax.random.key(2))
    rates = jax.jit(jax.vmap(lambda x, z: model.realise(z).rates(x)))(states, indices)
    velocities = UNITS.unscaled_velocity(rates.velocity)
    assert np.median(np.linalg.norm(velocities, axis=1)) > 1e-3
    np.testing.assert_allclose(velocities @ np.transpose(ATOMS), 0, atol=1e-13)
    np.testing.assert_allclose(rates.energy_rate, 0, atol=1e-13)
    assert np.all(rates.entropy_rates > 0)


def test_known_operators_that_keep_them_are_not_changed(x64):
    """The exact motor keeps its atoms already."""
    known = {
        name: getattr(CHEMICAL_MOTOR, name)
        for name in ("energy", "entropy", "poisson", "dissipation")
    }
    plain, kept = (
        Generic(_blocks(Physics(**known, learned=(), conserved=c), CHEMICAL_MOTOR_UNITS))
        for c in ((), ATOMS)
    )
    states = CHEMICAL_MOTOR_UNITS.scaled(CHEMICAL_MOTOR.draw(np.random.default_rng(0), 20))
    for x in jnp.asarray(states):
        np.testing.assert_allclose(kept.velocity(x), plain.velocity(x), rtol=1e-9, atol=1e-12)


CHEMICAL_MOTOR_UNITS = Coordinates.of([2.0, 0, 4, 1, 2, 0.1], [0.5, 2, 1, 0.2, 0.3, 0.1], 0.3)


@pytest.mark.parametrize(
    ("conserved", "message"),
    [
        (((1.0, 2.0),), "one coefficient for each of 6 variables"),
        (np.eye(6), "none moves"),
        (((1.0, np.nan, 0, 0, 0, 0),), "finite numbers"),
    ],
)
def test_wrong_combinations(conserved, message):
    with pytest.raises(ValueError, match=message):
        _blocks(Physics(conserved=tuple(map(tuple, conserved))))
