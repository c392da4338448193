"""A source that was measured at some points with noise, between them.

Few noisy values of a source do not tie the field down where none was taken. So it is modelled by
polynomials, with coefficients that are inferred together with everything else. Of what degree they
are and how large they may be, the measurements say themselves: a source that is zero but for noise
stays zero.
"""

import itertools
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..networks import product
from ._problem import Measurements, Problem

DEGREES = (4, 6, 8, 12, 16)
POOR = 2.0


class Source(eqx.Module):
    """`scale * coefficients . products of Legendre polynomials`, by component of the residual."""

    lower: Float[Array, " d"]
    upper: Float[Array, " d"]
    scale: Float[Array, ""]
    degree: int = eqx.field(static=True)

    @classmethod
    def of(cls, problem: Problem) -> "Source":
        """The source of a problem: zero where none was measured."""
        ends = (jnp.asarray(problem.lower, float), jnp.asarray(problem.upper, float))
        none = cls(*ends, jnp.zeros(()), DEGREES[0])
        if problem.source is None:
            return none
        points, found = jnp.asarray(problem.source.points, float), []
        for degree in DEGREES:
            source = cls(*ends, jnp.zeros(()), degree)
            basis = np.asarray(jax.vmap(source.basis)(points), np.float64)
            if degree > DEGREES[0] and basis.shape[1] > len(basis) // 2:
                break
            found.append((_likeliest_scale(basis, problem.source), degree))
        best, degree = max(found, key=lambda item: item[0].likelihood)
        if best.left > POOR:
            raise ValueError(
                "the source varies too much between its measurements for polynomials to follow it: "
                "measure it at more points, or write what is known of it into the residual."
            )
        return cls(*ends, jnp.asarray(best.scale, float), degree)

    def basis(self, s: Float[Array, " d"]) -> Float[Array, " m"]:
        """Products of Legendre polynomials up to a total degree, of mean square one."""
        x = 2 * (s - self.lower) / (self.upper - self.lower) - 1
        factors = [_legendre(component, self.degree) for component in x]
        degrees = itertools.product(range(self.degree + 1), repeat=len(factors))
        return jnp.stack(
            [
                math.prod(factor[n] for factor, n in zip(factors, degree, strict=True))
                for degree in degrees
                if sum(degree) <= self.degree
            ]
        )

    def __call__(
        self, coefficients: Float[Array, "m k"], s: Float[Array, " d"]
    ) -> Float[Array, " k"]:
        """The source at one point."""
        return self.scale * product(coefficients.T, self.basis(s))


def _legendre(x: Float[Array, ""], degree: int) -> list[Float[Array, ""]]:
    values = [jnp.ones_like(x), x]
    for n in range(1, degree):
        values.append(((2 * n + 1) * x * values[n] - n * values[n - 1]) / (n + 1))
    return [math.sqrt(2 * n + 1) * value for n, value in enumerate(values)]


class Likeliest(NamedTuple):
    """A size of the coefficients, how likely it makes the measurements, and what it leaves over."""

    likelihood: float
    scale: float
    left: float
    """Mean square of what no coefficients explain, in units of the noise."""


def _likeliest_scale(basis: Float[np.ndarray, "n m"], data: Measurements) -> Likeliest:
    """The standard deviation of the coefficients under which the measurements are likeliest."""
    scales = data.noise * np.geomspace(1e-3, 1e2, 101)
    likelihood, left, free = np.zeros(len(scales)), 0.0, 0
    for column in data.values.T:
        known = ~np.isnan(column)
        rotation, stretch, _ = np.linalg.svd(basis[known], full_matrices=False)
        seen = rotation.T @ column[known]
        beyond = np.sum(column[known] ** 2) - np.sum(seen**2)
        variance = data.noise**2 + (scales[:, None] * stretch) ** 2
        likelihood -= np.sum(np.log(variance / data.noise**2) + seen**2 / variance, 1) / 2
        likelihood -= beyond / data.noise**2 / 2
        left, free = left + beyond / data.noise**2, free + known.sum() - seen.size
    best = int(np.argmax(likelihood))
    return Likeliest(float(likelihood[best]), float(scales[best]), left / max(1, free))
