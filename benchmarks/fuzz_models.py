"""Damaged and hostile model files: a model or a sentence, never anything else.

    python benchmarks/fuzz_models.py [--seconds 300] [--seed 0] [--keep FOLDER]

Files of all kinds are damaged at random: flipped bits, cut and spliced content, changed headers,
and, with a digest that fits, changed manifests and arrays. Each must load or end in a `ValueError`
of one line within ten seconds, with no more than 1 GB of memory above the start. One that does not
is kept in the folder.
"""

import argparse
import json
import resource
import signal
import tempfile
import time
from collections import Counter
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import spenn
from spenn.baselines import DeepEnsemble, MCDropout
from spenn.calibrate import Conformal
from spenn.generic import Bar, Coordinates, is_learned
from spenn.model import Calibration, Model
from spenn.tensors import pack, unpack
from spenn.training import attach_epinets

MEMORY, SECONDS = 2**30, 10
CONFIG = spenn.FitConfig(
    width=4, epinet_width=3, prior_width=3, members=2, member_widths=(4,), dropout_width=4
)
WORDS = {"canonical": [["a", "b"]], "kinetic_energy": {"b": 2.0}, "conserved": [{"c": 1, "d": 1}]}
ODD = [
    *(None, True, False, [], {}, "", "a", "../../etc/passwd", "\x00", "\ud800", "a" * 10_000),
    *(0, 1, 2, 3, 4, 5, 7, 10, 50, 99, -1, 10**6, 10**9, 2**31, 2**63, 2**64, 10**400),
    *(0.5, -0.0, 1e-300, 1e300, float("inf"), float("nan")),
    *([0], [1, 1], [[0, 1]], ["a"], {"a": 1}, [None], [[[[[]]]]], ["a", "b", "c", "d"]),
]


class Hang(BaseException):
    """Ten seconds are over."""


