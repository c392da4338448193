"""Damage valid files of trajectories in random ways and read them.

A damaged file must be read, or refused with one sentence (`ValueError`). Anything else, more than
1 GB of memory or more than ten seconds is a failure, and the file is kept.

    .venv/bin/python benchmarks/fuzz_readers.py --seconds 300 --keep /tmp/fuzz
"""

import argparse
import multiprocessing
import random
import resource
import struct
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np

import spenn
from spenn.data._inspect import inspect

LONGEST = 10.0
MEMORY = 2**30
BATCH = 50
NUMBERS = ["1e308", "-1e308", "nan", "inf", "", "1e999", "0", "1,5", "x", '"', "\0", "1" * 400]
COUNTS = [0, 1, 2, 255, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1]


def originals(folder: Path) -> list[Path]:
    """Small valid files of every kind: with gaps, derivatives, units, times of their own."""
    import h5py

    times = np.linspace(0, 2, 24)
    states = np.stack([np.stack([np.sin(times + i), np.exp(-times)], 1) for i in range(4)])
    tails = states.copy()
    tails[1, 18:] = np.nan
    words = {"names": ("q", "p"), "units": ("m", ""), "time_unit": "s"}
    sets = {
        "plain": spenn.Trajectories(times, states, **words),
        "given": spenn.Trajectories(times, tails, derivatives=2 * tails, **words),
        "uneven": spenn.Trajectories(list(times * np.arange(1, 5)[:, None]), tails),
    }
    for name, data in sets.items():
        for suffix in (".nc", ".npz", ".csv"):
            spenn.write(data, folder / f"{name}{suffix}")
    np.savez(folder / "stored.npz", times=times, states=states, names=np.array(["q", "p"]))
    with h5py.File(folder / "chunked.h5", "w") as file:
        file.create_dataset("state", data=states, chunks=(2, 8, 2), compression="gzip")
        file["time"] = times
        file["state"].attrs["units"] = ["m", "s"]
    return sorted(folder.iterdir())


