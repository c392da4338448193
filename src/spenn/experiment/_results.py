"""From evaluations to the numbers of `results.json`."""

import math
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

from ..calibrate import Conformal, calibrated_coverage, rank_correlation, relative_l2_error
from ..forecast import LEVELS, Diverged, Summary


def by_name(names, values) -> dict[str, float | None]:
    """One plain number per variable."""
    return {name: number(value) for name, value in zip(names, values, strict=True)}


def number(value) -> float | None:
    """A plain float; JSON has no infinity, so an unbounded width is null."""
    value = float(value)
    return value if math.isfinite(value) else None


def accuracy(names, mean: np.ndarray, truth: np.ndarray) -> dict:
    """RL2E and mean absolute error of forecasts (trajectory, time, variable)."""
    errors = np.stack([relative_l2_error(m, t) for m, t in zip(mean, truth, strict=True)])
    return {
        "rl2e": {
            name: {
                "median": float(np.median(errors[:, i])),
                "per_trajectory": [float(e) for e in errors[:, i]],
            }
            for i, name in enumerate(names)
        },
        "mae": by_name(names, np.abs(mean - truth).mean((0, 1))),
    }


def uncertainty(names, test: Summary, truth: np.ndarray, conformal: Conformal) -> dict:
    """Scores, coverage before and after calibration, widths, ranks, error against spread."""
    mean, std, reference = (jnp.asarray(a, float) for a in (test.mean, test.std, truth))
    calibrated, simultaneous = calibrated_coverage(conformal, mean, std, reference, LEVELS)
    correlation = rank_correlation(jnp.abs(mean - reference), std)
    widest = LEVELS.index(0.95)

    def curves(values):
        return {name: [number(v) for v in values[:, i]] for i, name in enumerate(names)}

    return {
        "crps": by_name(names, test.crps.mean(0)),
        "crps_fair": by_name(names, test.crps_fair.mean(0)),
        "energy_score": float(test.energy_score.mean()),
        "energy_score_fair": float(test.energy_score_fair.mean()),
        "coverage": {
            "levels": list(LEVELS),
            "raw": curves(test.inside.mean(0)),
            "calibrated": curves(np.asarray(calibrated.inside)),
            "simultaneous": [float(v) for v in simultaneous],
        },
        "width": {
            "raw": by_name(names, test.width.mean(0)[widest]),
            "calibrated": by_name(names, np.asarray(calibrated.width)[widest]),
        },
        "rank_histogram": {
            name: [float(v) for v in test.ranks.mean(0)[i]] for i, name in enumerate(names)
        },
        "error_spread_correlation": by_name(names, correlation),
    }


def laws(summary: Summary, diverged: tuple[Diverged, ...]) -> dict:
    """The audit over every step of every sample.

    Energy is in units of its range over the rollouts: its scale and origin are not observable.
    """
    audit = summary.audit
    energy = float(audit.energy_high.max() - audit.energy_low.min())
    entropy = float(audit.entropy_high.max() - audit.entropy_low.min())
    return {
        "max_energy_rate": float(audit.energy_rate.max()) / energy,
        "max_energy_drift": float(audit.energy_drift.max()) / energy,
        "min_entropy_rate": float(audit.entropy_rate.min()) / entropy,
        "min_entropy_step": float(audit.entropy_step.min()) / entropy,
        "diverged": len(diverged),
    }


def spread_ratio(names, outside: Summary, inside: Summary) -> Mapping[str, float | None]:
    """Mean spread out of distribution over mean spread in it."""
    return by_name(names, outside.std.mean((0, 1)) / inside.std.mean((0, 1)))
