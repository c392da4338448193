"""Rollouts batched over realisations and trajectories, in chunks that fit memory."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..data import Trajectories
from ..devices import over_devices
from ..generic import AbstractDomain, AbstractMethod, Coordinates
from ..integrate import RK4, AbstractIntegrator, Drive, Laws, audited_rollout
from ..machine import cores

# States advanced together: enough to fill a GPU, few enough to stay in the cache of a CPU's core.
BATCH = {"cpu": 256, "gpu": 131072}
MEMORY = 4 * 2**30
# Library kernels without a search among them: on an H200 as fast, compiled in 4 s instead of 16.
KERNELS = {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}
# One thread per core: small matrices gain nothing from several cores at once.
WORKERS = {"cpu": cores()}


class Chunk(NamedTuple):
    """Rollouts of a few trajectories, on one device or along the first axis on all of them.

    States are in the user's units, rates of energy and entropy per unit of the model's time. All
    chunks are of one size: rows after the last trajectory repeat others.
    """

    trajectories: range
    states: Float[Array, "trajectory sample time variable"]
    laws: Laws


def ensemble(
    method: AbstractMethod,
    coordinates: Coordinates,
    initial: Float[np.ndarray, "trajectory variable"],
    times: Float[np.ndarray, " time"],
    indices: Float[Array, "sample k"],
    drive: Drive | None = None,
    lengths: Int[np.ndarray, " trajectory"] | None = None,
    integrator: AbstractIntegrator = RK4,
) -> Iterator[Chunk]:
    """Roll every realisation out from every initial state, a few trajectories at a time.

    `drive`, from `driving`, moves the entries that a domain prescribes. A trajectory that is
    shorter than the grid stands still from its last record on.
    """
    shape = len(indices), len(times), initial.shape[1], method.domain.cells
    size = _rows(len(initial), *shape)
    steps, scaled = _steps_and_states(coordinates, initial, times, lengths)
    double = jnp.result_type(float) == jnp.float64  # a setting of this thread alone

    @jax.enable_x64(double)
    def roll(start):
        chosen = range(start, min(start + size, len(initial)))
        # A short last chunk is filled up, so that one compilation serves all chunks.
        inputs = _chosen((scaled, drive, steps), np.resize(chosen, size))
        made = _on_all_devices(method, coordinates, inputs, indices, integrator)
        return jax.block_until_ready(Chunk(chosen, *made))

    first, *rest = range(0, len(initial), size)
    yield roll(first)  # alone, so that it is compiled once
    # Programs for several devices, started by several threads, could wait for each other for ever.
    workers = WORKERS.get(jax.default_backend(), 1)
    yield from _ahead(roll, rest, workers) if jax.local_device_count() == 1 else map(roll, rest)


def _on_all_devices(method, coordinates, inputs, indices, integrator):
    """Trajectories are shared out over the devices or, if they are fewer, samples."""
    if len(inputs[0]) >= jax.local_device_count():
        shared = jax.tree.map(over_devices, inputs)
        return _roll(method, coordinates, *shared, indices, integrator)
    made = _roll(method, coordinates, *inputs, over_devices(indices), integrator)
    together = jax.device_put(made, jax.local_devices()[0])
    return jax.tree.map(lambda a: a[:, : len(indices)], together)


def _rows(trajectories: int, samples: int, *shape: int) -> int:
    """Rows of a chunk that is shared out over all devices."""
    devices = jax.local_device_count()
    if trajectories >= devices:
        return devices * chunk_size(-(-trajectories // devices), samples, *shape)
    return chunk_size(trajectories, -(-samples // devices), *shape)


def _ahead(function: Callable[[int], Chunk], items: list[int], workers: int) -> Iterator[Chunk]:
    """Like `map`, in threads that keep a few results ahead of whoever takes them."""
    with ThreadPoolExecutor(workers) as pool:
        waiting = deque(pool.submit(function, item) for item in items[:workers])
        for item in items[workers:]:
            yield waiting.popleft().result()
            waiting.append(pool.submit(function, item))
        while waiting:
            yield waiting.popleft().result()


def compile_ensemble(
    method: AbstractMethod,
    coordinates: Coordinates,
    initial: Float[np.ndarray, "trajectory variable"],
    times: Float[np.ndarray, " time"],
    indices: Float[Array, "sample k"],
    drive: Drive | None = None,
    integrator: AbstractIntegrator = RK4,
) -> Chunk:
    """Compile `ensemble` for these shapes without running it; a first chunk, as shapes alone.

    For one device.
    """
    size = chunk_size(len(initial), len(indices), len(times), initial.shape[1], method.domain.cells)
    steps, scaled = _steps_and_states(coordinates, initial, times)
    first = _chosen((scaled, drive, steps), np.arange(size))
    arguments = (method, coordinates, *first, indices, integrator)
    _roll.lower(*arguments).compile()  # pyright: ignore[reportFunctionMemberAccess]
    return Chunk(range(size), *eqx.filter_eval_shape(_rolled, *arguments))


def driving(domain: AbstractDomain, coordinates: Coordinates, data: Trajectories) -> Drive | None:
    """How the prescribed entries of trajectories move, in scaled coordinates."""
    if not domain.prescribed:
        return None
    exact, where = coordinates.on_host(), list(domain.prescribed)
    steps = np.diff(data.times) / exact.time_unit
    values = exact.scaled(data.states)[..., where]
    rates = exact.scaled_velocity(data.derivatives)[..., where]
    # After the end of a shorter trajectory nothing moves.
    ended = np.arange(len(data.times)) >= data.lengths[:, None]
    last = np.take_along_axis(values, data.lengths[:, None, None] - 1, 1)
    values, rates = np.where(ended[..., None], last, values), np.where(ended[..., None], 0, rates)
    return Drive.from_records(steps, values, rates)


def _chosen(arrays, rows):
    """Rows of all arrays, on the device."""
    return jax.tree.map(lambda a: jnp.asarray(a[rows], float), arrays)


def _steps_and_states(coordinates, initial, times, lengths=None):
    exact = coordinates.on_host()
    steps = np.tile(np.diff(times) / exact.time_unit, (len(initial), 1))
    if lengths is not None:
        steps[np.arange(steps.shape[1]) >= lengths[:, None] - 1] = 0
    return steps, exact.scaled(initial)


def chunk_size(trajectories: int, samples: int, records: int, entries: int, cells: int = 1) -> int:
    """Trajectories per chunk, on one device: all chunks equal, none over the memory limit."""
    per_trajectory = samples * records * (entries + 2 * cells + 8) * jnp.zeros(()).itemsize
    batch = BATCH.get(jax.default_backend(), BATCH["gpu"])
    most = min(batch // (samples * cells), MEMORY // per_trajectory)
    chunks = -(-trajectories // max(1, most))
    return -(-trajectories // chunks)


def _rolled(method, coordinates, scaled, drive, steps, indices, integrator):
    def one(x, drive, steps, index):
        return audited_rollout(method.realise(index), x, steps, drive, integrator)

    every = jax.vmap(one, (None, None, None, 0))
    if len(scaled) == 1:  # without an axis of its own: a second less to trace
        x, drive, steps = jax.tree.map(lambda a: a[0], (scaled, drive, steps))
        states, laws = jax.tree.map(lambda a: a[None], every(x, drive, steps, indices))
    else:
        states, laws = jax.vmap(every, (0, 0, 0, None))(scaled, drive, steps, indices)
    return coordinates.unscaled(states), laws


# Compiler options are for programs alone: what is traced inside another one is `_rolled`.
_roll = eqx.filter_jit(_rolled, compiler_options=KERNELS)  # pyright: ignore
