"""Model files.

A `.spenn` file is a safetensors file. Its metadata hold one JSON manifest: format, names,
configuration, and a SHA-256 digest over manifest and tensors. Reading one runs no code from it.
"""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .baselines import DeepEnsemble, MCDropout
from .calibrate import Conformal
from .config import FitConfig
from .epinet import SPENN
from .folders import write_atomically
from .generic import (
    BLOCKS,
    Bar,
    Coordinates,
    Deterministic,
    KnownDissipation,
    KnownPoisson,
    KnownPotential,
    Point,
    is_learned,
)
from .model import Calibration, Model
from .tensors import name_of, named, pack, text_of, unpack
from .training import Physics, attach_epinets

FORMAT = 1
KINDS = {
    "base": Deterministic,
    "spenn": SPENN,
    "deep-ensemble": DeepEnsemble,
    "mc-dropout": MCDropout,
}


def save_model(model: Model, path: Path) -> None:
    """Write a model to one file."""
    tensors = _tensors({"coordinates": model.coordinates, "method": model.method})
    if model.calibration is not None:
        tensors["calibration.times"] = np.asarray(model.calibration.times)
        tensors |= _tensors({"calibration": model.calibration.conformal})
    manifest = {
        "format": FORMAT,
        "kind": _kind(model),
        "names": list(model.names),
        "config": asdict(model.config),
        "known": _known(model),
        "bar": _bar(model),
        "moving": _moving(model),
    }
    text = json.dumps(manifest, sort_keys=True)
    write_atomically(path, pack(text, tensors))


def load(path: str | Path, physics: Physics | None = None) -> Model:
    """Read a model; `physics` gives the known functions again, which no file can hold."""
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    manifest = _manifest(path, content)
    try:
        _, tensors = unpack(content)
    except ValueError as error:
        raise ValueError(f"{path} {error}.") from None
    physics = _physics(path, manifest, physics)
    config = _config(manifest)
    skeleton = eqx.filter_eval_shape(_skeleton, manifest, config, physics)
    filled = _fill(path, skeleton, tensors)
    calibration = _calibration(tensors)
    names = tuple(manifest["names"])
    return Model(names, filled["coordinates"], filled["method"], config, calibration)


def _kind(model: Model) -> str:
    """The name under which a file remembers a method."""
    for kind, method in KINDS.items():
        if isinstance(model.method, method):
            return kind
    raise ValueError(f"a {type(model.method).__name__} cannot be saved: spenn cannot rebuild it.")


def _known(model: Model) -> dict[str, list[str]]:
    """Which blocks have known and which have learned parts."""
    known = (KnownDissipation, KnownPoisson, KnownPotential)
    return {
        name: ["known" if isinstance(p, known) else "learned" for p in getattr(model.blocks, name)]
        for name in BLOCKS
    }


def _bar(model: Model) -> dict[str, int] | None:
    """Shape of the bar that a model is of, if it is of one."""
    match model.blocks.domain:
        case Bar(cells=cells, internal_variables=count):
            return {"cells": cells, "internal_variables": count}
    return None


def _moving(model: Model) -> int | None:
    """Number of directions in which a state moves, if some combinations are conserved."""
    directions = model.blocks.domain.directions
    return None if directions is None else directions.shape[1]


def _tensors(tree) -> dict[str, np.ndarray]:
    return named(eqx.filter(tree, eqx.is_array))


def _manifest(path: Path, content: bytes) -> dict:
    """The manifest, which says how to read the rest."""
    try:
        manifest = json.loads(text_of(content)[0])
        version = manifest["format"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is not a spenn model file, or it is cut short.") from None
    if version != FORMAT:
        raise ValueError(
            f"{path} has format {version} and this spenn reads format {FORMAT}: update spenn."
        )
    return manifest


def _physics(path: Path, manifest, physics: Physics | None) -> Physics:
    needed = [name for name, parts in manifest["known"].items() if "known" in parts]
    learned = tuple(name for name, parts in manifest["known"].items() if "learned" in parts)
    bar = manifest.get("bar")
    if bar is None:
        moving = manifest.get("moving")
        shape = None if moving is None else (len(manifest["names"]), moving)
        domain = Point(basis=None if shape is None else jnp.zeros(shape))
    else:
        domain = Bar.of(bar["cells"], 1.0, 1.0, bar["internal_variables"])
    if physics is None and not needed:
        return Physics(learned=learned, domain=domain)
    if physics is None or any(getattr(physics, name) is None for name in needed):
        raise ValueError(
            f"{path} holds a model with a known {' and '.join(needed)}: pass the functions again, "
            "as spenn.load(path, physics=...)."
        )
    return physics if bar else replace(physics, domain=domain, conserved=())


def _config(manifest) -> FitConfig:
    """The configuration; JSON has lists where it has tuples."""
    values: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in manifest["config"].items()
    }
    return FitConfig(**values)


def _skeleton(manifest, config: FitConfig, physics: Physics):
    """A model of the right shape; evaluated for its shapes alone."""
    size, key = len(manifest["names"]), jax.random.key(0)
    coordinates, kind = Coordinates.identity(size), manifest["kind"]
    widths = {
        "deep-ensemble": max(config.member_widths[: config.members]),
        "mc-dropout": config.dropout_width,
    }
    width = widths.get(kind, config.width)
    blocks = physics.blocks(coordinates, size, width, config.depth, key=key)
    match kind:
        case "base":
            method = Deterministic(blocks)
        case "spenn":
            method = attach_epinets(blocks, 0.0, config, key=key)
        case "mc-dropout":
            method = MCDropout(blocks, config.dropout)
        case "deep-ensemble":
            one, shared = eqx.partition(blocks, is_learned(blocks))
            every = jax.tree.map(lambda a: jnp.broadcast_to(a, (config.members, *a.shape)), one)
            method = DeepEnsemble(eqx.combine(every, shared), config.members)
        case _:
            raise ValueError(f"a model file of kind {kind!r} is from a newer spenn: update spenn.")
    return {"coordinates": coordinates, "method": method}


def _fill(path: Path, skeleton, tensors):
    def leaf(where, shape):
        if not isinstance(shape, jax.ShapeDtypeStruct):
            return shape
        array = tensors.get(name_of(where))
        if array is None or array.shape != shape.shape:
            raise ValueError(f"{path} does not fit its own description at {name_of(where)}.")
        return jnp.asarray(array)

    return jax.tree_util.tree_map_with_path(leaf, skeleton)


def _calibration(tensors) -> Calibration | None:
    if "calibration.times" not in tensors:
        return None
    scores, maxima = (jnp.asarray(tensors[f"calibration.{n}"]) for n in ("scores", "maxima"))
    return Calibration(tensors["calibration.times"], Conformal(scores, maxima))
