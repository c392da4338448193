"""Time derivatives of recorded states: splines through clean records, smoothing ones else.

Noise is told from signal by differences of rising order: of a signal that the records resolve they
fall from order to order, of noise they do not.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.interpolate import BSpline, make_interp_spline
from scipy.linalg import cho_solve_banded, cholesky_banded, solve_banded
from scipy.sparse import csr_array, diags_array

DEGREE = 5
CLEAN = 1e-8  # noise below this share of a variable's range is left alone
ORDERS = (4, 6, 8)  # of the differences that tell noise from signal
FEWEST_TO_SMOOTH = 17  # records, so that there are as many differences as a median needs
ROUGHNESS = 3  # order of the derivative whose square a smoothing spline keeps small
DENSE_KNOTS = 200  # with more records, every second one is a knot,
MOST_KNOTS = 20_000  # or even fewer
MOST_WINDOWS = 20_000  # of differences, which are plenty for a median
PENALTIES = np.logspace(-6, 20, 27)  # a decade changes the degrees of freedom by a factor of 1.5
LEAST_LEFT = 0.02  # share of degrees of freedom that the residual keeps
PROBES = 8  # random vectors that measure traces
NOISE_GAIN = 1.4  # derivatives of a quintic through white noise, times the step


class Estimate(NamedTuple):
    """States and derivatives of one trajectory, as far as its records tell."""

    states: np.ndarray
    """(time, variable): as recorded, or smoothed where a variable is noisy."""
    derivatives: np.ndarray
    """(time, variable): change per unit of time."""
    order: int
    """Degree of the splines; 5 with six records or more."""
    error: np.ndarray
    """(variable,): estimated root mean square error of the derivatives over that of themselves."""
    noise: np.ndarray
    """(variable,): estimated standard deviation of the noise, in units of the state."""


def estimate_derivatives(times: np.ndarray, states: np.ndarray) -> Estimate:
    """Derivatives of one trajectory from splines of degree five.

    Variables without visible noise are interpolated, and their states stay as they are. Noisy ones
    are smoothed, each as much as generalised cross-validation asks for.

    **Arguments:** `times` (time,), strictly increasing, at least two; `states` (time, variable),
    finite.
    """
    times, states = np.asarray(times, np.float64), np.asarray(states, np.float64)
    with np.errstate(all="ignore"):  # what overflows is refused below
        estimate = _estimate(times, states)
    if not all(np.all(np.isfinite(a)) for a in (estimate.states, estimate.derivatives)):
        raise ValueError(
            "derivatives cannot be estimated, because numbers are too large or times too uneven: "
            "choose other units, or give derivatives with the data."
        )
    return estimate


def _estimate(times: np.ndarray, states: np.ndarray) -> Estimate:
    span = _range(states)
    step = (times[-1] - times[0]) / (len(times) - 1)
    clock, values = (times - times[0]) / step, states / span - states[0] / span
    noise = _noise(clock, values)
    noisy = (noise > CLEAN) & _can_smooth(clock, noise)
    smooth, slopes, error = np.zeros_like(values), np.zeros_like(values), np.zeros_like(noise)
    slopes[:, ~noisy], error[~noisy] = _interpolate(clock, values[:, ~noisy], noise[~noisy])
    if np.any(noisy):
        fitted = _smooth(clock, values[:, noisy])
        smooth[:, noisy], slopes[:, noisy], error[noisy], noise[noisy] = fitted
    kept = np.where(noisy, smooth * span + states[0], states)
    order = min(DEGREE, len(times) - 1)
    return Estimate(kept, slopes * span / step, order, error, noise * span)


def _range(states: np.ndarray) -> np.ndarray:
    """Range of each variable; one where nothing changes."""
    span = states.max(axis=0) - states.min(axis=0)
    return np.where(span > 0, span, 1.0)


def _noise(clock: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Standard deviation of white noise on each variable; zero where there seems to be none."""
    if len(clock) < FEWEST_TO_SMOOTH:
        return np.zeros(values.shape[1])
    levels = [_noise_level(clock, values, order) for order in ORDERS]
    # Still falling: what is left is signal that the records resolve only just.
    falling = (levels[2] < 0.7 * levels[1]) & (levels[1] < 0.7 * levels[0])
    return np.where(falling, 0.0, levels[2])


