"""Deep ensembles: members of different widths in one program, each what it is alone."""

import os
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spenn
from spenn.baselines import DeepEnsemble, fit_ensemble
from spenn.baselines._ensemble import pad
from spenn.generic import Generic, is_learned
from spenn.training import stack
from support import random_blocks

CONFIG = spenn.FitConfig(
    depth=1, members=4, member_widths=(5, 8, 3), member_steps=30, race_steps=10, member_batch=32
)


def _members():
    return [random_blocks(3, width, 2, seed=width) for width in (4, 7, 5)]


def _ensemble(members):
    weights, (shared, *_) = zip(*(eqx.partition(m, is_learned(m)) for m in members), strict=True)
    padded, _ = pad(weights)
    return DeepEnsemble(eqx.combine(stack(padded), shared), len(members))


def _data(seed=0, trajectories=6):
    rng = np.random.default_rng(seed)
    states, derivatives = rng.normal(size=(2, trajectories, 20, 3))
    return spenn.Trajectories(np.arange(20.0), states, derivatives, names=["a", "b", "c"])


def test_a_padded_member_is_the_member(x64):
    members = _members()
    ensemble = _ensemble(members)
    x = jnp.array([0.3, -0.2, 0.5])
    for i, alone in enumerate(map(Generic, members)):
        ours = ensemble.realise(jnp.array([float(i)]))
        for name in ("energy", "entropy", "velocity"):
            expected = getattr(alone, name)(x)
            np.testing.assert_allclose(getattr(ours, name)(x), expected, rtol=1e-12)


def test_every_member_is_drawn_equally_often():
    ensemble = _ensemble(_members())
    drawn = np.asarray(ensemble.draw(9, key=jax.random.key(1)))
    assert drawn.shape == (9, 1)
    assert np.bincount(drawn[:, 0].astype(int)).tolist() == [3, 3, 3]
    few = np.asarray(ensemble.draw(2, key=jax.random.key(1)))[:, 0]
    assert len(set(few)) == 2


@pytest.fixture(scope="module")
def fitted():
    return fit_ensemble(_data(), 0, CONFIG)


def test_units_that_were_added_stay_zero(fitted):
    """Members have widths 5, 8, 3, 5: what lies beyond them was neither trained nor read."""
    weights = np.asarray(fitted.method.base.energy[0].network.readout.weight)
    assert weights.shape == (4, 1, 8)
    for member, width in zip(weights, (5, 8, 3, 5), strict=True):
        assert np.all(member[:, width:] == 0) and np.all(member[:, :width] != 0)


def test_fit_is_deterministic_and_members_differ(fitted):
    again = fit_ensemble(_data(), 0, CONFIG)
    jax.tree.map(np.testing.assert_array_equal, fitted.method, again.method)
    x = np.array([0.1, 0.2, 0.3])
    velocities = np.array([fitted.velocity(x, [float(i)]) for i in range(4)])
    assert np.all(np.std(velocities, 0) > 0)


def test_round_trip(fitted, tmp_path):
    fitted.save(tmp_path / "model.spenn")
    loaded = spenn.load(tmp_path / "model.spenn")
    assert loaded.config == CONFIG
    jax.tree.map(np.testing.assert_array_equal, fitted.method, loaded.method)


SEVERAL = """
import numpy as np, sys
sys.path.insert(0, {tests!r})
import jax
from test_deep_ensemble import CONFIG, _data
from spenn.baselines import fit_ensemble
assert len(jax.devices()) == 3
model = fit_ensemble(_data(), 0, CONFIG)
model.save({path!r})
"""


def test_any_number_of_devices_gives_the_same_ensemble(x64, tmp_path):
    """Four members on three devices: the answer of one device, to rounding."""
    path = tmp_path / "several.spenn"
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=3",
        "JAX_ENABLE_X64": "1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    code = SEVERAL.format(tests=os.path.dirname(__file__), path=str(path))
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=300)
    one = fit_ensemble(_data(), 0, CONFIG)
    ours, theirs = (jax.tree.leaves(m.method) for m in (one, spenn.load(path)))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)
