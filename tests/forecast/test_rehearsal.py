"""Compiling ahead, which only runs with an accelerator do by themselves."""

import jax
import numpy as np
import pytest

from spenn.forecast import evaluate, rehearse
from spenn.generic import Coordinates, Deterministic
from spenn.systems import OSCILLATOR, simulate


def test_forecasts_can_be_rehearsed():
    data = simulate(OSCILLATOR, OSCILLATOR.draw(np.random.default_rng(0), 3), "converged")
    exact, units = Deterministic(OSCILLATOR.exact().blocks), Coordinates.identity(3)
    indices = exact.draw(1, key=jax.random.key(0))
    rehearse(exact, units, data, indices)
    summary = evaluate(exact, units, data, indices).summary
    assert float(np.abs(summary.mean - data.states[:, 1:]).max()) == pytest.approx(0, abs=1e-4)
