"""Speed of training, rollouts and compilation, cold and warm, appended to `benchmarks/speed.md`.

python benchmarks/run.py            # on whatever device JAX finds
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

TABLE = Path(__file__).with_name("speed.md")
HEADER = """# Speed

Made by `make bench`. Oscillator, default networks. Steps are optimiser steps; an evaluation is one
call of a realisation's vector field within an RK4 rollout. Compile seconds are those of the
processes' first calls, tracing included: cold, and warm from JAX's persistent cache.

| date | device | host | jax | batch | base steps/s | epinet steps/s | evaluations/s | \
compile cold s | compile warm s | peak memory MiB |
|---|---|---|---|---|---|---|---|---|---|---|
"""


def main() -> None:
    """Measure twice in fresh processes that share a cache: the first is cold, the second warm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true", help="measure in this process")
    parser.add_argument("--table", type=Path, default=TABLE, help="table to append to")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure()))
        return
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **os.environ,
            "JAX_COMPILATION_CACHE_DIR": cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        command = [sys.executable, __file__, "--measure"]
        cold, warm = (
            json.loads(
                subprocess.run(
                    command, env=environment, check=True, capture_output=True, text=True
                ).stdout.splitlines()[-1]
            )
            for _ in range(2)
        )
    row = (
        f"| {date.today()} | {warm['device']} | {warm['host']} | {warm['jax']} | {warm['batch']} "
        f"| {warm['base']:.0f} | {warm['epinet']:.0f} | {warm['evaluations']:.2e} "
        f"| {cold['compile']:.1f} | {warm['compile']:.1f} | {warm['memory']:.0f} |\n"
    )
    text = options.table.read_text() if options.table.exists() else HEADER
    options.table.write_text(text + row)
    print(row)


def measure() -> dict:
    """All figures of one process."""
    import jax
    import numpy as np

    from spenn.config import FitConfig
    from spenn.forecast import ensemble
    from spenn.generic import Coordinates
    from spenn.physics import Physics
    from spenn.systems import OSCILLATOR, simulate
    from spenn.training import CHUNK, fit_base, fit_epinet, make_samples

    cpu = jax.default_backend() == "cpu"
    config = FitConfig(batch=1024 if cpu else 4096, races=1)
    data = simulate(OSCILLATOR, OSCILLATOR.draw(np.random.default_rng(0), 20))
    coordinates = Coordinates.from_data(data.states.reshape(-1, 3), data.derivatives.reshape(-1, 3))
    samples = make_samples(data, coordinates, config)
    key = jax.random.key(0)
    marks: list[float] = []

    def mark(steps, loss):
        del steps, loss
        marks.append(time.perf_counter())

    def timed(stage):
        """Seconds of the first call, and steps per second afterwards."""
        marks.clear()
        start = time.perf_counter()
        result = stage()
        rate = CHUNK * (len(marks) - 1) / (marks[-1] - marks[0])
        return result, marks[0] - start - CHUNK / rate, rate

    short = FitConfig(**{**vars(config), "steps": 5 * CHUNK, "epinet_steps": 5 * CHUNK})
    base, base_compile, base_rate = timed(
        lambda: fit_base(samples, coordinates, Physics(), short, key=key, report=mark)
    )
    model, epinet_compile, epinet_rate = timed(
        lambda: fit_epinet(base, samples, 1e-2, short, key=key, report=mark)
    )
    indices = model.draw(100 if cpu else 2000, key=key)
    initial, times = data.states[:, 0], data.times[:101]

    def roll():
        start = time.perf_counter()
        for chunk in ensemble(model, coordinates, initial, times, indices):
            jax.block_until_ready(chunk.states)
        return time.perf_counter() - start

    first, again = roll(), min(roll() for _ in range(3))
    stats = jax.devices()[0].memory_stats() or {}
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "device": jax.devices()[0].device_kind,
        "host": _host(),
        "jax": jax.__version__,
        "batch": config.batch,
        "base": base_rate,
        "epinet": epinet_rate,
        "evaluations": len(initial) * len(indices) * 4 * len(times) / again,
        "compile": base_compile + epinet_compile + first - again,
        "memory": stats.get("peak_bytes_in_use", host * 2**20) / 2**20,
    }


def _host() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if sys.platform == "linux" else []
    model = next((li.split(":")[1].strip() for li in lines if "model name" in li), "")
    return f"{model or platform.machine()}, {os.cpu_count()} cores"


if __name__ == "__main__":
    main()
