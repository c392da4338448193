"""The audit: silent on admissible models, loud on any other."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from spenn.config import FitConfig
from spenn.generic import AbstractMethod, Coordinates, Generic
from spenn.model import Model
from support import random_spenn

SIZE, PAIRS = 3, 500


@pytest.fixture(scope="module")
def model():
    units = Coordinates.of([0.1, -0.2, 1.0], [1.0, 2.0, 0.5], 0.5)
    return Model(("a", "b", "c"), units, random_spenn(SIZE, 6, 1, gain=(1.0, 1.0)), FitConfig())


def test_an_admissible_model_has_no_violation(model):
    seen = []
    found = model.check(pairs=PAIRS, report=seen.append)
    assert found.violations == 0 and found.pairs == PAIRS == sum(seen)
    assert found.energy_rate < 1e-12 and found.energy_change < 1e-6 and found.entropy_rate > -1e-12
    assert "no violation" in found.sentence
    assert model.check(np.random.default_rng(0).normal(size=(7, SIZE)), PAIRS).violations == 0


class Broken(AbstractMethod):
    """A realisation whose velocity, or whose energy, is another than it should be."""

    method: AbstractMethod
    change: str = eqx.field(static=True)

    @property
    def domain(self):
        return self.method.domain

    def draw(self, n, *, key):
        return self.method.draw(n, key=key)

    def realise(self, index):
        field = self.method.realise(index)
        return Other(field.blocks, self.change)


class Other(Generic):
    change: str = eqx.field(static=True)

    def assemble(self, x, energy_slope, entropy_slope):
        velocity = super().assemble(x, energy_slope, entropy_slope)
        match self.change:
            case "heating":
                return velocity + 1e-6 * energy_slope
            case "backwards":
                return -velocity
            case "nothing":
                return velocity * jnp.nan
        return velocity

    def energy(self, x):
        energy = super().energy(x)
        if self.change == "hidden":  # a part of the energy that its slope does not know of
            energy = energy + jnp.sum(jnp.sin(lax.stop_gradient(x)))
        return energy


@pytest.mark.parametrize("change", ["heating", "backwards", "nothing", "hidden"])
def test_a_broken_law_is_found(model, change):
    found = replace(model, method=Broken(model.method, change)).check(pairs=PAIRS)
    assert found.violations > PAIRS / 3
    assert "violations" in found.sentence


@pytest.mark.parametrize("states", [np.zeros((2, 2)), np.zeros(3), np.zeros((0, 3))])
def test_states_of_another_shape(model, states):
    with pytest.raises(ValueError, match="rows of 3 numbers"):
        model.check(states)


def test_no_pairs(model):
    with pytest.raises(ValueError, match="at least 1"):
        model.check(pairs=0)
