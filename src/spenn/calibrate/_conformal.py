"""Split conformal calibration: intervals with a finite-sample guarantee of coverage.

The exchangeable unit is a whole trajectory, so n below counts calibration trajectories. The
guarantee is marginal, over calibration set and test trajectory alike; `coverage_range` says what
one calibration set can give. Trajectories that ended early count up to their end.
"""

from decimal import Decimal
from fractions import Fraction
from math import ceil

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy  # its parts load on first use
from jaxtyping import Array, Float

Level = float | Decimal | Fraction
Interval = tuple[Float[Array, "*batch time variable"], Float[Array, "*batch time variable"]]


def conformal_rank(n: int, level: Level) -> int:
    """Which of n sorted scores is the threshold at `level`: `ceil((n + 1) level)`, exactly.

    A rank of n + 1 means that n scores are too few for this level: the threshold is infinite.

    **Arguments:**

    - `n`: number of calibration trajectories.
    - `level`: coverage in (0, 1), read as the decimal it prints as: 0.7 is 7/10, although the float
        of that name lies just below it.
    """
    if n < 1:
        raise ValueError(f"Calibration needs at least one trajectory, but got {n}.")
    return max(ceil((n + 1) * _exact(level, "level")), 1)


def fewest(level: Level) -> int:
    """How many calibration trajectories a finite interval of this level takes."""
    exact = _exact(level, "level")
    return ceil(exact / (1 - exact))


def coverage_range(
    n: int, level: Level, probability: Level = 0.9, tests: int | None = None
) -> tuple[float, float]:
    """Central range of the coverage that *one* calibration set of n trajectories gives.

    With continuous scores that coverage follows Beta(r, n + 1 - r), r the conformal rank. For
    n = 50 at 90 % the range is 0.83 to 0.96, so a measured 0.85 is luck, not a bug.

    **Arguments:**

    - `probability`: of falling inside the range; 0.9 gives the 5 % and 95 % points.
    - `tests`: how many trajectories coverage is measured on, each inside or outside as a whole,
      which makes the range wider; by default as many as one likes.
    """
    if tests is not None and tests < 1:
        raise ValueError(f"coverage takes at least one test trajectory; there are {tests}.")
    rank = conformal_rank(n, level)
    tail = float(1 - _exact(probability, "probability")) / 2
    if rank > n:
        return 1.0, 1.0
    shape, ends = (rank, n + 1 - rank), [tail, 1 - tail]
    if tests is None:
        low, high = scipy.special.betaincinv(*shape, ends)
    else:
        low, high = scipy.stats.betabinom.ppf(ends, tests, *shape) / tests
    return float(low), float(high)


