"""An exported field is the model's, and needs JAX alone."""

import subprocess
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spenn
from spenn.baselines import MCDropout
from spenn.config import FitConfig
from spenn.export import export_velocity
from spenn.generic import Coordinates
from spenn.model import Model
from spenn.training import attach_epinets

CONFIG = FitConfig(width=5, epinet_width=3, prior_width=3, dimension=2)
ELSEWHERE = """
import sys
sys.modules["spenn"] = None
from pathlib import Path
import jax, jax.export, numpy as np
folder = Path(sys.argv[1])
with np.load(folder / "arguments.npz") as arrays, jax.enable_x64(arrays["x"].dtype == "float64"):
    field = jax.export.deserialize((folder / "field.bin").read_bytes())
    x, z = arrays["x"], arrays["z"]
    found, one = field.call(x, z), field.call(x[:1], z[:1])
    np.testing.assert_allclose(one["velocity"][0], found["velocity"][0], rtol=1e-4)
    np.savez(folder / "found.npz", **found)
try:
    import spenn
except ImportError:
    sys.exit(0)
sys.exit("spenn could be imported")
"""


def _model():
    """Known and learned parts, a conserved combination, epinets."""
    key = jax.random.key(0)
    units = Coordinates.of([1.0, 2.0, 3.0, 0.0], [0.5, 1.0, 2.0, 1.0], 2.0)
    physics = spenn.Physics(energy=lambda x: jnp.sum(jnp.cos(x)), conserved=((0, 0, 1.0, 1.0),))
    blocks = physics.blocks(units, 4, CONFIG.width, CONFIG.depth, key=key)
    return Model(tuple("abcd"), units, attach_epinets(blocks, 0.3, CONFIG, key=key), CONFIG)


def _expected(model, x, z):
    functions = {name: getattr(model, name) for name in ("velocity", "energy", "entropy")}
    return {name: jax.jit(jax.vmap(function))(x, z) for name, function in functions.items()}


def test_the_same_numbers_without_spenn(dtype, tmp_path):
    model = _model()
    export_velocity(model, tmp_path / "field.bin")
    x = np.random.default_rng(0).normal(size=(7, 4)).astype(dtype)
    z = np.asarray(model.draw(7), dtype)
    np.savez(tmp_path / "arguments.npz", x=x, z=z)
    command = [sys.executable, "-c", ELSEWHERE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    expected = _expected(model, jnp.asarray(x), jnp.asarray(z))
    with np.load(tmp_path / "found.npz") as found:
        assert set(found) == set(expected)
        for name, values in expected.items():
            assert found[name].dtype == dtype and found[name].shape == values.shape
            tolerance = 200 * np.finfo(dtype).eps
            np.testing.assert_allclose(found[name], values, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", ["base", "mc-dropout"])
def test_other_methods_and_both_platforms(tmp_path, kind):
    model = _model()
    methods = {"base": model.base.method, "mc-dropout": MCDropout(model.blocks, 0.2)}
    model = replace(model, method=methods[kind])
    export_velocity(model, tmp_path / "field.bin")
    field = jax.export.deserialize((tmp_path / "field.bin").read_bytes())
    assert set(field.platforms) == {"cpu", "cuda"}
    x, z = jnp.ones((3, 4)), model.draw(3)
    expected = _expected(model, x, z)
    for name, values in field.call(x, z).items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-4, atol=1e-5)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match="cannot be written: there is no folder"):
        export_velocity(_model(), tmp_path / "none" / "field.bin")
