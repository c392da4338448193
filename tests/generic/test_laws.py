"""Both laws for every setting of the weights: algebra, not training."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spenn.generic import Blocks, Coordinates, Generic, KnownPoisson, KnownPotential
from support import assert_lawful, known_blocks, law_errors, random_blocks

NETWORKS, STATES = 200, 100


@eqx.filter_jit
def _errors(blocks, states):
    """Errors of stacked networks, each at its own states."""

    def one(blocks, states):
        return jax.vmap(lambda x: law_errors(Generic(blocks), x))(states)

    return eqx.filter_vmap(one)(blocks, states)


def _states(count, size, seed=0):
    return jnp.asarray(2 * np.random.default_rng(seed).normal(size=(count, STATES, size)))


@pytest.mark.parametrize("size", [3, 6, 16])
def test_learned_blocks(dtype, size):
    errors = _errors(random_blocks(size, count=NETWORKS), _states(NETWORKS, size))
    assert errors.energy.dtype == dtype
    assert_lawful(errors)


def test_velocity_has_both_parts(x64):
    field = Generic(random_blocks(3))
    x = jnp.array([0.3, -0.2, 0.5])
    rates = field.rates(x)
    slopes = jax.grad(field.energy)(x), jax.grad(field.entropy)(x)
    reversible = field.poisson(x, slopes[1], slopes[0])
    assert np.linalg.norm(reversible) > 1e-3
    assert np.linalg.norm(rates.velocity - reversible) > 1e-3
    np.testing.assert_allclose(rates.velocity, field.velocity(x), rtol=1e-13)
    np.testing.assert_allclose(rates.entropy_rates[0], slopes[1] @ rates.velocity, rtol=1e-12)
    np.testing.assert_allclose(rates.energy_rate, 0, atol=1e-14)
    np.testing.assert_array_equal(rates.energy, field.energy(x))
    np.testing.assert_array_equal(rates.entropies, [field.entropy(x)])


def test_a_flat_energy_is_no_trouble(dtype):
    blocks = random_blocks(4)
    flat = eqx.tree_at(
        lambda b: b.energy[0].network.readout.weight, blocks, replace_fn=jnp.zeros_like
    )
    rates = jax.jit(jax.vmap(Generic(flat).rates))(_states(1, 4)[0])
    assert np.all(np.isfinite(rates.velocity))
    np.testing.assert_array_equal(rates.energy_rate, 0)
    assert np.all(rates.entropy_rates > 0)


class TestKnownParts:
    """A user's functions, alone or with networks on top."""

    size = 3
    scale = (2.0, 0.5, 3.0)

    @staticmethod
    def _energy(x):
        return jnp.sum(x**4) / 4 + x[0] * x[1]

    @staticmethod
    def _entropy(x):
        return jnp.sin(x[0]) + x[2]

    @staticmethod
    def _poisson(x):
        # Skew, and DS is not in its null space.
        a, b, c = x[0], 1.0, x[1] * x[2]
        return jnp.array([[0, a, b], [-a, 0, c], [-b, -c, 0]])

    @staticmethod
    def _dissipation(x, y):
        return (1 + x[0] ** 2) * jnp.sum(y**2) + jnp.sum(y**4) + y[1]

    def _known(self, units) -> Blocks:
        parts = (self._energy, self._entropy, self._poisson, self._dissipation)
        return known_blocks(units, *parts)

    def test_known_blocks(self, dtype):
        field = Generic(self._known(Coordinates.identity(self.size)))
        states = _states(20, self.size).reshape(-1, self.size)
        assert_lawful(jax.jit(jax.vmap(lambda x: law_errors(field, x)))(states))

    def test_known_and_learned_blocks_add_up(self, dtype):
        known = self._known(Coordinates.identity(self.size))
        known = jax.tree.map(lambda a: jnp.broadcast_to(a, (50, *a.shape)), known)
        learned = random_blocks(self.size, count=50)
        both = jax.tree.map(
            lambda a, b: a + b, known, learned, is_leaf=lambda n: isinstance(n, tuple)
        )
        states = _states(50, self.size)
        assert_lawful(_errors(both, states))
        energies = eqx.filter_jit(eqx.filter_vmap(lambda b, x: Generic(b).energy(x)))
        alone, together = (energies(b, states[:, 0]) for b in (learned, both))
        expected = alone + jax.vmap(self._energy)(states[:, 0])
        np.testing.assert_allclose(together, expected, rtol=100 * jnp.finfo(dtype).eps)

    def test_operator_that_is_not_degenerate_makes_no_entropy(self, x64):
        x = jnp.array([0.4, -0.3, 0.7])
        slope = jax.grad(self._entropy)(x)
        assert np.linalg.norm(self._poisson(x) @ slope) > 0.1
        blocks, units = random_blocks(self.size), Coordinates.identity(self.size)
        blocks = Blocks(
            blocks.energy,
            (KnownPotential(self._entropy, units),),
            (KnownPoisson(self._poisson, units),),
            (),
        )
        rates = Generic(blocks).rates(x)
        assert np.linalg.norm(rates.velocity) > 1e-2
        np.testing.assert_allclose(rates.entropy_rates, 0, atol=1e-15)
        np.testing.assert_allclose(rates.energy_rate, 0, atol=1e-15)

    def test_scaled_coordinates_keep_the_structure_of_known_blocks(self, dtype):
        units = Coordinates.of([1.0, -2.0, 0.3], self.scale, 0.2)
        field = Generic(self._known(units))
        states = _states(20, self.size).reshape(-1, self.size) / 2
        assert_lawful(jax.jit(jax.vmap(lambda x: law_errors(field, x)))(states))
