"""A problem as arrays, a fit of it, and how far the two are apart."""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from ..networks import TanhMLP
from ._problem import Measurements, Parameter, Problem, constants
from ._source import Source


@dataclass(frozen=True)
class InverseConfig:
    """How an inverse problem is solved.

    `width` and `depth` of the network, `steps` and peak `learning_rate` of stage one; `prior`, the
    standard deviation of a weight before anything is measured; `share` of the field's variance that
    the index must carry. A square matrix of all unknowns is factorised: 50 and 50 units are 2750.
    """

    width: int = 50
    depth: int = 2
    steps: int = 4000
    learning_rate: float = 1e-2
    prior: float = 1.0
    share: float = 0.99

    def __post_init__(self):
        """Refuse what cannot be trained, with a sentence."""
        if min(self.width, self.depth, self.steps) < 1:
            raise ValueError("width, depth and steps must be at least 1.")
        if not (self.learning_rate > 0 and self.prior > 0 and 0 < self.share <= 1):
            raise ValueError("rate and prior must be positive, the share above 0 and at most 1.")


class Fit(eqx.Module):
    """A field, the parameters before their transforms, and the coefficients of the source."""

    network: TanhMLP
    raw: Float[Array, " p"]
    source: Float[Array, "m k"]


class Observed(eqx.Module):
    """Measurements as arrays."""

    points: Float[Array, "n d"]
    values: Float[Array, "n k"]
    noise: Float[Array, ""]

    @classmethod
    def of(cls, data: Measurements) -> "Observed":
        """The arrays of measurements."""
        return cls(*(jnp.asarray(a, float) for a in (data.points, data.values, data.noise)))

    def errors(self, function: Callable) -> Float[Array, "n k"]:
        """Errors of a function in units of the noise; zero where nothing was measured."""
        return jax.vmap(lambda s, y: self.error(function(s), y))(self.points, self.values)

    def error(self, ours: Float[Array, " k"], value: Float[Array, " k"]) -> Float[Array, " k"]:
        """The same for one measurement."""
        return jnp.where(jnp.isnan(value), 0.0, (ours - jnp.nan_to_num(value)) / self.noise)


class Setting(eqx.Module):
    """A problem as arrays, and the functions of it that are not."""

    field: Observed
    measured_source: Observed
    source: Source
    residual: Callable = eqx.field(static=True)
    parameters: tuple[tuple[str, Parameter], ...] = eqx.field(static=True)

    @classmethod
    def of(cls, problem: Problem) -> "Setting":
        """The arrays of a problem."""
        source = Source.of(problem)
        parameters = tuple(problem.parameters.items())
        nothing = Observed(*(jnp.zeros(shape) for shape in ((0, len(problem.lower)), (0, 1), ())))
        measured = nothing if problem.source is None else Observed.of(problem.source)
        return cls(Observed.of(problem.field), measured, source, problem.residual, parameters)

    def prior_errors(self, fit: Fit) -> Float[Array, " m"]:
        """Parameters and coefficients of the source, in units of their priors."""
        priors = jnp.array([parameter.prior for _, parameter in self.parameters])
        return jnp.concatenate([fit.raw / priors, fit.source.ravel()])

    def equation(self, u: Callable, fit: Fit, s: Float[Array, " d"]) -> Float[Array, " k"]:
        """What is left of the equation for a field, with the parameters and source of a fit."""
        left = jnp.atleast_1d(self.residual(u, constants(self.parameters, fit.raw))(s))
        return left - self.source(fit.source, s)

    def collocation(self, key: PRNGKeyArray, n: int) -> Float[Array, "n d"]:
        """Fresh points, one in each of equal intervals of a line, anywhere in a larger box."""
        size = len(self.source.lower)
        shares = jax.random.uniform(key, (n, size))
        if size == 1:
            shares = (jnp.arange(n)[:, None] + shares) / n
        return self.source.lower + (self.source.upper - self.source.lower) * shares


def start(problem: Problem, setting: Setting, config: InverseConfig, key: PRNGKeyArray) -> Fit:
    """A fresh network, parameters at their start, no source."""
    lower, upper = setting.source.lower, setting.source.upper
    lengths = jnp.asarray(problem.lengths, float)
    units = jnp.asarray(problem.units, float)
    network = TanhMLP((lower + upper) / 2, lengths, units, config.width, config.depth, key=key)
    raw = jnp.array([parameter.raw_start for parameter in problem.parameters.values()])
    shape = (len(setting.source.basis(lower)), setting.measured_source.values.shape[1])
    return Fit(network, raw, jnp.zeros(shape))


def learned(fit: Fit) -> Fit:
    """Which arrays of a fit are unknowns."""
    every = jax.tree.map(eqx.is_array, fit)
    fixed = lambda tree: (tree.network.centre, tree.network.lengths, tree.network.units)  # noqa: E731
    return eqx.tree_at(fixed, every, (False,) * 3)


def as_vector(fit: Fit) -> tuple[Float[Array, " unknown"], Callable[[Array], Fit]]:
    """All unknowns of a fit in one vector, and the fit of such a vector."""
    unknown, fixed = eqx.partition(fit, learned(fit))
    theta, restore = ravel_pytree(unknown)
    return theta, lambda vector: eqx.combine(restore(vector), fixed)