def seeds() -> list[bytes]:
    """Valid files of every kind."""
    key, names = jax.random.key(0), ("a", "b", "c", "d")
    units = Coordinates.of(np.arange(4.0), np.arange(1.0, 5.0), 2.0)
    blocks = spenn.Physics().blocks(units, 4, 4, CONFIG.depth, key=key)
    words = spenn.read_physics(WORDS, names).blocks(units, 4, 4, CONFIG.depth, key=key)
    learned, shared = eqx.partition(blocks, is_learned(blocks))
    members = eqx.combine(jax.tree.map(lambda a: jnp.stack([a, a]), learned), shared)
    scores = jnp.sort(jax.random.uniform(key, (5, 3, 4)), 0)
    calibration = Calibration(np.arange(4.0), Conformal(scores, jnp.sort(scores.max(2), 0)))
    model = Model(names, units, attach_epinets(words, 0.1, CONFIG, key=key), CONFIG, calibration)
    bar = Bar.of(1, 1.0, 1.0)
    six = Coordinates.identity(bar.size(4))
    on_bar = spenn.Physics(domain=bar).blocks(six, bar.size(4), 4, CONFIG.depth, key=key)
    plain = replace(model, calibration=None)
    every = [
        model,
        model.base,
        replace(plain, method=DeepEnsemble(members, 2)),
        replace(plain, method=MCDropout(blocks, 0.2)),
        replace(
            plain,
            names=tuple(f"x{i}" for i in range(bar.size(4))),
            coordinates=six,
            method=attach_epinets(on_bar, 0.1, CONFIG, key=key),
        ),
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seed.spenn"
        found = []
        for one in every:
            one.save(path)
            found.append(path.read_bytes())
    return found


def flip(rng, content, _):
    """A few bits anywhere, most of them in the header."""
    damaged = bytearray(content)
    for _ in range(rng.integers(1, 9)):
        limit = len(damaged) if rng.random() < 0.3 else min(len(damaged), 4000)
        damaged[rng.integers(limit)] ^= 1 << rng.integers(8)
    return bytes(damaged)


def cut(rng, content, _):
    """Too short, or too long."""
    end = rng.integers(len(content))
    return content[:end] if rng.random() < 0.7 else content + content[:end]


def splice(rng, content, other):
    """The beginning of one file and the end of another."""
    return content[: rng.integers(len(content))] + other[rng.integers(len(other)) :]


def edit_header(rng, content, _):
    """A header that is JSON still, with other values, and its length."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    change(rng, header)
    text = json.dumps(header).encode()
    claimed = len(text) if rng.random() < 0.9 else int(rng.integers(2**62))
    return claimed.to_bytes(8, "little") + text + content[8 + size :]


def edit_manifest(rng, content, _):
    """Another manifest, and the digest that goes with it."""
    text, tensors = unpack(content)
    manifest = json.loads(text)
    for _ in range(rng.integers(1, 4)):
        change(rng, manifest)
    return pack(json.dumps(manifest), tensors)


def edit_tensors(rng, content, other):
    """Other arrays, and the digest that goes with them."""
    text, tensors = unpack(content)
    name = rng.choice(sorted(tensors))
    match rng.integers(6):
        case 0:
            del tensors[name]
        case 1:
            tensors[name] = tensors[name].reshape(-1)[: rng.integers(tensors[name].size + 1)]
        case 2:
            tensors[name] = tensors[name].astype(rng.choice(["f2", "f8", "i4", "u1", "?"]))
        case 3:
            tensors[name] = np.full_like(tensors[name], rng.choice([np.nan, np.inf, 0, -1, 1e38]))
        case 4:
            tensors[str(rng.choice(["x", "../x", "calibration.times", "\n"]))] = np.ones(3)
        case _:
            tensors = unpack(other)[1]
    return pack(text, tensors)


def change(rng, node):
    """Put something odd at a random place of some JSON."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = keys[rng.integers(len(keys))]
        if not isinstance(node[key], dict | list) or not node[key] or rng.random() < 0.15:
            break
        node = node[key]
    # A copy: a later change may go inside it.
    odd = deepcopy(ODD[rng.integers(len(ODD))])
    match rng.integers(4):
        case 0:
            del node[key]
        case 1 if isinstance(node, dict):
            node[str(odd)] = node[key]
        case 2 if isinstance(node[key], int | float):
            node[key] = node[key] * 2 + int(rng.integers(3)) - 1
        case _:
            node[key] = odd


CHANGES = (flip, cut, splice, edit_header, edit_manifest, edit_manifest, edit_tensors)


def verdict(path: Path) -> str:
    """What became of a file: a model, the beginning of a sentence, or what is wrong."""
    start = time.monotonic()
    signal.alarm(SECONDS)
    try:
        spenn.load(path)
        found = "a model"
    except ValueError as error:
        sentence = str(error)
        plain = sentence.startswith(f"{path} ") and "\n" not in sentence and len(sentence) < 1000
        words = sentence.removeprefix(f"{path} ").split(":")[0].split(" at ")[0]
        found = words[:60] if plain else f"WRONG: no plain sentence: {sentence[:300]!r}"
    except Hang:
        found = "WRONG: a hang"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        found = f"WRONG: {type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    slow = time.monotonic() - start
    return found if slow < SECONDS else f"WRONG: {slow:.0f} s, then {found}"


def limit_memory() -> None:
    """Allow 1 GB above what the process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("fuzz"))
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)

    def hang(*_):
        raise Hang

    signal.signal(signal.SIGALRM, hang)
    rng, files = np.random.default_rng(options.seed), seeds()
    # A crash of the interpreter leaves this file behind.
    path = options.keep / "current.spenn"
    for content in files:
        path.write_bytes(content)
        assert verdict(path) == "a model", verdict(path)
    limit_memory()
    found, end = Counter(), time.monotonic() + options.seconds
    while time.monotonic() < end:
        number = sum(found.values())
        content, other = (files[rng.integers(len(files))] for _ in range(2))
        way = CHANGES[rng.integers(len(CHANGES))]
        path.write_bytes(way(rng, content, other))
        result = verdict(path)
        found[result] += 1
        if result.startswith("WRONG"):
            path.rename(options.keep / f"{options.seed}-{number}.spenn")
            print(f"{options.seed}-{number} ({way.__name__}): {result}", flush=True)
    path.unlink(missing_ok=True)
    print(f"{sum(found.values())} files")
    for result, count in found.most_common():
        print(f"{count:8d}  {result}")
    return int(any(result.startswith("WRONG") for result in found))


if __name__ == "__main__":
    raise SystemExit(main())