def normalised_score(
    mean: Float[Array, "*shape"], std: Float[Array, "*shape"], truth: Float[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """`|truth - mean| / std`; without spread, 0 where the mean is right and +inf elsewhere."""
    error = jnp.abs(truth - mean)
    spread = std > 0
    certain = jnp.where(error > 0, jnp.inf, 0)
    return jnp.where(spread, error / jnp.where(spread, std, 1), certain).astype(error.dtype)


class Conformal(eqx.Module):
    """Calibrated intervals at any level; build it with `Conformal.fit`."""

    scores: Float[Array, "trajectory time variable"]
    """Normalised scores of each entry, sorted over the trajectories; NaN for missing ones, last."""
    maxima: Float[Array, "trajectory time"]
    """The largest score of each trajectory up to a time, sorted likewise."""

    @classmethod
    def fit(
        cls,
        mean: Float[Array, "trajectory time variable"],
        std: Float[Array, "trajectory time variable"],
        truth: Float[Array, "trajectory time variable"],
    ) -> "Conformal":
        """Calibrate on trajectories that training has not seen.

        The values are checked, so call it outside `jit`.

        **Arguments:**

        - `mean`, `std`: of the forecast samples, without the prescribed initial time.
        - `truth`: the reference trajectories; NaN after the end of a shorter one.
        """
        mean, std, truth = jnp.asarray(mean), jnp.asarray(std), jnp.asarray(truth)
        _check_fit(mean, std, truth)
        return cls(*_sorted_scores(mean, std, truth))

    @property
    def trajectories(self) -> int:
        """Number of calibration trajectories."""
        return self.maxima.shape[0]

    def threshold(self, level: Level) -> Float[Array, "time variable"]:
        """Reach of each entry's interval in standard deviations; +inf with too few trajectories."""
        return _order_statistic(self.scores, level)

    def band_threshold(self, level: Level, last: int = -1) -> Float[Array, ""]:
        """Reach of the band in standard deviations, up to the record `last`; +inf as above."""
        return _order_statistic(self.maxima[:, last], level)

    def interval(
        self,
        mean: Float[Array, "*batch time variable"],
        std: Float[Array, "*batch time variable"],
        level: Level,
    ) -> Interval:
        """Lower and upper ends that cover *each entry* with probability `level` or more."""
        self._check_forecast(mean, std)
        threshold = jnp.broadcast_to(self.threshold(level), mean.shape)
        return _around(mean, std, threshold)

    def band(
        self,
        mean: Float[Array, "*batch time variable"],
        std: Float[Array, "*batch time variable"],
        level: Level,
    ) -> Interval:
        """Lower and upper ends that cover *the whole trajectory* with probability `level` or more.

        All times and variables at once, hence wider than `interval`.
        """
        self._check_forecast(mean, std)
        return _around(mean, std, self.band_threshold(level))

    def _check_forecast(self, mean: Array, std: Array) -> None:
        entries = self.scores.shape[1:]
        if mean.shape != std.shape or mean.shape[-2:] != entries:
            raise ValueError(
                "Mean and standard deviation must both end in the calibrated (time, variable) "
                f"shape {entries}, but have shapes {mean.shape} and {std.shape}."
            )


def _exact(level: Level, name: str) -> Fraction:
    """The fraction that was meant: 3/20 by 0.15, also by `linspace`'s 0.15000000000000002."""
    try:
        fraction = Fraction(str(level))
    except ValueError:
        fraction = Fraction(0)
    if not 0 < fraction < 1:
        raise ValueError(f"The {name} must lie strictly between 0 and 1, but is {level}.")
    # Arithmetic on levels leaves noise in the last digit, which ceil would turn into a whole rank.
    return fraction.limit_denominator(10**9)


@jax.jit
def _sorted_scores(mean: Array, std: Array, truth: Array) -> tuple[Array, Array]:
    """Scores of each entry and largest scores up to each time, sorted over trajectories."""
    scores = jnp.where(jnp.isnan(truth), jnp.nan, normalised_score(mean, std, truth))
    missing = jnp.isnan(scores).any(2)
    largest = jax.lax.cummax(jnp.where(missing, -jnp.inf, jnp.max(scores, 2)), axis=1)
    return jnp.sort(scores, axis=0), jnp.sort(jnp.where(missing, jnp.nan, largest), axis=0)


def _order_statistic(
    ordered: Float[Array, " trajectory *entry"], level: Level
) -> Float[Array, "*entry"]:
    """The score of the conformal rank among those that are there; +inf if they are too few."""
    most = ordered.shape[0]
    ranks = np.array([most + 1, *(conformal_rank(n, level) for n in range(1, most + 1))])
    return _ranked(ordered, ranks)


@jax.jit
def _ranked(ordered: Array, ranks: Array) -> Array:
    """Scores of the rank that belongs to each number of trajectories, 0 of them first."""
    most, present = len(ordered), jnp.sum(~jnp.isnan(ordered), 0)
    rank = ranks[present]
    chosen = jnp.take_along_axis(ordered, jnp.minimum(rank, most)[None] - 1, 0)[0]
    return jnp.where(rank <= present, chosen, jnp.inf)


@jax.jit
def _around(mean: Array, std: Array, threshold: Array) -> Interval:
    # Without a finite threshold nothing is promised, not even where the spread is zero (inf * 0).
    reach = jnp.where(jnp.isinf(threshold), jnp.inf, threshold * std)
    return mean - reach, mean + reach


def _check_fit(mean: Array, std: Array, truth: Array) -> None:
    if mean.ndim != 3 or not mean.shape == std.shape == truth.shape:
        raise ValueError(
            "Mean, standard deviation and truth must share one (trajectory, time, variable) "
            f"shape, but have shapes {mean.shape}, {std.shape} and {truth.shape}."
        )
    if mean.size == 0:
        raise ValueError(
            f"Calibration needs at least one entry of one trajectory, but got {mean.shape}."
        )
    missing = _missing(np.asarray(truth))
    for name, values in {"mean": mean, "standard deviation": std, "truth": truth}.items():
        if not np.all(np.isfinite(values) | missing):
            raise ValueError(
                f"Calibration needs finite values, but the {name} has NaN or infinity."
            )
    if np.any(np.asarray(std) < 0):
        raise ValueError(
            "Calibration needs standard deviations of at least 0, but some are negative."
        )


def _missing(truth: np.ndarray) -> np.ndarray:
    """Entries after the end of a trajectory: all of a record and of those after it are NaN."""
    absent = np.all(np.isnan(truth), axis=2)
    tail = np.logical_and.accumulate(absent[:, ::-1], 1)[:, ::-1]
    return np.broadcast_to(tail[..., None], truth.shape)
