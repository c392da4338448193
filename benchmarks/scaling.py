"""Rollouts on one core and on more: by threads, by devices of one process, by processes.

python benchmarks/scaling.py        # cores are doubled up to those of this machine

Every way is given the same cores, and evaluates the same S-PENN on the same trajectories, scores
included. Efficiency is the time of one core over the time of n, over n. Seconds of CPU, of all
processes together, say what a way costs where other work disturbs the clock.
"""

import argparse
import os
import socket
import subprocess
import sys
import time

TRAJECTORIES, SAMPLES, RECORDS = 32, 128, 201
WAYS = {"threads": (1, 1), "devices": (None, 1), "processes": (1, None)}
"""Devices and processes of each; none: as many as there are cores."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", action="store_true", help="measure in this process")
    if parser.parse_args().measure:
        print(*measure())
        return
    available = sorted(os.sched_getaffinity(0))
    alone, busy = seconds(available[:1], 1, 1)
    print("| cores | by | seconds | of CPU | efficiency |\n|---|---|---|---|---|")
    print(f"| 1 | | {alone:.2f} | {busy:.2f} | 1.00 |", flush=True)
    cores = 2
    while cores <= len(available):
        for way, (devices, processes) in WAYS.items():
            spent, busy = seconds(available[:cores], devices or cores, processes or cores)
            efficiency = alone / spent / cores
            print(f"| {cores} | {way} | {spent:.2f} | {busy:.2f} | {efficiency:.2f} |", flush=True)
        cores *= 2


def seconds(cores: list[int], devices: int, processes: int) -> tuple[float, float]:
    """Seconds of one evaluation by the clock and of CPU, in fresh processes that share the cores.

    It is compiled before.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    each = len(cores) // processes
    started = [
        subprocess.Popen(
            [sys.executable, __file__, "--measure"],
            env=os.environ
            | {
                "JAX_PLATFORMS": "cpu",
                "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
                "JAX_COORDINATOR_ADDRESS": address,
                "JAX_NUM_PROCESSES": str(processes),
                "JAX_PROCESS_ID": str(i),
                "CORES": ",".join(map(str, cores[i * each : (i + 1) * each])),
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(processes)
    ]
    said = [process.communicate()[0].splitlines()[-1].split() for process in started]
    clock, busy = zip(*(map(float, pair) for pair in said), strict=True)
    return max(clock), sum(busy)


def measure() -> tuple[float, float]:
    os.sched_setaffinity(0, map(int, os.environ["CORES"].split(",")))
    # After the cores are chosen: JAX counts them.
    import jax
    import numpy as np

    import spenn
    from spenn.devices import start
    from spenn.forecast import evaluate
    from spenn.generic import Coordinates
    from spenn.physics import Physics
    from spenn.training import attach_epinets

    start()
    coordinates, config, key = Coordinates.identity(3), spenn.FitConfig(), jax.random.key(0)
    base = Physics().blocks(coordinates, 3, config.width, config.depth, key=key)
    method = attach_epinets(base, 0.1, config, key=key)
    initial = np.random.default_rng(0).normal(size=(TRAJECTORIES, 1, 3))
    states = np.repeat(initial, RECORDS, 1)
    data = spenn.Trajectories(0.01 * np.arange(RECORDS), states, np.zeros_like(states))
    indices = method.draw(SAMPLES, key=key)

    def once():
        began = time.perf_counter(), time.process_time()
        evaluate(method, coordinates, data, indices, required=0)
        return time.perf_counter() - began[0], time.process_time() - began[1]

    once()
    return min(once() for _ in range(3))


if __name__ == "__main__":
    main()
