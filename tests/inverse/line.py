"""A straight line as an inverse problem: its answer is linear regression."""

import numpy as np

from spenn.inverse import Measurements, Parameter, Problem, derivatives

NOISE = 0.1
TIMES = np.linspace(0, 2, 15)[:, None]


def residual(u, parameters):
    """`u' - k`; one function for all problems, so that it is compiled once."""
    return lambda t: derivatives(u, t, [1.0], 1)[1] - parameters["k"]


def slope_problem(positive=False):
    """`u' = k`: a straight line, so the answer is linear regression."""
    values = 1 + 0.7 * TIMES + np.random.default_rng(5).normal(0, NOISE, TIMES.shape)
    field = Measurements(TIMES, values, NOISE)
    parameter = Parameter(positive=positive, start=0.3)
    return Problem(residual, field, {"k": parameter}, (0.0,), (2.0,), tolerance=0.01)
