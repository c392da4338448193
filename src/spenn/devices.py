"""Many devices, many processes: the one place that knows of them.

Every process runs the same program. Rows of arrays (trajectories, samples, members) are shared out
over the processes and then over the devices of each, equally: some rows are repeated to fill shares
up. Whoever has a share works on it alone; only results are gathered, so that nobody waits for
anybody else inside a computation.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax
import numpy as np
from jax.experimental.multihost_utils import broadcast_one_to_all, process_allgather
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Int, PyTree, Shaped

ROWS = PartitionSpec("row")


def start() -> None:
    """Join the other processes, before JAX is used for anything else.

    SLURM, Open MPI and Kubernetes are found by JAX itself; elsewhere three variables of the
    environment say who is who.
    """
    try:
        jax.distributed.initialize(**_from_variables())
    except (TypeError, ValueError):
        raise ValueError(
            "--distributed found no other processes: start it under SLURM, Open MPI or Kubernetes, "
            "or set JAX_COORDINATOR_ADDRESS=host:port, JAX_NUM_PROCESSES and JAX_PROCESS_ID."
        ) from None
    # Connections are made once, and now: later one process may keep the others waiting for long.
    with _hushed():
        collect(np.zeros(1), 1)
        from_process(0.0)


def first_process() -> bool:
    """Whether this process is the one that writes and speaks for all."""
    return jax.process_index() == 0


def own_rows(count: int) -> Int[np.ndarray, " share"]:
    """Which of so many rows this process works on: as many as any other, in order."""
    processes = jax.process_count()
    each = -(-count // processes)
    return np.resize(np.arange(count), (processes, each))[jax.process_index()]


def collect(share: PyTree, count: int) -> PyTree:
    """All rows of a tree of arrays, as NumPy, from the shares that processes have of them."""
    share = jax.tree.map(np.asarray, share)
    if jax.process_count() > 1:
        share = _unpacked(process_allgather(_packed(share), tiled=True), share)
    return jax.tree.map(lambda a: a[:count], share)


def from_process(tree: PyTree, source: int = 0) -> PyTree:
    """A tree of arrays or numbers as one process has it, by default the first; as NumPy."""
    if jax.process_count() == 1:
        return jax.tree.map(np.asarray, tree)
    row = jax.tree.map(lambda a: np.asarray(a)[None], tree)
    content = broadcast_one_to_all(_packed(row), jax.process_index() == source)
    return jax.tree.map(lambda a: a.reshape(a.shape[1:]), _unpacked(content, row))


def everywhere(here: bool) -> bool:
    """Whether something is so in every process."""
    every: Bool[np.ndarray, " process"] = collect(np.array([here]), jax.process_count())
    return bool(every.all())


def on_first(work: Callable[[], object]) -> None:
    """Have the first process do what only one should; where it cannot, no process goes on."""
    problem = None
    if first_process():
        try:
            work()
        except Exception as error:
            problem = error
    if from_process(problem is not None):
        raise problem or ValueError("the first process could not go on.")


def share_out(array: Shaped[Array, "row ..."]) -> Shaped[Array, "share ..."]:
    """The rows that this process works on."""
    return array if jax.process_count() == 1 else array[own_rows(len(array))]


def over_devices(array: Shaped[Array, "row ..."]) -> Shaped[Array, "filled ..."]:
    """The same rows shared out over the devices of this process.

    Fewer rows than devices stay together on one.
    """
    devices = jax.local_device_count()
    if devices == 1 or len(array) < devices:
        return array
    rows = np.resize(np.arange(len(array)), -(-len(array) // devices) * devices)
    filled = array if len(rows) == len(array) else array[rows]
    return jax.device_put(filled, NamedSharding(_mesh(), ROWS))


def where_rows_are(function: Callable[[PyTree], PyTree], count: int) -> Callable[[PyTree], PyTree]:
    """A function of arrays with so many rows, for arrays that may come from `over_devices`.

    Every device calls it with its own rows.
    """
    devices = jax.local_device_count()
    if devices == 1 or count < devices:
        return function
    return jax.shard_map(function, mesh=_mesh(), in_specs=ROWS, out_specs=ROWS, check_vma=False)


def _mesh() -> Mesh:
    return Mesh(np.array(jax.local_devices()), ("row",))


def _packed(tree: PyTree) -> Int[np.ndarray, "row byte"]:
    """All arrays as bytes, row by row: one message, and no bit of it is rounded."""
    leaves = [np.ascontiguousarray(a) for a in jax.tree.leaves(tree)]
    return np.concatenate([a.reshape(len(a), -1).view(np.uint8) for a in leaves], 1)


def _unpacked(content: Int[np.ndarray, "row byte"], like: PyTree) -> PyTree:
    leaves, structure = jax.tree.flatten(like)
    edges = np.cumsum([a.nbytes // len(a) for a in leaves])[:-1]
    arrays = [
        np.ascontiguousarray(part).view(a.dtype).reshape(len(content), *a.shape[1:])
        for part, a in zip(np.split(content, edges, 1), leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, arrays)


def _from_variables() -> dict:
    """Who is who, where no cluster says so; the address is read by JAX itself."""
    names = {"num_processes": "JAX_NUM_PROCESSES", "process_id": "JAX_PROCESS_ID"}
    return {key: int(os.environ[name]) for key, name in names.items() if name in os.environ}


@contextmanager
def _hushed() -> Iterator[None]:
    """Keep the standard output clean of what libraries say on connecting."""
    output, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(output, 1)
        os.close(output)
        os.close(nowhere)
