"""The machine a run was made on: what it is, and where the seconds go."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import jax
import jax.monitoring

from . import __version__

_COMPILE_EVENTS = (
    "/jax/core/compile/jaxpr_trace_duration",
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def environment() -> dict[str, str | int]:
    """Versions and device, as they stand in `results.json`; their number, where it is not one."""
    counts = {"devices": jax.device_count(), "processes": jax.process_count()}
    return {
        "spenn": __version__,
        "jax": jax.__version__,
        "device": jax.devices()[0].device_kind,
        **{name: count for name, count in counts.items() if count > 1},
    }


class Clock:
    """Seconds by stage, and the share of them that went into tracing and compilation."""

    def __init__(self):
        """Start the clock and listen to JAX's own timings."""
        self.start = time.perf_counter()
        self.seconds: dict[str, float] = {}
        self.compile = 0.0
        jax.monitoring.register_event_duration_secs_listener(self._listen)

    def _listen(self, event: str, duration_secs: float, **_: str | int):
        if event in _COMPILE_EVENTS:
            self.compile += duration_secs

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time spent inside to one stage."""
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    @property
    def total(self) -> float:
        """Seconds since the clock was started."""
        return time.perf_counter() - self.start
