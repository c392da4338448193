"""What Kraichnan-Orszag measurements can tell at best: least squares with the equation exact.

    python benchmarks/inverse_exact.py [--data KO_train.mat] [--seed 0]

No network, no tolerance: rates and initial state are fitted through a tight integrator. An estimate
that comes closer to the truth than this one by much more than its spread is lucky, not better.
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

from spenn.inverse import BENCHMARKS


def solution(unknowns: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The modes (time, mode) from rates and initial state."""
    a, b, *start = unknowns

    def velocity(_, x):
        return [a * x[1] * x[2], b * x[0] * x[2], -(a + b) * x[0] * x[1]]

    return solve_ivp(velocity, (0, 10), start, "DOP853", times, rtol=1e-10, atol=1e-12).y.T


def main() -> None:
    """Print estimates and their standard deviations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    field = BENCHMARKS["kraichnan-orszag"]().problem(arguments.seed, arguments.data).field

    def errors(unknowns):
        error = (solution(unknowns, field.points[:, 0]) - field.values) / field.noise
        return error[field.known]

    best = least_squares(errors, [0.9, 0.9, 1.0, 0.8, 0.5])
    spread = np.sqrt(np.diag(np.linalg.inv(best.jac.T @ best.jac)))
    for name, value, sd in zip("ab", best.x, spread, strict=False):
        print(f"{name} {value:.3f} +- {sd:.3f}")
    print(f"misfit {2 * best.cost:.1f} of {field.known.sum()} measurements")


if __name__ == "__main__":
    main()
