"""A source that was measured at some points with noise, between them.

Few noisy values of a source do not tie the field down where none was taken. So it is modelled by
polynomials of low degree, with coefficients that are inferred together with everything else. How
large they may be, the measurements say themselves: a source that is zero but for noise stays zero.
"""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ._problem import Problem

DEGREE = 4


class Source(eqx.Module):
    """`scale * coefficients . products of Legendre polynomials`, by component of the residual."""

    lower: Float[Array, " d"]
    upper: Float[Array, " d"]
    scale: Float[Array, ""]

    @classmethod
    def of(cls, problem: Problem) -> "Source":
        """The source of a problem: zero where none was measured."""
        ends = (jnp.asarray(problem.lower, float), jnp.asarray(problem.upper, float))
        source = cls(*ends, jnp.zeros(()))
        if problem.source is None:
            return source
        points = jnp.asarray(problem.source.points, float)
        basis = np.asarray(jax.vmap(source.basis)(points), np.float64)
        scale = _likeliest_scale(basis, problem.source.values, problem.source.noise)
        return cls(*ends, jnp.asarray(scale, float))

    def basis(self, s: Float[Array, " d"]) -> Float[Array, " m"]:
        """Products of Legendre polynomials of total degree up to four, of mean square one."""
        x = 2 * (s - self.lower) / (self.upper - self.lower) - 1
        factors = [_legendre(component) for component in x]
        degrees = itertools.product(range(DEGREE + 1), repeat=len(factors))
        return jnp.stack(
            [
                math.prod(factor[n] for factor, n in zip(factors, degree, strict=True))
                for degree in degrees
                if sum(degree) <= DEGREE
            ]
        )

    def __call__(
        self, coefficients: Float[Array, "m k"], s: Float[Array, " d"]
    ) -> Float[Array, " k"]:
        """The source at one point."""
        return self.scale * (self.basis(s) @ coefficients)


def _legendre(x: Float[Array, ""]) -> list[Float[Array, ""]]:
    values = [jnp.ones_like(x), x]
    for n in range(1, DEGREE):
        values.append(((2 * n + 1) * x * values[n] - n * values[n - 1]) / (n + 1))
    return [math.sqrt(2 * n + 1) * value for n, value in enumerate(values)]


def _likeliest_scale(basis: np.ndarray, values: np.ndarray, noise: float) -> float:
    """Standard deviation of the coefficients under which the measurements are likeliest."""
    scales = noise * np.geomspace(1e-3, 1e2, 101)
    likelihood = np.zeros(len(scales))
    for column in values.T:
        known = ~np.isnan(column)
        rotation, stretch, _ = np.linalg.svd(basis[known], full_matrices=False)
        seen = rotation.T @ column[known]
        variance = noise**2 + (scales[:, None] * stretch) ** 2
        likelihood -= np.sum(np.log(variance) + seen**2 / variance, 1) / 2
    return float(scales[np.argmax(likelihood)])
