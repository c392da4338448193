"""Systems that spenn has never seen, from a file to scores by its commands, with no option given.

    python benchmarks/own_data.py [--systems containers,pendulum] [--seeds 0,1] [--folder runs/own]

Each system becomes a NetCDF file of states alone, and goes through `spenn split`, `fit`,
`calibrate`, `evaluate` and `check`. The table has the median relative error over all variables
and trajectories, that of the worst variable, how many entries the calibrated 90 % intervals hold,
the violations of a law among a million random pairs, and the seconds of `spenn fit`.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

import spenn

SPENN = (sys.executable, "-m", "spenn")


class Unknown(NamedTuple):
    """A system: `velocity` of states (n, d), initial states drawn by `start`, and a protocol."""

    names: str
    velocity: Callable[[np.ndarray], np.ndarray]
    start: Callable[[np.random.Generator, int], np.ndarray]
    end: float
    records: int
    trajectories: int


def containers() -> Unknown:
    """Two ideal gases on both sides of a wall that moves and conducts heat."""
    constant, conduction = 102.2476703501254, 0.5

    def velocity(x):
        q, p, s1, s2 = x.T
        e1 = np.exp((s1 - constant) * 2 / 3) / q ** (2 / 3)
        e2 = np.exp((s2 - constant) * 2 / 3) / (2 - q) ** (2 / 3)
        flux = 9 / 4 * conduction * (1 / e1 - 1 / e2)
        return np.stack([p, 2 / 3 * (e1 / q - e2 / (2 - q)), flux / e1, -flux / e2], 1)

    def start(rng, n):
        low, high = [0.6, -1, 102.7874, 102.7874], [1.4, 1, 103.7874, 103.7874]
        return rng.uniform(low, high, (n, 4))

    return Unknown("q p S1 S2", velocity, start, 8.0, 400, 100)


def pendulum() -> Unknown:
    """Two masses on thermo-elastic springs in the plane, which exchange heat."""

    def velocity(x):
        q1, q2, p1, p2, s1, s2 = np.split(x, (2, 4, 6, 8, 9), 1)
        between = q2 - q1
        l1, l2 = (np.linalg.norm(a, axis=1, keepdims=True) for a in (q1, between))
        t1, t2 = np.exp(s1) / l1, np.exp(s2) / l2
        f1, f2 = ((np.log(a) + 1 - t) / a**2 * b for a, t, b in ((l1, t1, q1), (l2, t2, between)))
        return np.concatenate([p1, p2, f2 - f1, -f2, t2 / t1 - 1, t1 / t2 - 1], 1)

    def start(rng, n):
        centre = np.array([1, 0, 2.2, 0, 0, 2, 1, 0, 1, 0.2])
        return centre + rng.uniform(-0.1, 0.1, (n, 10))

    return Unknown("q1x q1y q2x q2y p1x p1y p2x p2y S1 S2", velocity, start, 8.0, 400, 100)


def reactor() -> Unknown:
    """A closed vessel in which A, B and C turn into each other and heat up."""
    capacity, enthalpy, offset = 1.5, np.array([1.0, 0.3, 0.0]), np.array([0.0, 0.2, 0.0])

    def velocity(x):
        n, t = x[:, :3], x[:, 3:]
        activity = n * np.exp(enthalpy / t - offset)
        first = 1.2 * np.exp(-0.8 / t[:, 0]) * (activity[:, 0] - activity[:, 1])
        second = 0.8 * np.exp(-0.5 / t[:, 0]) * (activity[:, 1] - activity[:, 2])
        change = np.stack([-first, first - second, second], 1)
        heating = -(change @ enthalpy) / (capacity * n.sum(1))
        return np.concatenate([change, heating[:, None]], 1)

    def start(rng, n):
        return rng.uniform([0.5, 0.1, 0.1, 0.6], [1.5, 0.8, 0.8, 1.4], (n, 4))

    return Unknown("A B C T", velocity, start, 6.0, 200, 60)


def oscillators() -> Unknown:
    """Two oscillators that rub against each other, and the two baths that this heats."""
    friction, conduction, capacity, mass = 0.25, 0.3, 3.0, 1.6

    def velocity(x):
        q1, p1, q2, p2, s1, s2 = x.T
        t1, t2, slip = np.exp(s1 / capacity), np.exp(s2 / capacity), p1 - p2 / mass
        f1 = -(q1 + 0.5 * q1**3) + 0.4 * (q2 - q1) - friction * slip
        f2 = -1.5 * q2 - 0.4 * (q2 - q1) + friction * slip
        heat, flux = friction * slip**2 / 2, conduction * (t2 - t1)
        return np.stack([p1, f1, p2 / mass, f2, (heat + flux) / t1, (heat - flux) / t2], 1)

    def start(rng, n):
        return rng.uniform([-1] * 4 + [-0.6] * 2, [1] * 4 + [0.6] * 2, (n, 6))

    return Unknown("q1 p1 q2 p2 s1 s2", velocity, start, 12.0, 240, 80)


def chain(masses: int = 4, baths: int = 2) -> Unknown:
    """Masses on stiffening springs; some rub in baths, which exchange heat."""
    friction, conduction, capacity = 0.3, 0.3, 2.0
    wet = np.linspace(0, masses - 1, baths).round().astype(int)

    def velocity(x):
        q, p, s = np.split(x, (masses, 2 * masses), 1)
        stretch = np.diff(np.pad(q, ((0, 0), (1, 1))), axis=1)
        force = np.diff(stretch + 0.3 * stretch**3, axis=1)
        force[:, wet] -= friction * p[:, wet]
        t = np.exp(s / capacity)
        heat = friction * p[:, wet] ** 2
        flux = conduction * np.diff(t, axis=1)
        heat[:, :-1] += flux
        heat[:, 1:] -= flux
        return np.concatenate([p, force, heat / t], 1)

    def start(rng, n):
        motion = rng.uniform(-0.8, 0.8, (n, 2 * masses))
        return np.concatenate([motion, rng.uniform(-0.4, 0.4, (n, baths))], 1)

    names = [
        f"{word}{i}" for word, n in (("q", masses), ("p", masses), ("s", baths)) for i in range(n)
    ]
    return Unknown(" ".join(names), velocity, start, 10.0, 200, 80)


def duffing() -> Unknown:
    """A damped nonlinear oscillator in units of a millionth and a million."""
    unit = np.array([1e-6, 1e6, 1e-3])

    def velocity(x):
        q, p, _ = (x / unit).T
        return np.stack([p, -q - q**3 - 0.3 * p, 0.3 * p**2], 1) * unit

    def start(rng, n):
        return rng.uniform([-1.2, -1.2, 0.5], [1.2, 1.2, 1.5], (n, 3)) * unit

    return Unknown("q p e", velocity, start, 10.0, 150, 50)


def bodies() -> Unknown:
    """Two bodies in contact that exchange heat."""

    def velocity(x):
        flux = 0.5 * (x[:, 1] - x[:, 0]) * (1 + 0.3 * x[:, 0] * x[:, 1])
        return np.stack([flux, -flux / 2.5], 1)

    def start(rng, n):
        return rng.uniform(0.5, 2.5, (n, 2))

    return Unknown("T1 T2", velocity, start, 3.0, 100, 40)


SYSTEMS = {
    function.__name__: function
    for function in (containers, pendulum, reactor, oscillators, chain, duffing, bodies)
}


def simulate(system: Unknown, seed: int) -> spenn.Trajectories:
    """Trajectories of a system, states alone, to nine digits."""
    initial = system.start(np.random.default_rng(1000 + seed), system.trajectories)
    scale = np.abs(initial).max(0)
    times = np.linspace(0, system.end, system.records)

    def velocity(_, flat):
        return (system.velocity(flat.reshape(initial.shape) * scale) / scale).ravel()

    solution = solve_ivp(
        velocity, (0, system.end), (initial / scale).ravel(), "DOP853", times, rtol=1e-9, atol=1e-11
    )
    states = solution.y.T.reshape(-1, *initial.shape).swapaxes(0, 1) * scale
    return spenn.Trajectories(times, states, names=system.names.split())


def run(*words: str | Path) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run([*SPENN, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"spenn {' '.join(map(str, words))} failed: {done.stderr}")
    return done.stdout


def row(name: str, seed: int, folder: Path) -> str:
    """One line of the table."""
    folder = folder / f"{name}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    system, model = SYSTEMS[name](), folder / "model.spenn"
    spenn.write(simulate(system, seed), folder / "cases.nc")
    run("split", folder / "cases.nc", "--out", folder, "--seed", str(seed))
    start = time.perf_counter()
    run("fit", folder / "train.nc", "--out", model, "--seed", str(seed))
    seconds = time.perf_counter() - start
    run("calibrate", model, folder / "calibration.nc")
    run("evaluate", model, folder / "test.nc", "--out", folder / "test")
    laws = run("check", model).split("index: ")[1].split(".")[0]
    results = json.loads((folder / "test" / "results.json").read_text())
    entry = results["methods"]["spenn-half-normal"]
    errors = np.array([e["per_trajectory"] for e in entry["rl2e"].values()])
    at = entry["coverage"]["levels"].index(0.9)
    held = np.mean([levels[at] for levels in entry["coverage"]["calibrated"].values()])
    return (
        f"| {name} | {len(entry['rl2e'])} | {results['data']['train']} | {seed} | "
        f"{np.median(errors):.2%} | {np.median(errors, 1).max():.2%} | {held:.0%} | "
        f"{laws} | {seconds:.0f} |"
    )


def main() -> None:
    """Print the table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--folder", type=Path, default=Path("runs/own"))
    options = parser.parse_args()
    print(
        "| system | variables | trained on | seed | error | worst variable | 90 % hold | laws | s |"
    )
    print("|---" * 9 + "|", flush=True)
    for name in options.systems.split(","):
        for seed in map(int, options.seeds.split(",")):
            print(row(name, seed, options.folder), flush=True)


if __name__ == "__main__":
    main()
