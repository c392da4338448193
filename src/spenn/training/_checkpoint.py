"""What work has reached, on disk: cut off anywhere, it goes on and ends with the same bits.

Steps of training are a function of where it stands and of the number of the step, so that it does
not matter when, or how often, something is kept.
"""

import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ..devices import from_process
from ..folders import write_atomically
from ..machine import environment
from ..tensors import Tensors, digest, name_of, named, pack, unpack

# Share of the time that may go into keeping, and seconds between two times, at least and at most.
SHARE = 0.005
SHORTEST, LONGEST = 1.0, 600.0


class Checkpoint:
    """Trees of arrays under names, in a folder; without a folder nothing is kept.

    Whoever works asks `get` what there was under a name, and tells `put` what to keep. A file that
    is damaged counts as none. Where nothing can be written the work goes on: what was kept before
    stays as it is. Of several processes each keeps what it has done itself.
    """

    def __init__(self, folder: Path | None = None, fingerprint: str = ""):
        """Use a folder that belongs to the work with this fingerprint alone."""
        self.folder, self.fingerprint = folder, fingerprint
        self.next = time.monotonic() + SHORTEST
        self.complained = False

    @classmethod
    def of(cls, folder: Path, work: str, *identity: PyTree) -> "Checkpoint":
        """What a folder keeps of some work, whose result is a function of its `identity`.

        Work of another identity (other data, settings, versions) has a place of its own there.
        """
        fingerprint = fingerprint_of(*identity)
        own = folder / f"{work}-{fingerprint[:16]}"
        if not own.exists() and any(folder.glob(f"{work}-*")):
            warnings.warn(
                f"what {folder} keeps is of other data, settings or versions: it stays there, and "
                "this training starts from the beginning.",
                stacklevel=2,
            )
        return cls(own, fingerprint)

    def get(self, name: str, like: PyTree) -> PyTree | None:
        """What was kept under a name, a tree as `like` is; none if none can be used."""
        if self.folder is None:
            return None
        path = self._path(name)
        try:
            text, tensors = unpack(path.read_bytes())
            if text != self._text(name):
                raise ValueError("is of other work")
            return _restored(like, tensors)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            warnings.warn(f"{path} {error}: this part of the work is done again.", stacklevel=2)
            return None

    def put(self, name: str, tree: PyTree) -> None:
        """Keep a tree of arrays under a name, in place of what was there."""
        if self.folder is None:
            return
        start = time.monotonic()
        content = pack(self._text(name), named(tree))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path(name), content)
        except OSError as error:
            self._complain(error)
        now = time.monotonic()
        self.next = now + min(max((now - start) / SHARE, SHORTEST), LONGEST)

    def number(self, name: str, find: Callable[[], float]) -> float:
        """The number that was kept under a name, or else the one that is found, and kept from now.

        All processes find it, or none: they share the work.
        """
        kept = self.get(name, np.zeros(()))
        number = from_process(np.nan if kept is None else kept)
        if np.isnan(number):
            number = from_process(np.asarray(find(), np.float64))
            self.put(name, number)
        return float(number)

    @property
    def due(self) -> bool:
        """Whether it is time to keep something again; the slower the disk, the more seldom."""
        return self.folder is not None and time.monotonic() >= self.next

    def _path(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{_of_process(name)}.safetensors"

    def _text(self, name: str) -> str:
        return f"{_of_process(name)} {self.fingerprint}"

    def _complain(self, error: OSError) -> None:
        if not self.complained:
            warnings.warn(
                f"cannot keep the progress of training in {self.folder}: {error.strerror}. "
                "Training goes on; what was kept before stays.",
                stacklevel=3,
            )
        self.complained = True


def _of_process(name: str) -> str:
    number = jax.process_index()
    return f"{name}-{number}" if number else name


NOTHING = Checkpoint()


def fingerprint_of(*identity: PyTree) -> str:
    """One word for trees of arrays and plain values, and for what else decides on bits."""
    here = (environment(), version("jaxlib"), jnp.result_type(float).name, jax.device_count())
    leaves = list(enumerate(jax.tree.leaves((identity, here))))
    arrays = {str(i): np.asarray(v) for i, v in leaves if isinstance(v, jax.Array | np.ndarray)}
    return digest(repr([v for i, v in leaves if str(i) not in arrays]), arrays)


def _restored(like: PyTree, tensors: Tensors) -> PyTree:
    def leaf(where, old):
        array = tensors.get(name_of(where))
        if array is None or (array.shape, array.dtype) != (old.shape, old.dtype):
            raise ValueError(f"does not fit at {name_of(where)}")
        if not isinstance(old, jax.Array):
            return array
        # Laid out as if it had never left the device: what comes next is the same program.
        return jax.device_put(array, old.sharding if old.committed else None)

    return jax.tree_util.tree_map_with_path(leaf, like)
