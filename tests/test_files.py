"""Model files: what is written comes back, and what is damaged is refused."""

import json
import os
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spenn
from spenn import files
from spenn.baselines import DeepEnsemble, MCDropout
from spenn.calibrate import Conformal
from spenn.config import FitConfig
from spenn.generic import Coordinates, Deterministic, is_learned
from spenn.model import Calibration, Model, Provenance
from spenn.physics import Physics
from spenn.tensors import pack, unpack
from spenn.training import attach_epinets

CONFIG = FitConfig(
    width=6, epinet_width=3, index="uniform", members=2, member_widths=(6,), dropout_width=6
)
NAMES = ("a", "b", "c")
WORDS = {
    "canonical": [["a", "b"]],
    "kinetic_energy": {"b": 2.0},
    "elastic_energy": {"a": {"stiffness": 3.0, "rest": 1.0}},
}


def make_model(physics=spenn.Physics()):  # noqa: B008
    """A small random model with a calibration."""
    coordinates = Coordinates.of([1.0, 2.0, 3.0], [0.1, 1.0, 10.0], 2.0)
    key = jax.random.key(0)
    blocks = physics.blocks(coordinates, 3, CONFIG.width, CONFIG.depth, key=key)
    method = attach_epinets(blocks, 0.1, CONFIG, key=key)
    scores = jnp.sort(jax.random.uniform(key, (20, 4, 3)), 0).at[-1, -1].set(jnp.nan)
    conformal = Conformal(scores, jnp.sort(scores.max(2), 0))
    return Model(
        NAMES,
        coordinates,
        method,
        CONFIG,
        Calibration(np.arange(5.0), conformal),
        ("m", "kg m/s", "J"),
        "s",
        Provenance(7, "0.1.0", "0.9.0", ("d" * 32, "e" * 32)),
        0.25,
    )


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.spenn"
    make_model().save(path)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path, content):
    """A saved model."""
    path = tmp_path / "model.spenn"
    path.write_bytes(content)
    return path


def rewrite(path, change):
    """Change manifest and tensors of a file, and give it the digest that goes with them."""
    text, tensors = unpack(path.read_bytes())
    manifest = json.loads(text)
    change(manifest, tensors)
    path.write_bytes(pack(json.dumps(manifest), tensors))


def assert_refused(path, message=None):
    with pytest.raises(ValueError, match=message) as caught:
        spenn.load(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path} ") and sentence.endswith(".")
    assert "\n" not in sentence and len(sentence) < len(str(path)) + 300


def assert_same(first, second):
    x, z = np.array([1.1, 2.5, 7.0]), first.draw(1)[0]
    for name in ("energy", "entropy", "velocity"):
        np.testing.assert_array_equal(getattr(first, name)(x, z), getattr(second, name)(x, z))


def test_round_trip_is_bit_identical(path):
    first, second = make_model(), spenn.load(path)
    for name in ("names", "config", "units", "time_unit", "provenance", "longest_step"):
        assert getattr(first, name) == getattr(second, name)
    assert_same(first, second)
    assert first.calibration is not None and second.calibration is not None
    np.testing.assert_array_equal(first.calibration.times, second.calibration.times)
    for name in ("scores", "maxima"):
        np.testing.assert_array_equal(
            *(getattr(m.calibration.conformal, name) for m in (first, second))
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
    assert isinstance(loaded.method, Deterministic) and loaded.calibration is None
    assert_same(base, loaded)


def test_words_need_no_python_to_come_back(tmp_path):
    model = make_model(spenn.read_physics(WORDS, NAMES))
    learned, shared = eqx.partition(model.blocks, is_learned(model.blocks))
    members = eqx.combine(jax.tree.map(lambda a: jnp.stack([a, 2 * a]), learned), shared)
    methods = {
        "spenn": model.method,
        "dropout": MCDropout(model.blocks, CONFIG.dropout),
        "ensemble": DeepEnsemble(members, 2),
    }
    for name, method in methods.items():
        path = tmp_path / f"{name}.spenn"
        written = replace(model, method=method, calibration=None)
        written.save(path)
        loaded = spenn.load(path)
        assert loaded.blocks.entropy[0].reads == (2,)
        assert_same(written, loaded)


def test_known_functions_are_asked_for_again(tmp_path):
    physics = Physics(energy=lambda x: jnp.sum(x**2), learned=("entropy", "poisson", "dissipation"))
    model = make_model(physics)
    model.save(tmp_path / "known.spenn")
    with pytest.raises(ValueError, match="known energy: pass the functions again"):
        spenn.load(tmp_path / "known.spenn")
    with pytest.raises(ValueError, match="known energy: pass the functions again"):
        spenn.load(tmp_path / "known.spenn", physics=Physics())
    loaded = spenn.load(tmp_path / "known.spenn", physics=physics)
    # The known part is pulled back through the coordinates that were saved.
    np.testing.assert_allclose(loaded.energy(np.ones(3), model.draw(1)[0]), 3.0, rtol=1e-5)
    assert_same(model, loaded)


def test_functions_and_words_together(tmp_path):
    words = spenn.read_physics(WORDS, NAMES)
    physics = replace(words, dissipation=lambda x, y: jnp.sum(y**2))
    model = make_model(physics)
    model.save(tmp_path / "both.spenn")
    with pytest.raises(ValueError, match="known dissipation: pass"):
        spenn.load(tmp_path / "both.spenn")
    only = Physics(dissipation=physics.dissipation)
    assert_same(model, spenn.load(tmp_path / "both.spenn", physics=only))


def test_every_flipped_byte_is_noticed(path, content):
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(content), 60):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(0, 8)
        path.write_bytes(damaged)
        assert_refused(path)


