"""Kill training again and again at random moments: does it end with the bits of a run left alone?

    python benchmarks/kill.py [--times 20] [--method spenn]

Every trial starts `spenn.fit` (or a baseline) in a process of its own, kills it with SIGKILL after
a random time, and starts it again, until it finishes; the model is compared with that of a process
that nobody disturbed. The model is small, so that most of the time is the start of Python and JAX.
"""

import argparse
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
import numpy as np
import spenn
from spenn.baselines import fit_dropout, fit_ensemble
from spenn.training import _checkpoint

_checkpoint.SHORTEST, _checkpoint.SHARE = 0.02, 1.0  # after nearly every chunk
method, folder, out = sys.argv[1:]
config = spenn.FitConfig(
    width=6, depth=1, steps=3000, batch=128, races=2, race_steps=1000, dimension=2, epinet_width=3,
    prior_width=3, epinet_steps=1000, epinet_batch=64, members=2, member_widths=(4, 6),
    member_steps=2000, member_batch=64, dropout_width=6,
)
times = np.linspace(0, 3, 41)
phase, decay = times + np.arange(6.0)[:, None], np.exp(-0.1 * times)
states = np.stack([decay * np.sin(phase), decay * np.cos(phase), phase - decay], -1)
data = spenn.Trajectories(times, states, np.gradient(states, times, axis=1))
train = {"spenn": spenn.fit, "ensemble": fit_ensemble, "dropout": fit_dropout}[method]
print("ready", flush=True)
train(data, 0, config, checkpoint=folder or None).save(Path(out))
"""


def start(method: str, folder: str, out: Path, cache: Path) -> subprocess.Popen:
    environment = {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        **os.environ,
    }
    command = [sys.executable, "-c", PROGRAM, method, folder, str(out)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def undisturbed(method: str, folder: str, out: Path, cache: Path) -> float:
    """Let one process finish; returns the seconds between its first line and its end."""
    process = start(method, folder, out, cache)
    assert process.stdout is not None
    process.stdout.readline()
    began = time.monotonic()
    process.communicate()
    if process.returncode:
        sys.exit(f"training ended with code {process.returncode}.")
    return time.monotonic() - began


def killed(method: str, folder: Path, out: Path, cache: Path, longest: float, rng) -> int:
    """Kill at random moments until a process finishes in time; returns how often it was killed."""
    for kills in range(1000):
        process = start(method, str(folder), out, cache)
        assert process.stdout is not None
        process.stdout.readline()
        try:
            # Wider every time: a machine that has got busier must not keep it from finishing.
            process.communicate(timeout=rng.uniform(0, longest * 1.3**kills))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            continue
        if process.returncode:
            sys.exit(f"training ended with code {process.returncode}.")
        return kills
    sys.exit("it never finished.")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--method", choices=("spenn", "ensemble", "dropout"), default="spenn")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    place = Path(tempfile.mkdtemp())
    cache, out = place / "cache", place / "model.spenn"
    try:
        undisturbed(options.method, "", out, cache)  # compiles
        alone = undisturbed(options.method, "", out, cache)
        expected = digest(out)
        same, longest = 0, 0.8 * alone
        for trial in range(options.times):
            while not (
                kills := killed(options.method, place / f"kept-{trial}", out, cache, longest, rng)
            ):
                shutil.rmtree(place / f"kept-{trial}")  # too late to kill it: this does not count
                longest *= 0.8
            same += digest(out) == expected
            print(f"{trial + 1}: killed {kills} times, {same} identical so far", flush=True)
        print(f"{same} of {options.times} identical ({alone:.1f} s undisturbed)")
    finally:
        shutil.rmtree(place, ignore_errors=True)
    sys.exit(same < options.times)


if __name__ == "__main__":
    main()
