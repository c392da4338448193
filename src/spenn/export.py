"""Vector fields that run without spenn: one serialised program of `jax.export`."""

from pathlib import Path

import jax
import jax.export
from jaxtyping import Array, Float

from .folders import write_atomically
from .model import Model

PLATFORMS = ("cpu", "cuda")


def export_velocity(model: Model, path: str | Path) -> None:
    """Write velocity, energy and entropy of a model as a program for CPUs and NVIDIA GPUs.

    The program takes states `x` (n, variable) in the user's units and indices `z` (n, k), as
    `model.draw` gives them, for any n, and returns a dictionary with `velocity` (n, variable),
    `energy` (n,) and `entropy` (n,). It holds the weights, and known functions as they were traced;
    numbers are of the floating type of the model. On a bar all entries are free: rates that are
    prescribed are for the caller to set.

    **Example:** `jax.export.deserialize(Path("field.bin").read_bytes()).call(x, z)["velocity"]`
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise ValueError(f"{path} cannot be written: there is no folder {path.parent}.")
    (n,) = jax.export.symbolic_shape("n")
    number = model.coordinates.scale.dtype
    shapes = ((n, len(model.names)), (n, model.draw(1).shape[1]))
    arguments = (jax.ShapeDtypeStruct(shape, number) for shape in shapes)

    @jax.jit
    def field(x, z):
        return jax.vmap(lambda x, z: _at(model, x, z))(x, z)

    exported = jax.export.export(field, platforms=PLATFORMS)(*arguments)
    write_atomically(path, bytes(exported.serialize()))


def _at(model: Model, x: Float[Array, " d"], z: Float[Array, " k"]) -> dict[str, Array]:
    """What a model says at one state, at one index."""
    return {
        "velocity": model.velocity(x, z),
        "energy": model.energy(x, z),
        "entropy": model.entropy(x, z),
    }