@pytest.mark.parametrize("keep", [0, 4, 8, 100, 5000])
def test_truncated_files_are_refused(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    assert_refused(path)


def container(header: bytes, claimed=None) -> bytes:
    return (len(header) if claimed is None else claimed).to_bytes(8, "little") + header


OTHERS = {
    "a pickle": b"\x80\x05\x95 a renamed pickle",
    "a header of a gigabyte": container(b"{}", 2**30),
    "a header beyond all numbers": container(b"{}", 2**64 - 1),
    "no metadata": container(b"{}"),
    "metadata of another kind": container(b'{"__metadata__": []}'),
    "a manifest that is no text": container(b'{"__metadata__": {"spenn": 1, "sha256": "x"}}'),
    "half a character": container(b'{"__metadata__": {"spenn": "\\ud800", "sha256": "x"}}'),
    "not UTF-8": container(b'{"__metadata__": \xff}'),
    "a header without end": container(b"[" * 100_000),
    "a manifest without end": container(
        json.dumps({"__metadata__": {"spenn": "[" * 100_000, "sha256": "x"}}).encode()
    ),
    "a huge tensor": container(
        json.dumps(
            {
                "__metadata__": {"spenn": '{"format": 3}', "sha256": "x"},
                "a": {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]},
            }
        ).encode()
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_files_are_refused_in_one_sentence(path, name):
    path.write_bytes(OTHERS[name])
    assert_refused(path)


def test_what_is_no_file(path, tmp_path):
    assert_refused(path.with_name("missing.spenn"), "cannot be read: No such file")
    assert_refused(tmp_path, "cannot be read: it is not a file")
    os.mkfifo(tmp_path / "pipe.spenn")
    assert_refused(tmp_path / "pipe.spenn", "it is not a file")


def test_too_large_a_file_is_not_read(path, monkeypatch):
    with path.open("r+b") as file:
        file.truncate(files.LARGEST_FILE + 1)  # sparse: it takes no room
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda _: pytest.fail("it was read"))
    assert_refused(path, "is too large for a model file")


@pytest.mark.parametrize(
    ("version", "way_out"), [(99, "update spenn"), (1, "save the model again")]
)
def test_other_formats_are_refused(path, version, way_out):
    rewrite(path, lambda manifest, _: manifest.update(format=version))
    assert_refused(path, f"has format {version} and this spenn reads format 5: .*{way_out}")


@pytest.mark.parametrize("key", ["kind", "names", "provenance", "config", "learned", "calibrated"])
def test_whatever_is_missing_is_named(path, key):
    rewrite(path, lambda manifest, _: manifest.pop(key))
    assert_refused(path, f"lacks '{key}'")


WRONG = {
    "kind": ["magic", None, 1],
    "names": [
        [],
        ["a", "b"],
        ["a", "b", "c", "d"],
        ["a", "a", "c"],
        ["a", "b", 3],
        ["a", "b", "../c"],
        ["a", "b", "c\n"],
        ["a", "b", "\ud800"],
        "abc",
    ],
    "units": [["m"], [1, 2, 3], ["m", "m", "\x1b[31m"]],
    "time_unit": [None, "s" * 10_000],
    "longest_step": [0.0, -1.0, "1", []],
    "provenance": [None, {}, {"seed": -1, "spenn": "", "jax": "", "trajectories": []}],
    "learned": [["energy"], ["friction"], "energy", [["energy"]]],
    "given": [["energy"], ["friction"], None],
    "energy": [[], {"slope": [1.0], "stiffness": [1.0], "rest": [1.0]}],
    "entropy": [{"slope": [1e200] * 3, "stiffness": [0.0] * 3, "rest": [0.0] * 3}],
    "poisson": [{"pairs": []}, {"pairs": [[0, 3]]}, {"pairs": [[0]]}, {"pairs": [[0, True]]}],
    "entropy_of": [[], [0, 0], [3], [-1], ["a"], [2**70]],
    "moving": [0, 3, 2, 10**30, 1.5, "2"],
    "bar": [
        {"cells": 10**12, "internal_variables": 2},
        {"cells": 0, "internal_variables": 2},
        {"cells": 4},
    ],
    "calibrated": [False, 1, None],
    "import": ["os"],
}


@pytest.mark.parametrize(
    ("key", "value"), [(k, v) for k, values in WRONG.items() for v in values], ids=repr
)
def test_a_manifest_that_is_wrong_is_refused(path, key, value):
    rewrite(path, lambda manifest, _: manifest.update({key: value}))
    assert_refused(path)


CONFIGS = {
    "width": [10**9, 0, -1, "6", 6.5, True, None, 2**64],
    "depth": [10**9, 0, 3],
    "dimension": [10**9, 0, 4],
    "epinet_depth": [10**9, 0, 2],
    "prior_width": [10**9, 0],
    "members": [10**9, 0],
    "member_widths": [[], [10**9], 5, [[5]]],
    "index": ["gaussian", 1],
    "dropout": [1.0, -0.5, "0.2", 1e308],
    "learning_rate": [None, [], {}],
    "colour": ["red"],
}


@pytest.mark.parametrize(
    ("key", "value"), [(k, v) for k, values in CONFIGS.items() for v in values], ids=repr
)
def test_a_configuration_that_is_wrong_is_refused(path, key, value):
    rewrite(path, lambda manifest, _: manifest["config"].update({key: value}))
    assert_refused(path)


def test_numbers_that_are_none_are_refused(path, content):
    for number in ("NaN", "Infinity", "1e999", "1" + "0" * 5000):
        text, tensors = unpack(content)
        path.write_bytes(
            pack(text.replace('"learning_rate": 0.02', f'"learning_rate": {number}'), tensors)
        )
        assert_refused(path)


def _set(name, value):
    return lambda tensors: tensors.update({name: np.asarray(value, np.float32)})


TENSORS = {
    "one is missing": lambda tensors: tensors.pop("coordinates.scale"),
    "one is too many": _set("method.extra", 1.0),
    "one has another shape": _set("coordinates.scale", [1.0, 2.0]),
    "one is not of numbers": lambda t: t.update({"coordinates.scale": np.ones(3, bool)}),
    "a scale is zero": _set("coordinates.scale", [1.0, 0.0, 1.0]),
    "a scale is no number": _set("coordinates.scale", [1.0, np.nan, 1.0]),
    "an offset is infinite": _set("coordinates.offset", [1.0, np.inf, 1.0]),
    "time runs backwards": _set("coordinates.time_unit", -1.0),
    "scores are missing": lambda tensors: tensors.pop("calibration.scores"),
    "scores are of other times": _set("calibration.scores", np.zeros((20, 5, 3))),
    "scores are of other trajectories": _set("calibration.scores", np.zeros((10, 4, 3))),
    "scores are flat": _set("calibration.scores", np.zeros(3)),
    "scores are of nothing": lambda t: t.update(
        {
            "calibration.scores": np.zeros((0, 4, 3), np.float32),
            "calibration.maxima": np.zeros((0, 4), np.float32),
        }
    ),
    "scores are negative": _set("calibration.scores", -np.ones((20, 4, 3))),
    "scores are not sorted": _set("calibration.scores", np.arange(240)[::-1].reshape(20, 4, 3)),
    "maxima are of another shape": _set("calibration.maxima", np.zeros(20)),
    "times do not increase": _set("calibration.times", [0, 1, 3, 2, 4]),
    "times are no numbers": _set("calibration.times", [0, 1, np.nan, 3, 4]),
    "times are integers": lambda t: t.update({"calibration.times": np.arange(5)}),
}


@pytest.mark.parametrize("name", TENSORS)
def test_arrays_that_do_not_fit_are_refused(path, name):
    rewrite(path, lambda _, tensors: TENSORS[name](tensors))
    assert_refused(path)


def test_names_that_no_file_would_take_back_are_not_written(tmp_path):
    for names in (("a", "a", "c"), ("a", "b", "../c")):
        with pytest.raises(ValueError, match="name"):
            replace(make_model(), names=names).save(tmp_path / "model.spenn")
    with pytest.raises(ValueError, match=r"could not be read again: it .* units cannot be"):
        replace(make_model(), units=("m", "m\n", "m")).save(tmp_path / "model.spenn")
    assert not any(tmp_path.iterdir())


def test_failed_save_keeps_the_old_file(path, monkeypatch):
    old = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace(make_model(), calibration=None).save(path)
    assert path.read_bytes() == old
    assert [p.name for p in path.parent.iterdir()] == [path.name]
