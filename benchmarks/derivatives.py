"""Derivatives from records: our splines beside those of SciPy, on four dynamical systems.

    .venv/bin/python benchmarks/derivatives.py

Prints the median over all variables and five draws of the noise of the relative error of the
derivatives, and how far the error that we state is from the true one.
"""

import time

import numpy as np
from scipy.integrate import solve_ivp
from scipy.interpolate import UnivariateSpline, make_interp_spline, make_smoothing_spline

from spenn.data._derivatives import estimate_derivatives

SYSTEMS = (
    (lambda t, x: [x[1], -1.2 * x[0] - 0.4 * x[1]], 15, [1, 0.3]),  # damped oscillator
    (lambda t, x: [x[1], 2 * (1 - x[0] ** 2) * x[1] - x[0]], 15, [1, 0.3]),  # van der Pol
    (lambda t, x: [10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]], 4,
     [1, 1, 20]),  # Lorenz
    (lambda t, x: [-x[0]], 6, [1]),  # decay
)  # fmt: skip


def signals(count):
    for field, end, initial in SYSTEMS:
        times = np.linspace(0, end, count)
        solved = solve_ivp(field, (0, end), initial, t_eval=times, rtol=1e-12, atol=1e-13)
        rates = np.array([field(t, x) for t, x in zip(times, solved.y.T, strict=True)])
        yield from ((times, x, rate) for x, rate in zip(solved.y, rates.T, strict=True))


def ours(times, records, sigma):
    estimate = estimate_derivatives(times, records[:, None])
    return estimate.derivatives[:, 0], estimate.error[0]


def through(times, records, sigma):
    return make_interp_spline(times, records, k=5).derivative()(times), np.nan


def cubic(times, records, sigma):
    step = times[1]  # its search wants steps of about one
    return make_smoothing_spline(times / step, records).derivative()(times / step) / step, np.nan


def told(times, records, sigma):
    """Fewest knots that leave the true noise as the residual: it is told what noise there is."""
    spline = UnivariateSpline(times, records, k=5, s=len(times) * sigma**2)
    return spline.derivative()(times), np.nan


def main() -> None:
    rng = np.random.default_rng(0)
    methods = (ours, through, cubic, told)
    print("| records | noise | ours | stated / true | quintic through | cubic by GCV | told |")
    print("|---|---|---|---|---|---|---|")
    for count in (60, 400):
        for noise in (1e-1, 1e-2, 1e-4, 0.0):
            errors, ratios = [], []
            for times, clean, rates in signals(count):
                size = np.sqrt(np.mean(rates**2))
                for _ in range(5):
                    sigma = noise * np.ptp(clean)
                    records = clean + sigma * rng.standard_normal(count)
                    found = [method(times, records, sigma) for method in methods]
                    true = [np.sqrt(np.mean((f - rates) ** 2)) / size for f, _ in found]
                    errors.append(true)
                    ratios.append(found[0][1] / true[0])
            mine, *others = np.median(errors, axis=0)
            low, high = np.quantile(ratios, [0.1, 0.9])
            cells = [f"{mine:.1e}", f"{low:.1f} to {high:.1f}", *(f"{o:.1e}" for o in others)]
            print(f"| {count} | {noise:g} | {' | '.join(cells)} |", flush=True)
    times = np.linspace(0, 1, 400)
    states = np.sin(times[:, None] * np.arange(1, 11))
    for name, noise in (("clean", 0.0), ("noisy", 1e-3)):
        records = states + noise * rng.standard_normal(states.shape)
        start = time.process_time()
        for _ in range(100):
            estimate_derivatives(times, records)
        print(f"100 trajectories of 400 {name} records of 10 variables: "
              f"{time.process_time() - start:.1f} s of processor time")  # fmt: skip


if __name__ == "__main__":
    main()
