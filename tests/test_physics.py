"""Which blocks are known, which are learned, and what a learned entropy reads."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spenn
from spenn.baselines import MCDropout
from spenn.config import FitConfig
from spenn.epinet import scale_priors
from spenn.generic import Bar, Coordinates, Generic, KnownPotential, LearnedPotential
from spenn.physics import Physics
from spenn.systems import OSCILLATOR
from spenn.training import attach_epinets


def _blocks(physics):
    return physics.blocks(Coordinates.identity(3), 3, 4, 1, key=jax.random.key(0))


def test_everything_is_learned_by_default():
    blocks = _blocks(Physics())
    assert [
        len(p) for p in (blocks.energy, blocks.entropy, blocks.poisson, blocks.dissipation)
    ] == [1] * 4
    assert isinstance(blocks.energy[0], LearnedPotential)


def test_known_alone_and_known_with_learned():
    alone = _blocks(Physics(energy=OSCILLATOR.energy, learned=("entropy", "dissipation")))
    assert [type(p) for p in alone.energy] == [KnownPotential]
    assert alone.poisson == ()
    both = _blocks(Physics(energy=OSCILLATOR.energy))
    assert [type(p) for p in both.energy] == [KnownPotential, LearnedPotential]


@pytest.mark.parametrize("name", ["energy", "entropy"])
def test_energy_and_entropy_cannot_be_left_out(name):
    learned = tuple({"energy", "entropy", "poisson"} - {name})
    with pytest.raises(ValueError, match=f"the {name} must be given, learned or both"):
        Physics(learned=learned)


def test_unknown_block():
    with pytest.raises(ValueError, match="there is no block 'friction'"):
        Physics(learned=("energy", "friction"))


class TestEntropyOfSomeVariables:
    """The network reads fewer entries; epinets, priors and dropout follow."""

    physics = Physics(entropy_of=(0, 2))

    def _slopes(self, method, n=50):
        states = jnp.asarray(np.random.default_rng(0).normal(size=(n, 3)))
        indices = method.draw(n, key=jax.random.key(1))
        slope = jax.vmap(lambda x, z: jax.grad(method.realise(z).entropy)(x))
        return np.asarray(jax.jit(slope)(states, indices))

    def test_every_realisation_of_every_method(self, x64):
        blocks = _blocks(self.physics)
        assert blocks.entropy[0].network.layers[0].weight.shape == (4, 2)
        assert blocks.energy[0].network.layers[0].weight.shape == (4, 3)
        spenn_ = attach_epinets(blocks, 0.5, FitConfig(epinet_width=4), key=jax.random.key(2))
        states = jnp.asarray(np.random.default_rng(3).normal(size=(40, 3)))
        for method in (spenn_, scale_priors(spenn_, states), MCDropout(blocks, 0.2)):
            slopes = self._slopes(method)
            np.testing.assert_array_equal(slopes[:, 1], 0)
            assert np.all(np.isfinite(slopes)) and np.all(np.ptp(slopes[:, [0, 2]], 0) > 1e-3)

    def test_names_are_those_of_the_data(self):
        named = Physics(entropy_of=("eps", 0)).named(OSCILLATOR.names)
        assert named.entropy_of == (2, 0)
        assert named.named(OSCILLATOR.names) == named
        data = spenn.simulate(OSCILLATOR, OSCILLATOR.draw(np.random.default_rng(0), 3))
        config = FitConfig(width=4, depth=1, steps=4, race_steps=2, races=1, batch=32)
        model = spenn.fit_deterministic(data, 0, config, Physics(entropy_of=("eps",)))
        assert isinstance(part := model.blocks.entropy[0], LearnedPotential)
        assert part.reads == (2,)

    def test_internal_variables_of_a_bar(self):
        bar = Bar.of(4, 1.0, 1.0)
        blocks = Physics(domain=bar, entropy_of=(1,)).blocks(
            Coordinates.identity(18), 18, 4, 1, key=jax.random.key(0)
        )
        slope = jax.grad(Generic(blocks).entropy)(jnp.linspace(0.0, 1.0, 18))
        np.testing.assert_array_equal(slope[:14], 0)
        assert np.all(np.abs(slope[14:]) > 0)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"entropy_of": ()}, "at least one variable, and none twice"),
            ({"entropy_of": (1, 1)}, "at least one variable, and none twice"),
            ({"entropy_of": (3,)}, "numbers from 0 to 2; it has 3"),
            ({"entropy_of": (-1,)}, "numbers from 0 to 2; it has -1"),
            ({"entropy_of": ("eps",)}, "numbers from 0 to 2; it has 'eps'"),
            (
                {"entropy_of": (1,), "entropy": OSCILLATOR.entropy, "learned": ("energy",)},
                "the entropy is not learned",
            ),
        ],
    )
    def test_wrong_lists(self, options, message):
        with pytest.raises(ValueError, match=message):
            _blocks(Physics(**options))

    def test_wrong_names(self):
        with pytest.raises(ValueError, match=r"no variable 'epz' \(did you mean 'eps'\?\)"):
            Physics(entropy_of=("epz",)).named(OSCILLATOR.names)
        with pytest.raises(ValueError, match="where a state has extent"):
            Physics(domain=Bar.of(4, 1.0, 1.0), entropy_of=("theta",)).named(("theta",))
