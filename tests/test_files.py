"""Model files: what is written comes back, and what is damaged is refused."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spenn
from spenn.calibrate import Conformal
from spenn.config import FitConfig
from spenn.generic import Coordinates, Deterministic
from spenn.model import Calibration, Model
from spenn.physics import Physics
from spenn.training import attach_epinets

CONFIG = FitConfig(width=6, epinet_width=3, index="uniform")
NAMES = ("a", "b", "c")


def make_model(physics=spenn.Physics()):  # noqa: B008
    """A small random model with a calibration."""
    coordinates = Coordinates.of([1.0, 2.0, 3.0], [0.1, 1.0, 10.0], 2.0)
    key = jax.random.key(0)
    blocks = physics.blocks(coordinates, 3, CONFIG.width, CONFIG.depth, key=key)
    method = attach_epinets(blocks, 0.1, CONFIG, key=key)
    scores = jnp.sort(jax.random.uniform(key, (20, 4, 3)), 0)
    conformal = Conformal(scores, jnp.sort(scores.max(2), 0))
    return Model(NAMES, coordinates, method, CONFIG, Calibration(np.arange(5.0), conformal))


@pytest.fixture
def path(tmp_path):
    """A saved model."""
    make_model().save(tmp_path / "model.spenn")
    return tmp_path / "model.spenn"


def test_round_trip_is_bit_identical(path):
    first, second = make_model(), spenn.load(path)
    assert second.names == NAMES and second.config == CONFIG
    x, z = np.array([1.1, 2.5, 7.0]), first.draw(1)[0]
    for name in ("energy", "entropy", "velocity"):
        np.testing.assert_array_equal(getattr(first, name)(x, z), getattr(second, name)(x, z))
    assert first.calibration is not None and second.calibration is not None
    np.testing.assert_array_equal(
        first.calibration.conformal.scores, second.calibration.conformal.scores
    )


def test_a_model_with_a_conserved_combination_keeps_it(tmp_path):
    model = make_model(spenn.Physics(conserved=((1.0, 0.0, 2.0),)))
    model.save(tmp_path / "model.spenn")
    x, z = np.array([1.1, 2.5, 7.0]), model.draw(1)[0]
    velocity = spenn.load(tmp_path / "model.spenn").velocity(x, z)
    np.testing.assert_array_equal(velocity, model.velocity(x, z))
    assert np.abs(velocity).max() > 1e-3
    np.testing.assert_allclose(velocity[0] + 2 * velocity[2], 0, atol=1e-5)


def test_base_model_round_trip(tmp_path):
    base = make_model().base
    base.save(tmp_path / "base.spenn")
    loaded = spenn.load(tmp_path / "base.spenn")
    assert isinstance(loaded.method, Deterministic)
    x, z = np.ones(3), np.zeros(0)
    np.testing.assert_array_equal(base.velocity(x, z), loaded.velocity(x, z))


def test_known_functions_are_asked_for_again(tmp_path):
    physics = Physics(energy=lambda x: jnp.sum(x**2), learned=("entropy", "poisson", "dissipation"))
    model = make_model(physics)
    model.save(tmp_path / "known.spenn")
    with pytest.raises(ValueError, match="known energy: pass the functions again"):
        spenn.load(tmp_path / "known.spenn")
    loaded = spenn.load(tmp_path / "known.spenn", physics=physics)
    x, z = np.ones(3), model.draw(1)[0]
    # The known part is pulled back through the coordinates that were saved.
    np.testing.assert_allclose(loaded.energy(x, z), 3.0, rtol=1e-5)


def test_every_flipped_byte_is_noticed(path):
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(content), 60):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(0, 8)
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"model\.spenn"):
            spenn.load(path)


@pytest.mark.parametrize("keep", [0, 4, 8, 100, 5000])
def test_truncated_files_are_refused(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"model\.spenn"):
        spenn.load(path)


def test_other_files_are_refused_in_one_sentence(path):
    path.write_bytes(b"\x80\x05\x95 a renamed pickle")
    with pytest.raises(ValueError, match="not a spenn model file"):
        spenn.load(path)
    path.write_bytes((2**60).to_bytes(8, "little") + b"{}")
    with pytest.raises(ValueError, match="not a spenn model file"):
        spenn.load(path)
    with pytest.raises(ValueError, match="cannot be read"):
        spenn.load(path.with_name("missing.spenn"))


def test_newer_formats_are_refused(path):
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    manifest = json.loads(header["__metadata__"]["spenn"])
    header["__metadata__"]["spenn"] = json.dumps({**manifest, "format": 99})
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])
    with pytest.raises(ValueError, match=r"has format 99 .* update spenn"):
        spenn.load(path)


def test_failed_save_keeps_the_old_file(path, monkeypatch):
    old = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace(make_model(), calibration=None).save(path)
    assert path.read_bytes() == old
    assert [p.name for p in path.parent.iterdir()] == [path.name]