def _noise_level(clock: np.ndarray, values: np.ndarray, order: int) -> np.ndarray:
    """Median size of divided differences, scaled so that white noise keeps its deviation."""
    every = 1 + len(clock) // MOST_WINDOWS
    windows = np.lib.stride_tricks.sliding_window_view(clock, order + 1)[::every]
    gaps = windows[:, :, None] - windows[:, None, :] + np.eye(order + 1)
    weights = 1 / np.prod(gaps, axis=2)
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    records = np.lib.stride_tricks.sliding_window_view(values, order + 1, axis=0)[::every]
    differences = np.einsum("tvo,to->tv", records, weights)
    return np.median(np.abs(differences), axis=0) / 0.6745  # the median of a standard normal


def _interpolate(clock: np.ndarray, values: np.ndarray, noise: np.ndarray):
    """Derivatives of the spline through all records, and their estimated relative error."""
    slopes = _slopes(clock, values)
    size = _rms(slopes)
    error = np.hypot(_resolution_error(clock, values, slopes), NOISE_GAIN * noise)
    return slopes, np.divide(error, size, out=np.zeros_like(error), where=size > 0)


def _slopes(clock: np.ndarray, values: np.ndarray, degree: int = DEGREE) -> np.ndarray:
    degree, knots = min(degree, len(clock) - 1), None
    if degree == len(clock) - 1:  # one polynomial; SciPy chooses knots for odd degrees only
        knots = np.repeat(clock[[0, -1]], degree + 1)
    try:
        spline = make_interp_spline(clock, values, k=degree, t=knots)
    except (np.linalg.LinAlgError, ValueError):  # records so close that no spline can part them
        return np.full_like(values, np.nan)
    return spline.derivative()(clock)


