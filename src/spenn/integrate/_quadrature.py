"""Numbers of collocation at Gauss points, computed once in double precision."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.polynomial import Polynomial
from numpy.polynomial.legendre import leggauss
from numpy.polynomial.polynomial import polyfromroots


class Gauss(NamedTuple):
    """A path of polynomial velocity through `stages` Gauss points `c_j` of a step of length one.

    `l_j` are their Lagrange polynomials; integrals are sums over `nodes` with weights `w_k`.
    """

    stages: Float[Any, " s"]
    weights: Float[Any, " s"]
    """`b_j`, the integral of `l_j` over the step."""
    nodes: Float[Any, " m"]
    to_stages: Float[Any, "s s"]
    """Integrals of `l_j` up to each stage."""
    to_nodes: Float[Any, "m s"]
    """Integrals of `l_j` up to each node."""
    averages: Float[Any, "s m"]
    """`w_k l_i(node_k) / b_i`: rows average what is known at nodes for the stages."""

    def astype(self, dtype) -> "Gauss":
        """The same numbers in another precision."""
        return Gauss(*(np.asarray(numbers, dtype) for numbers in self))


@cache
def gauss(stages: int, nodes: int) -> Gauss:
    """Collocation with so many stages, averages with so many nodes."""
    c, b = _points(stages)
    places, w = _points(nodes)
    basis = [_lagrange(c, j) for j in range(stages)]
    integrals = [polynomial.integ() for polynomial in basis]
    return Gauss(
        c,
        b,
        places,
        np.stack([integral(c) - integral(0) for integral in integrals], 1),
        np.stack([integral(places) - integral(0) for integral in integrals], 1),
        np.stack([w * polynomial(places) for polynomial in basis]) / b[:, None],
    )


def _points(count):
    """Gauss points and weights of the step from 0 to 1."""
    points, weights = leggauss(count)
    return (points + 1) / 2, weights / 2


def _lagrange(points, j):
    others = np.delete(points, j)
    return Polynomial(polyfromroots(others) / np.prod(points[j] - others))


@cache
def projection(stages: int) -> Float[Any, "s 3"]:
    """For the stages: averages of the parabola through the start, the middle and the end."""
    rule, ends = gauss(stages, 3), np.array([0.0, 0.5, 1.0])
    return rule.averages @ np.stack([_lagrange(ends, j)(rule.nodes) for j in range(3)], 1)
