"""From evaluations to the numbers of `results.json`.

A truth of NaN, after the end of a shorter trajectory, counts nowhere.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..calibrate import Conformal, calibrated_coverage, rank_correlation, relative_l2_error
from ..folders import number
from ..forecast import LEVELS, Audit, Diverged, Summary
from ._layout import Layout


class Rounding(NamedTuple):
    """What arithmetic leaves of the laws, as shares of the size of energy and entropy."""

    energy: float
    entropy: float


ROUNDING = {"float32": Rounding(2e-6, 2e-6), "float64": Rounding(1e-12, 1e-15)}


def by_name(names, values) -> dict[str, float | None]:
    """One plain number per variable."""
    return {name: number(value) for name, value in zip(names, values, strict=True)}


def accuracy(layout: Layout, mean: np.ndarray, truth: np.ndarray) -> dict:
    """RL2E and mean absolute error of forecasts (trajectory, time, entry)."""
    pairs = zip(layout.split(mean), layout.split(truth), strict=True)
    errors = np.stack([_relative_errors(m, t) for m, t in pairs], -1)
    return {
        "rl2e": {
            name: {
                "median": float(np.median(errors[:, i])),
                "per_trajectory": [float(e) for e in errors[:, i]],
            }
            for i, name in enumerate(layout.names)
        },
        "mae": by_name(layout.names, layout.mean(np.nanmean(np.abs(mean - truth), (0, 1)))),
    }


def _relative_errors(mean, truth):
    """One number per trajectory, over all times and entries of one variable."""
    known = np.isfinite(truth)
    pairs = zip(mean, truth, known, strict=True)
    return np.array([relative_l2_error(m[k][:, None], t[k][:, None])[0] for m, t, k in pairs])


def uncertainty(layout: Layout, test: Summary, truth: np.ndarray, conformal: Conformal) -> dict:
    """Scores, coverage before and after calibration, widths, ranks, error against spread."""
    names = layout.names
    mean, std, reference = (jnp.asarray(a, float) for a in (test.mean, test.std, truth))
    calibrated, simultaneous = calibrated_coverage(conformal, mean, std, reference, LEVELS)
    widest = LEVELS.index(0.95)

    def curves(values):
        values = layout.mean(values)
        return {name: [number(v) for v in values[:, i]] for i, name in enumerate(names)}

    return {
        "crps": by_name(names, layout.mean(test.crps.mean(0))),
        "crps_fair": by_name(names, layout.mean(test.crps_fair.mean(0))),
        "energy_score": float(test.energy_score.mean()),
        "energy_score_fair": float(test.energy_score_fair.mean()),
        "coverage": {
            "levels": list(LEVELS),
            "raw": curves(test.inside.mean(0)),
            "calibrated": curves(np.asarray(calibrated.inside)),
            "simultaneous": [float(v) for v in simultaneous],
        },
        "width": {
            "raw": by_name(names, layout.mean(test.width.mean(0)[widest])),
            "calibrated": by_name(names, layout.mean(np.asarray(calibrated.width)[widest])),
        },
        "rank_histogram": {
            name: [float(v) for v in ranks]
            for name, ranks in zip(names, layout.mean(test.ranks.mean(0).T).T, strict=True)
        },
        "error_spread_correlation": by_name(
            names, error_spread_correlations(layout, np.abs(test.mean - truth), test.std)
        ),
    }


def error_spread_correlations(layout: Layout, error, spread):
    """Rank correlation of error and spread of each variable, over all trajectories and times."""
    pairs = zip(layout.split(error), layout.split(spread), strict=True)
    known = ((e[np.isfinite(e)], s[np.isfinite(e)]) for e, s in pairs)
    return [rank_correlation(*(jnp.asarray(a[:, None]) for a in pair))[0] for pair in known]


def laws(summary: Summary, diverged: Sequence[Diverged]) -> dict:
    """The audit over every step of every sample.

    Energy and entropy are in units of their range over the rollouts, as their scale and origin are
    not observable, and rates per unit of the model's time, in which motion is of order one. A
    violation is a record at which the energy of any sample has drifted, or its entropy falls, by
    more than rounding, there or on the way to the next one.
    """
    audit = summary.audit
    # Trajectories whose samples are all lost are counted among the diverged, and nowhere else.
    energy = float(np.nanmax(audit.energy_high) - np.nanmin(audit.energy_low))
    entropy = float(np.nanmax(audit.entropy_high) - np.nanmin(audit.entropy_low))
    drift, step = audit.energy_drift / energy, audit.entropy_step / entropy
    # Numbers that are large beside their range are known to fewer digits of it.
    rounding = ROUNDING[audit.energy_drift.dtype.name]
    energy_digits = max(1, _largest(audit.energy_low, audit.energy_high) / energy)
    entropy_digits = max(1, _largest(audit.entropy_low, audit.entropy_high) / entropy)
    return {
        "max_energy_rate": number(np.nanmax(audit.energy_rate) / energy),
        "max_energy_drift": number(np.nanmax(drift)),
        "min_entropy_rate": number(np.nanmin(audit.entropy_rate) / entropy),
        "min_entropy_step": number(np.nanmin(step)),
        "energy_violations": int(np.sum(drift > rounding.energy * energy_digits)),
        "entropy_violations": int(np.sum(step < -rounding.entropy * entropy_digits)),
        "diverged": len(diverged),
        **_sweeps(audit),
    }


def _largest(*values: np.ndarray) -> float:
    return float(np.nanmax(np.abs(values)))


def _sweeps(audit: Audit) -> dict:
    """How many sweeps the steps of an implicit integrator took."""
    if not np.nanmax(audit.sweeps_max):
        return {}
    return {
        "mean_sweeps": number(np.nanmean(audit.sweeps_mean)),
        "max_sweeps": number(np.nanmax(audit.sweeps_max)),
    }


def spread_ratio(layout: Layout, outside: Summary, inside: Summary) -> Mapping[str, float | None]:
    """Mean spread out of distribution over mean spread in it."""
    spreads = (layout.mean(np.nanmean(s.std, (0, 1))) for s in (outside, inside))
    return by_name(layout.names, np.divide(*spreads))