def _resolution_error(clock: np.ndarray, values: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Error of the derivatives by what leaving out records changes, (variable,).

    Of every second and every fourth record: the ratio of the two changes is the rate of
    convergence, and the change to come by Richardson's argument is the error. Of few records, what
    a lower degree changes; two tell nothing of it.
    """
    if len(clock) < 4 * (DEGREE + 1):
        lower = 2 * (min(DEGREE, len(clock) - 1) // 2) - 1  # the next odd degree, or none
        return _rms(slopes - (_slopes(clock, values, lower) if lower > 0 else 0))
    half, quarter = (_slopes(clock[::n], values[::n]) for n in (2, 4))
    last, before = _rms(slopes[::2] - half), _rms(half[::2] - quarter)
    ratio = np.divide(before, last, out=np.full_like(last, 2.0), where=last > 0)
    return last / (np.clip(ratio, 2.0, 2.0**DEGREE) - 1)


def _rms(values: np.ndarray) -> np.ndarray:
    """Root mean square over time, (variable,)."""
    return np.sqrt(np.mean(values**2, axis=0))


class _Smoother(NamedTuple):
    """Penalised splines on one time grid, factorised for every penalty."""

    basis: csr_array  # (time, coefficient)
    slopes: csr_array  # (time, coefficient)
    factors: list[np.ndarray]  # lower banded Cholesky factors, one per penalty
    left: np.ndarray  # (penalty,) effective degrees of freedom of the residual


def _smooth(clock: np.ndarray, values: np.ndarray):
    """Smoothed values, their derivatives, relative errors of these, and the noise."""
    smoother = _smoother(clock.tobytes())
    right = smoother.basis.T @ values
    solved = (_solve(factor, right) for factor in smoother.factors)
    residual = np.stack([np.sum((values - smoother.basis @ c) ** 2, axis=0) for c in solved])
    left = smoother.left[:, None]
    best = np.argmin(residual / left**2, axis=0)  # generalised cross-validation
    every = np.arange(values.shape[1])
    coefficients = np.stack(
        [_solve(smoother.factors[b], c) for b, c in zip(best, right.T, strict=True)], 1
    )
    noise = np.sqrt((residual / left)[best, every])
    smooth, slopes = smoother.basis @ coefficients, smoother.slopes @ coefficients
    spread = np.array([_spread(smoother, b) for b in best]) * noise
    size = _rms(slopes)
    return smooth, slopes, spread / np.where(size > 0, size, 1), noise


def _solve(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    return cho_solve_banded((factor, True), right, check_finite=False)


def _can_smooth(clock: np.ndarray, noise: np.ndarray) -> bool:
    """Whether anything is noisy and there is a smoother for these times."""
    return bool(np.any(noise > CLEAN)) and bool(_smoother(clock.tobytes()).factors)


def _spread(smoother: _Smoother, penalty: int) -> float:
    """Posterior standard deviation of the derivatives for unit noise, over all times.

    The spline is the mean of a Gaussian posterior whose precision has the factor at hand.
    """
    factor = smoother.factors[penalty]
    upper = np.stack([np.roll(row, i) for i, row in enumerate(factor)])[::-1]
    random = _probes(factor.shape[1])
    draws = solve_banded((0, DEGREE), upper, random)
    return float(np.sqrt(np.mean((smoother.slopes @ draws) ** 2)))


def _probes(size: int) -> np.ndarray:
    return np.random.default_rng(0).choice([-1.0, 1.0], (size, PROBES))


@lru_cache(maxsize=4)
def _smoother(clock_bytes: bytes) -> _Smoother:
    """The smoother of one grid; trajectories on a shared grid ask for it again and again."""
    clock = np.frombuffer(clock_bytes)
    every = 1 if len(clock) <= DENSE_KNOTS else max(2, len(clock) // MOST_KNOTS)
    inner = clock[every:-1:every]
    ends = np.ones(DEGREE + 1)
    knots = np.concatenate([clock[0] * ends, inner, clock[-1] * ends])
    basis = csr_array(BSpline.design_matrix(clock, knots, DEGREE))
    first, reduced = _differentiation(knots, 1)
    slopes = csr_array(BSpline.design_matrix(clock, reduced, DEGREE - 1)) @ first
    product, roughness = _bands(basis.T @ basis), _bands(_roughness(knots))
    factors, left, probes = [], [], _probes(len(clock))
    for penalty in PENALTIES:
        try:
            factor = cholesky_banded(product + penalty * roughness, lower=True)
        except (np.linalg.LinAlgError, ValueError):  # the penalty drowns the records
            continue
        fitted = basis @ _solve(factor, basis.T @ probes)
        freedom = np.sum(probes * (probes - fitted)) / PROBES
        if freedom > LEAST_LEFT * len(clock):
            factors.append(factor)
            left.append(freedom)
    return _Smoother(basis, slopes, factors, np.array(left))


def _differentiation(knots: np.ndarray, times: int) -> tuple[csr_array, np.ndarray]:
    """Matrix from a spline's coefficients to those of a derivative, and the knots of that."""
    degree, matrix = DEGREE, None
    for _ in range(times):
        weights = degree / (knots[degree + 1 : -1] - knots[1 : -degree - 1])
        shape = (len(weights), len(weights) + 1)
        below, above = (diags_array(weights, offsets=i, shape=shape) for i in (0, 1))
        step = csr_array(above - below)
        matrix = step if matrix is None else step @ matrix
        knots, degree = knots[1:-1], degree - 1
    return csr_array(matrix), knots


def _roughness(knots: np.ndarray) -> csr_array:
    """The integral of the squared third derivative as a quadratic form of the coefficients."""
    matrix, reduced = _differentiation(knots, ROUGHNESS)
    breaks = np.unique(knots)
    places, weights = np.polynomial.legendre.leggauss(DEGREE - ROUGHNESS + 1)  # exact here
    half = np.diff(breaks)[:, None] / 2
    points = (breaks[:-1, None] + half * (places + 1)).ravel()
    values = csr_array(BSpline.design_matrix(points, reduced, DEGREE - ROUGHNESS)) @ matrix
    return csr_array(values.T @ (diags_array((half * weights).ravel()) @ values))


def _bands(matrix: csr_array) -> np.ndarray:
    """A symmetric banded matrix as its diagonals, as LAPACK likes them."""
    diagonals = [matrix.diagonal(i) for i in range(DEGREE + 1)]
    return np.stack([np.pad(d, (0, i)) for i, d in enumerate(diagonals)])
