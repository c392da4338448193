"""Stage two leaves the base and the priors alone, to the last bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spenn.config import FitConfig
from spenn.epinet import trainable
from spenn.generic import Coordinates
from spenn.physics import Physics
from spenn.systems import OSCILLATOR
from spenn.training import Samples, fit_base, fit_epinet
from support import random_blocks

CONFIG = FitConfig(
    width=6, depth=1, steps=20, batch=32, races=2, race_steps=10,
    dimension=2, epinet_width=3, epinet_steps=0,
)  # fmt: skip


def _samples():
    rng = np.random.default_rng(0)
    states, velocities = rng.normal(size=(2, 100, 3))
    arrays = (jnp.asarray(a, jnp.float32) for a in (states, velocities, np.ones((100, 3))))
    return Samples(*arrays, jnp.arange(100) // 10)


def _epinet(base, steps):
    config = FitConfig(**(vars(CONFIG) | {"epinet_steps": steps}))
    return fit_epinet(base, _samples(), 0.1, config, key=jax.random.key(0))


@pytest.fixture(scope="module")
def stage_two():
    base = random_blocks(3, 6, 1, gain=(1.0, 1.0))
    return base, _epinet(base, 0), _epinet(base, 8)


def test_base_is_bit_identical(stage_two):
    base, _, after = stage_two
    jax.tree.map(np.testing.assert_array_equal, base, after.base)


def test_learnable_branches_alone_have_changed(stage_two):
    _, before, after = stage_two
    mask, _ = jax.tree_util.tree_flatten_with_path(trainable(after))
    pairs = zip(mask, jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    same = {
        jax.tree_util.keystr(path): (wanted, np.array_equal(a, b)) for (path, wanted), a, b in pairs
    }
    assert all(unchanged for wanted, unchanged in same.values() if not wanted)
    # A constant added to a potential does not move its slope.
    idle = {name for name, (wanted, unchanged) in same.items() if wanted and unchanged}
    assert idle <= {f".epinets.{name}[0].learn.readout.bias" for name in ("energy", "entropy")}
    assert sum(wanted for wanted, _ in same.values()) > 10


def test_stage_two_is_deterministic(stage_two):
    base, _, after = stage_two
    jax.tree.map(np.testing.assert_array_equal, after, _epinet(base, 8))


def test_stage_one_races_and_is_deterministic():
    reported = []

    def run(seed, report=lambda *_: None):
        units = Coordinates.identity(3)
        return fit_base(
            _samples(), units, Physics(), CONFIG, key=jax.random.key(seed), report=report
        )

    one = run(0, report=lambda steps, loss: reported.append(steps))
    assert sum(reported) == CONFIG.steps
    jax.tree.map(np.testing.assert_array_equal, one, run(0))
    weights = lambda blocks: np.asarray(blocks.energy[0].network.readout.weight)  # noqa: E731
    assert np.any(weights(one) != weights(run(1)))


def test_what_is_known_is_not_trained():
    physics = Physics(
        energy=OSCILLATOR.energy,
        entropy=OSCILLATOR.entropy,
        learned=("poisson", "dissipation", "entropy"),
    )
    units = Coordinates.of([0.0, 0.1, 0.2], [1.0, 2.0, 3.0], 0.5)
    blocks = fit_base(_samples(), units, physics, CONFIG, key=jax.random.key(0))
    x = jnp.array([0.1, 0.2, 0.3])
    (known,) = blocks.energy
    np.testing.assert_allclose(known(x), OSCILLATOR.energy(units.unscaled(x)), rtol=1e-6)
    assert len(blocks.entropy) == 2
