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
from ._problem import Parameter, Problem, constants
from ._setting import Fit, InverseConfig, Setting, as_vector, learned
from ._tangent import points_and_weight, precision, root_of, slopes_by_row, tangent

# Points at which the variance of the field is looked at.
LOOKED_AT = 500
EPSILON = 1e-12


class Posterior(eqx.Module):
    """Fields and parameters, one pair per index `z`."""

    fit: Fit
    epinets: Any
    """A `GlobalEpinet` in place of every unknown array of the fit."""
    index: Normal
    parameters: tuple[tuple[str, Parameter], ...] = eqx.field(static=True)
    dimension: int = eqx.field(static=True)

    def draw(self, n: int, *, key: PRNGKeyArray) -> Float[Array, "n k"]:
        """Indices in pairs of opposite sign, so that the base is the mean of an even number."""
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

    def constants(self, indices: Float[Array, "n k"]) -> dict[str, Float[Array, " n"]]:
        """Realisations of the parameters, by name."""
        return constants(self.parameters, self.raw(indices))


@eqx.filter_jit
def _fields(posterior, points, indices):
    unknown, fixed = eqx.partition(posterior.fit, learned(posterior.fit))
    mean, push = jax.linearize(
        lambda theta: jax.vmap(eqx.combine(theta, fixed).network)(points), unknown
    )
    return mean + lax.map(lambda z: push(_at(posterior.epinets, z)), indices)


def _at(epinets, index):
    return jax.tree.map(lambda e: e(index), epinets, is_leaf=lambda e: isinstance(e, GlobalEpinet))


def attach(problem: Problem, fit: Fit, config: InverseConfig, *, key: PRNGKeyArray) -> Posterior:
    """The epinets of a fitted base."""
    setting = Setting.of(problem)
    dense_key, look_key = jax.random.split(key)
    points, weight = points_and_weight(problem, setting, dense_key)
    _, slopes = tangent(setting, fit, points, weight)
    root = root_of(slopes, precision(fit, config))
    looked_at = setting.collocation(look_key, LOOKED_AT)
    seen = np.asarray(_field_slopes(fit, looked_at), np.float64)
    theta, restore = ravel_pytree(eqx.filter(fit, learned(fit)))
    raw = np.asarray(jax.jacrev(lambda t: restore(t).raw)(theta), np.float64)
    heads = _leading(root, seen, raw, config.share)
    branches = jax.vmap(restore)(jnp.asarray(heads.T, theta.dtype))
    epinets = jax.tree.map(GlobalEpinet.solved, branches)
    return Posterior(fit, epinets, Normal(), setting.parameters, heads.shape[1])


@eqx.filter_jit
def _field_slopes(fit, points):
    """The field at points (point, component, unknown), differentiated by all unknowns."""
    theta, of = as_vector(fit)
    _, slopes = slopes_by_row(lambda t, s: of(t).network(s), theta, points)
    return slopes.reshape(len(points), -1, theta.size)


def _leading(root: np.ndarray, seen: np.ndarray, raw: np.ndarray, share: float) -> np.ndarray:
    """Columns of `T`: all that move a parameter, and as few as carry a share of the field."""
    parameters = scipy.linalg.solve_triangular(root, raw.T, lower=True)
    field = scipy.linalg.solve_triangular(root, seen.reshape(-1, len(root)).T, lower=True)
    # Components count alike, whatever their units.
    by_component = field.reshape(len(root), *seen.shape[:2])
    field = (by_component / np.sqrt(np.mean(by_component**2, (0, 1)))).reshape(len(root), -1)
    exact, _ = np.linalg.qr(parameters)
    rest = field - exact @ (exact.T @ field)
    # By the small matrix of products: a singular value decomposition would take ten times as long.
    variance, turn = np.linalg.eigh(rest.T @ rest)
    variance, turn = variance[::-1], turn[:, ::-1]
    carried = np.sum(field**2) - np.sum(variance) + np.cumsum(variance)
    useful = int(np.sum(variance > EPSILON * variance[0]))
    count = min(useful, int(np.searchsorted(carried, share * np.sum(field**2))) + 1)
    further = rest @ turn[:, :count] / np.sqrt(variance[:count])
    return scipy.linalg.solve_triangular(root.T, np.hstack([exact, further]), lower=False)