def flip_bits(content: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def flip_early_bits(content: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice([1, 2, 8])):
        content[rng.randrange(min(2000, len(content)))] ^= 1 << rng.randrange(8)


def truncate(content: bytearray, rng: random.Random) -> None:
    del content[rng.randrange(len(content)) :]


def remove(content: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(content))
    del content[start : start + rng.choice([1, 8, 100])]


def repeat(content: bytearray, rng: random.Random) -> None:
    start, length = rng.randrange(len(content)), rng.choice([1, 8, 100, 1000])
    content[start:start] = content[start : start + length] * rng.choice([1, 2, 10])


def splice(content: bytearray, rng: random.Random) -> None:
    start, goal = rng.randrange(len(content)), rng.randrange(len(content))
    length = rng.choice([4, 8, 64, 512])
    content[goal : goal + length] = content[start : start + length]


def overwrite_count(content: bytearray, rng: random.Random) -> None:
    size = rng.choice([2, 4, 8])
    where = rng.randrange(max(1, len(content) - size))
    value = rng.choice(COUNTS) & (2 ** (8 * size) - 1)
    content[where : where + size] = value.to_bytes(size, rng.choice(["little", "big"]))


def replace_known_size(content: bytearray, rng: random.Random) -> None:
    """Sizes stand in headers as 8-byte integers, or as digits."""
    old = rng.choice([2, 4, 24])
    pattern = rng.choice([struct.pack("<Q", old), struct.pack("<I", old), str(old).encode()])
    places = [i for i in range(len(content)) if content.startswith(pattern, i)]
    if places:
        where, value = rng.choice(places), rng.choice(COUNTS)
        new = str(value).encode() if pattern.isdigit() else value.to_bytes(8, "little")
        content[where : where + len(pattern)] = new if pattern.isdigit() else new[: len(pattern)]


def edit_text(content: bytearray, rng: random.Random) -> None:
    """Cells and separators of a text; of other files, any commas there are."""
    text = content.decode("latin-1")
    cells = text.split(",")
    for _ in range(rng.choice([1, 1, 3])):
        cells[rng.randrange(len(cells))] = rng.choice(NUMBERS)
    content[:] = rng.choice([",", ",", ";", ", "]).join(cells).encode("latin-1")


MUTATIONS = (
    flip_bits,
    flip_early_bits,
    truncate,
    remove,
    repeat,
    splice,
    overwrite_count,
    replace_known_size,
    edit_text,
)


def edit_member(path: Path, goal: Path, rng: random.Random) -> None:
    """Damage an array inside an NPZ file, whose checksums then fit."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(goal, "w", zipfile.ZIP_DEFLATED) as made:
        names = source.namelist()
        victim = rng.choice(names)
        for name in names:
            content = bytearray(source.read(name))
            if name == victim:
                rng.choice(MUTATIONS)(content, rng)
            made.writestr(name, bytes(content))


def damage(path: Path, goal: Path, rng: random.Random) -> None:
    if path.suffix == ".npz" and rng.random() < 0.5:
        edit_member(path, goal, rng)
        return
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        if content:
            rng.choice(MUTATIONS)(content, rng)
    goal.write_bytes(content)


def attempt(path: Path) -> str:
    """What comes of reading one file: `read`, `refused`, or what went wrong."""
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            inspect(path)
        outcome = "read"
    except ValueError as error:
        known = type(error) is ValueError and "\n" not in str(error) and path.name in str(error)
        outcome = "refused" if known else f"bad sentence: {error!r}"
    except BaseException as error:
        outcome = f"{type(error).__name__}: {error}"[:300]
    return outcome if time.perf_counter() - start < LONGEST else f"slow: {outcome}"


def work(sources: list[Path], folder: Path, seeds: range, queue) -> None:
    """Read a batch of damaged files in a process of its own, with limited memory."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    for seed in seeds:
        rng = random.Random(seed)
        source = rng.choice(sources)
        goal = folder / f"{seed}{source.suffix}"
        damage(source, goal, rng)
        queue.put((seed, goal.name, None))
        queue.put((seed, goal.name, attempt(goal)))


def run_batch(sources: list[Path], folder: Path, seeds: range) -> dict[str, str]:
    """Outcomes by file name; a crash or a hang is charged to the file that was being read."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=work, args=(sources, folder, seeds, queue))
    process.start()
    outcomes: dict[str, str | None] = {}
    last = time.monotonic()
    while process.is_alive() or not queue.empty():
        if not queue.empty():
            _, name, outcome = queue.get()
            outcomes[name], last = outcome, time.monotonic()
        elif time.monotonic() - last > 2 * LONGEST:
            process.kill()
        else:
            time.sleep(0.001)
    process.join()
    code = process.exitcode
    return {n: o or f"died or hung, exit code {code}" for n, o in outcomes.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"))
    options = parser.parse_args()
    end, first = time.monotonic() + options.seconds, options.seed * 10**9
    kinds, failures = Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "good").mkdir()
        sources = originals(Path(folder) / "good")
        assert all(attempt(source) == "read" for source in sources), "a valid file is not read"
        while time.monotonic() < end:
            outcomes = run_batch(sources, Path(folder), range(first, first + BATCH))
            first += BATCH
            for name, outcome in outcomes.items():
                path = Path(folder) / name
                kinds[
                    f"{path.suffix} {outcome if outcome in ('read', 'refused') else 'FAILED'}"
                ] += 1
                if outcome not in ("read", "refused"):
                    failures += 1
                    options.keep.mkdir(parents=True, exist_ok=True)
                    path.rename(options.keep / name)
                    print(f"{options.keep / name}: {outcome}", flush=True)
                path.unlink(missing_ok=True)
    print(", ".join(f"{kind}: {count}" for kind, count in sorted(kinds.items())))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
