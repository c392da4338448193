"""Empirical coverage and width of raw and calibrated intervals.

A truth of NaN is missing, as after the end of a short trajectory: it counts nowhere.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ._conformal import Conformal, Level
from ._scores import sharpness
from ._sorting import sort_samples


class Coverage(NamedTuple):
    """What intervals of several levels achieve."""

    inside: Float[Array, "level variable"]
    """Fraction of the truth's entries within the intervals."""
    width: Float[Array, "level variable"]
    """Mean interval width."""


def quantile_intervals(
    samples: Float[Array, "sample time variable"], levels: Float[Array, " level"]
) -> tuple[Float[Array, "level time variable"], Float[Array, "level time variable"]]:
    """Sample quantiles at `(1 - level) / 2` and `(1 + level) / 2`, one sort for all levels."""
    ordered = sort_samples(samples)
    levels = levels.astype(samples.dtype)
    return _quantiles(ordered, (1 - levels) / 2), _quantiles(ordered, (1 + levels) / 2)


def raw_coverage(
    samples: Float[Array, "sample time variable"],
    truth: Float[Array, "time variable"],
    levels: Float[Array, " level"],
) -> Coverage:
    """Coverage of one trajectory by its samples' own quantiles; average it over trajectories."""
    lower, upper = quantile_intervals(samples, levels)
    inside = jax.vmap(entry_coverage, in_axes=(0, 0, None))(lower, upper, truth)
    known = ~jnp.isnan(truth)
    return Coverage(inside, jax.vmap(lambda low, high: sharpness(low, high, known))(lower, upper))


def calibrated_coverage(
    conformal: Conformal,
    mean: Float[Array, "trajectory time variable"],
    std: Float[Array, "trajectory time variable"],
    truth: Float[Array, "trajectory time variable"],
    levels: Sequence[Level],
) -> tuple[Coverage, Float[Array, " level"]]:
    """Coverage of test trajectories by calibrated intervals, and by bands.

    **Returns:** the `Coverage` of the intervals, and the fraction of whole trajectories inside the
    band of each level. Widths are infinite at levels that need more calibration trajectories.
    """
    intervals = [conformal.interval(mean, std, level) for level in levels]
    bands = [conformal.band(mean, std, level) for level in levels]
    inside = jnp.stack([entry_coverage(*interval, truth) for interval in intervals])
    width = jnp.stack([sharpness(*interval, ~jnp.isnan(truth)) for interval in intervals])
    whole = jnp.stack([simultaneous_coverage(*band, truth) for band in bands])
    return Coverage(inside, width), whole


def entry_coverage(
    lower: Float[Array, "*batch variable"],
    upper: Float[Array, "*batch variable"],
    truth: Float[Array, "*batch variable"],
) -> Float[Array, " variable"]:
    """Fraction of entries inside the closed intervals, per variable, over all other axes."""
    axes = tuple(range(truth.ndim - 1))
    within = _within(lower, upper, truth)
    return jnp.mean(within, axes, dtype=truth.dtype, where=~jnp.isnan(truth))


def simultaneous_coverage(
    lower: Float[Array, "trajectory time variable"],
    upper: Float[Array, "trajectory time variable"],
    truth: Float[Array, "trajectory time variable"],
) -> Float[Array, ""]:
    """Fraction of trajectories inside the closed band at every time and in every variable."""
    whole = jnp.all(_within(lower, upper, truth) | jnp.isnan(truth), axis=(-2, -1))
    return jnp.mean(whole, dtype=truth.dtype)


def _quantiles(
    ordered: Float[Array, "sample time variable"], probabilities: Float[Array, " level"]
) -> Float[Array, "level time variable"]:
    """Interpolate between sorted samples, from quantile 0 at the first to 1 at the last."""
    position = probabilities * (ordered.shape[0] - 1)
    below = jnp.floor(position).astype(int)
    above = jnp.minimum(below + 1, ordered.shape[0] - 1)
    fraction = (position - jnp.floor(position))[:, None, None]
    return ordered[below] + fraction * (ordered[above] - ordered[below])


def _within(
    lower: Float[Array, "*shape"], upper: Float[Array, "*shape"], truth: Float[Array, "*shape"]
) -> Bool[Array, "*shape"]:
    return (lower <= truth) & (truth <= upper)
