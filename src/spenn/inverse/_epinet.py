"""Stage two: epinets that turn one solution into all that the measurements allow.

Suppose the same experiment again: other noise, hence another solution. Near the solution at hand
that map is linear: with rows `J` of all errors, differentiated by all unknowns `theta`, each in
units of its own uncertainty (noise of the data, tolerance of the equation, prior of the unknown),

    theta(z) = theta + T z,    T T' = N^-1,    N = J' J + prior,    z ~ N(0, I),

is the solution for data whose noise is a linear function of `z`: each index sees its own draw of
the noise, as with randomised prior functions. So stage two has a closed form here. `T` has a part
for every weight of the network, read through the network's own tangent,

    u(s, z) = u(s) + du/dtheta(s) . T z,

which is the branch that depends on the input, and one for the parameters, which does not.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from ..epinet import GlobalEpinet, Normal
from ._problem import Problem
from ._setting import Fit, InverseConfig, Setting, learned
from ._tangent import BATCH, points_and_weight, precision, root_of, tangent

# Points at which the variance of the field is looked at.
LOOKED_AT = 500


class Posterior(eqx.Module):
    """Fields and parameters, one pair per index `z`."""

    fit: Fit
    epinets: Any
    """A `GlobalEpinet` in place of every unknown array of the fit."""
    index: Normal
    dimension: int = eqx.field(static=True)

    def draw(self, n: int, *, key: PRNGKeyArray) -> Float[Array, "n k"]:
        """Indices of `n` realisations, in pairs of opposite sign: the base is their mean."""
        half = self.index.draw((-(-n // 2), self.dimension), key=key)
        return jnp.stack([half, -half], 1).reshape(-1, self.dimension)[:n]

    def fields(
        self, points: Float[Array, "point d"], indices: Float[Array, "n k"]
    ) -> Float[Array, "n point component"]:
        """Realisations of the field at points."""
        return _fields(self, jnp.asarray(points, float), indices)

    def raw(self, indices: Float[Array, "n k"]) -> Float[Array, "n p"]:
        """Realisations of the parameters, before their transforms."""
        return self.fit.raw + jax.vmap(self.epinets.raw)(indices)

    def realise(self, index: Float[Array, " k"]) -> tuple[Callable, Fit]:
        """One field, as a function of a point, and a fit with the parameters that go with it."""
        unknown, fixed = eqx.partition(self.fit, learned(self.fit))
        shift = _at(self.epinets, index)

        def field(s):
            value, change = jax.jvp(
                lambda theta: eqx.combine(theta, fixed).network(s), (unknown,), (shift,)
            )
            return value + change

        moved = jax.tree.map(jnp.add, unknown, shift)
        return field, eqx.combine(moved, fixed)


@eqx.filter_jit
def _fields(posterior, points, indices):
    unknown, fixed = eqx.partition(posterior.fit, learned(posterior.fit))
    mean, push = jax.linearize(
        lambda theta: jax.vmap(eqx.combine(theta, fixed).network)(points), unknown
    )
    return mean + lax.map(lambda z: push(_at(posterior.epinets, z)), indices)


def _at(epinets, index):
    is_epinet = lambda leaf: isinstance(leaf, GlobalEpinet)  # noqa: E731
    return jax.tree.map(lambda e: e(index) if is_epinet(e) else e, epinets, is_leaf=is_epinet)


def attach(problem: Problem, fit: Fit, config: InverseConfig, *, key: PRNGKeyArray) -> Posterior:
    """The epinets of a fitted base."""
    setting = Setting.of(problem)
    dense_key, look_key = jax.random.split(key)
    points, weight = points_and_weight(problem, setting, dense_key)
    _, slopes = tangent(setting, fit, points, weight)
    root = root_of(slopes, precision(problem, fit, config))
    seen = np.asarray(_field_slopes(fit, setting.collocation(look_key, LOOKED_AT)), np.float64)
    unknown = eqx.filter(fit, learned(fit))
    theta, restore = ravel_pytree(unknown)
    heads = _leading(root, seen, _is_raw(unknown), config.share)
    branches = jax.vmap(restore)(jnp.asarray(heads.T, theta.dtype))
    epinets = jax.tree.map(GlobalEpinet.solved, branches)
    return Posterior(fit, epinets, Normal(), heads.shape[1])


@eqx.filter_jit
def _field_slopes(fit, points):
    """The field at points, differentiated by all unknowns: one row per component and point."""
    unknown, fixed = eqx.partition(fit, learned(fit))
    theta, restore = ravel_pytree(unknown)
    slopes = jax.jacrev(lambda t, s: eqx.combine(restore(t), fixed).network(s))
    rows = lax.map(lambda s: slopes(theta, s), points, batch_size=BATCH)
    return rows.reshape(-1, theta.size)


def _is_raw(unknown: Fit) -> np.ndarray:
    """Where in the vector of unknowns the parameters are."""
    nowhere = jax.tree.map(jnp.zeros_like, unknown)
    marked = eqx.tree_at(lambda f: f.raw, nowhere, jnp.ones_like(unknown.raw))
    return np.flatnonzero(ravel_pytree(marked)[0])


def _leading(root: np.ndarray, seen: np.ndarray, raw: np.ndarray, share: float) -> np.ndarray:
    """Columns of `T`: all that move a parameter, and as few as carry a share of the field."""
    picked = np.zeros((len(raw), len(root)))
    picked[np.arange(len(raw)), raw] = 1
    field, parameters = (
        scipy.linalg.solve_triangular(root, block.T, lower=True) for block in (seen, picked)
    )
    # Parameters first and exactly; then directions in the order of the field's variance.
    exact, _ = np.linalg.qr(parameters)
    rest = field - exact @ (exact.T @ field)
    variance, turn = np.linalg.eigh(rest.T @ rest)
    variance, turn = variance[::-1], turn[:, ::-1]
    missing = 1 - share
    left = np.sum(variance) - np.cumsum(variance)
    count = int(np.argmax(left <= missing * np.sum(field**2))) + 1
    further = rest @ turn[:, :count] / np.sqrt(variance[:count])
    return scipy.linalg.solve_triangular(root.T, np.hstack([exact, further]), lower=False)
