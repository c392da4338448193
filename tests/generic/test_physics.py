"""Which blocks are known, which are learned."""

import jax
import pytest

from spenn.generic import Coordinates, KnownPotential, LearnedPotential
from spenn.physics import Physics
from spenn.systems import OSCILLATOR


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
