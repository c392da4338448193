"""Do the intervals of inverse problems hold the truth as often as they say?

    python benchmarks/inverse_coverage.py kraichnan-orszag --draws 50

repeats the experiment with fresh noise and prints how often 95 % intervals hold the truth, how far
estimates scatter from draw to draw, and which spread was reported.
"""

import argparse
import time

import jax
import numpy as np

from spenn.inverse import BENCHMARKS, attach, fit_base

SAMPLES = 2000


def main() -> None:
    """Read the command line, repeat, print a line per draw and a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problem", choices=list(BENCHMARKS))
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--first", type=int, default=1000, help="seed of the first draw")
    arguments = parser.parse_args()
    benchmark = BENCHMARKS[arguments.problem]()
    begin, found = time.perf_counter(), []
    for seed in range(arguments.first, arguments.first + arguments.draws):
        found.append(one_draw(benchmark, seed))
        print(f"{seed}: " + ", ".join(describe(*item) for item in found[-1].items()), flush=True)
    print(f"\n{arguments.draws} draws, {time.perf_counter() - begin:.0f} s")
    print(
        "| parameter | held by 95 % intervals | scatter of estimates | median reported sd | bias |"
    )
    print("|---|---|---|---|---|")
    for name, truth in benchmark.truth.items():
        mean, std, low, high = np.array([draw[name] for draw in found]).T
        held = np.mean((low <= truth) & (truth <= high))
        print(
            f"| {name} | {held:.0%} | {mean.std():.4f} | {np.median(std):.4f} "
            f"| {mean.mean() - truth:+.4f} |"
        )
    inside = np.mean([draw["field"] for draw in found])
    print(f"\nfield within 2 sd, mean over points and draws: {inside:.1%}")


def one_draw(benchmark, seed: int) -> dict:
    """Mean, standard deviation and interval of each parameter; share of the field within 2 sd."""
    problem, key = benchmark.problem(seed), jax.random.key(seed)
    base = fit_base(problem, benchmark.config, key=key)
    posterior = attach(problem, base, benchmark.config, key=jax.random.fold_in(key, 1))
    indices = posterior.draw(SAMPLES, key=jax.random.fold_in(key, 2))
    constants = {n: np.asarray(v) for n, v in posterior.constants(indices).items()}
    inside = []
    for curve in benchmark.curves:
        fields = np.asarray(posterior.fields(curve.points, indices))[:, :, curve.component]
        inside.append(np.abs(fields.mean(0) - curve.truth) < 2 * fields.std(0))
    return {
        **{n: (v.mean(), v.std(), *np.quantile(v, (0.025, 0.975))) for n, v in constants.items()},
        "field": np.mean(inside),
    }


def describe(name: str, value) -> str:
    """One parameter or share in words."""
    return f"{name} {value:.0%}" if name == "field" else f"{name} {value[0]:.4f} +- {value[1]:.4f}"


if __name__ == "__main__":
    main()
