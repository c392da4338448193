"""Model files.

A `.spenn` file is a safetensors file. Its metadata hold one JSON manifest, which is everything but
arrays, and a SHA-256 digest over manifest and arrays. Reading one runs no code from it, allocates
no more than its size, and ends in a model or in a `ValueError` of one sentence.
"""

import stat
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .calibrate import Conformal
from .folders import write_atomically
from .generic import Coordinates
from .manifest import Arrays, Manifest
from .model import Calibration, Model
from .physics import Physics
from .tensors import Tensors, name_of, named, pack, text_of, unpack

LARGEST_FILE = 2_000_000_000


def save_model(model: Model, path: Path) -> None:
    """Write a model to one file."""
    text = Manifest.of(model).text()
    try:
        Manifest.parse(text)
    except ValueError as error:
        raise ValueError(f"{path} could not be read again: it {error}.") from None
    tensors = named(eqx.filter(Arrays(model.coordinates, model.method), eqx.is_array))
    if model.calibration is not None:
        tensors["calibration.times"] = np.asarray(model.calibration.times)
        tensors |= named({"calibration": model.calibration.conformal})
    write_atomically(path, pack(text, tensors))


def load(path: str | Path, physics: Physics | None = None) -> Model:
    """Read a model.

    **Arguments:** `path` of a file that `model.save` wrote; `physics` with the functions of
    `spenn.Physics` again, which no file can hold. What `spenn.read_physics` made is in the file.

    **Example:** `model = spenn.load("bar.spenn")`
    """
    path = Path(path)
    try:
        return _load(_content(path), physics)
    except ValueError as error:
        raise ValueError(f"{path} {error}.") from None


def _content(path: Path) -> bytes:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("cannot be read: it is not a file")
        if status.st_size > LARGEST_FILE:
            raise ValueError(
                f"is too large for a model file: {status.st_size} bytes, and {LARGEST_FILE} is most"
            )
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None


def _load(content: bytes, physics: Physics | None) -> Model:
    text, _ = text_of(content)
    manifest = Manifest.parse(text)
    _, tensors = unpack(content)
    shapes = manifest.shapes(manifest.physics(physics))
    calibration = _calibration(tensors) if manifest.calibrated else None
    arrays = _filled(shapes, tensors)
    if calibration is not None:
        _check_calibration(calibration, len(arrays.method.domain.free(len(manifest.names))))
    return Model(
        manifest.names,
        *arrays,
        manifest.config,
        calibration,
        manifest.units,
        manifest.time_unit,
        manifest.provenance,
        manifest.longest_step,
    )


def _filled(shapes: Arrays, tensors: Tensors) -> Arrays:
    """Arrays in place of shapes: all that are asked for, and no others."""
    used = set()

    def leaf(where, shape):
        if not isinstance(shape, jax.ShapeDtypeStruct):
            return shape
        name = name_of(where)
        used.add(name)
        array = tensors.get(name)
        kind = np.dtype(shape.dtype).kind
        if array is None or array.shape != shape.shape or array.dtype.kind != kind:
            raise ValueError(f"does not fit its own description at {name}")
        return jnp.asarray(array, shape.dtype)

    arrays = jax.tree_util.tree_map_with_path(leaf, shapes)
    if unused := set(tensors) - used:
        raise ValueError(f"does not fit its own description at {min(unused)[:80]!r}")
    _check_coordinates(arrays.coordinates.on_host())
    return arrays


def _check_coordinates(coordinates: Coordinates) -> None:
    offset, scale, time_unit = coordinates.offset, coordinates.scale, coordinates.time_unit
    positive = np.append(scale, time_unit)
    if not np.all(np.isfinite(np.append(offset, positive))) or np.any(positive <= 0):
        raise ValueError("is damaged: its scaled coordinates are not finite, or not positive")


def _calibration(tensors: Tensors) -> Calibration:
    """The calibration, whose arrays are taken out of the others."""
    every = []
    for name in ("calibration.times", "calibration.scores", "calibration.maxima"):
        array = tensors.pop(name, None)
        if array is None or array.dtype.kind != "f":
            raise ValueError(f"does not fit its own description at {name}")
        every.append(array)
    times, scores, maxima = every
    return Calibration(times, Conformal(jnp.asarray(scores), jnp.asarray(maxima)))


def _check_calibration(calibration: Calibration, free: int) -> None:
    """Scores are those of `free` entries at all times but the first, in order, NaN last."""
    times = calibration.times
    scores, maxima = (np.asarray(a) for a in jax.tree.leaves(calibration.conformal))
    if times.ndim != 1 or times.size < 2 or not np.all(np.diff(times) > 0):
        raise ValueError("has a calibration at times that do not increase")
    if scores.shape != (len(scores), times.size - 1, free) or maxima.shape != scores.shape[:2]:
        raise ValueError("has a calibration of another shape than its forecasts")
    for array in (scores, maxima):
        absent = np.isnan(array)
        disorder = (array[1:] < array[:-1]) | (absent[:-1] & ~absent[1:])
        if not len(array) or np.any(array < 0) or np.any(disorder):
            raise ValueError("has a calibration with scores that are negative or not in order")
