"""Implicit equations `v = sweep(v)`: solved to rounding, or said not to be.

Sweeps with Broyden's updates of the inverse Jacobian come first: without a matrix, and with the
plain sweep as their first step. What they leave unsolved goes to Newton's method. Derivatives are
those of the solution, by the implicit function theorem, whatever the way that led to it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.sparse.linalg import gmres
from jaxtyping import Array, Bool, Float, Int

Vector = Float[Array, " n"]

SWEEPS = 40
PAIRS = 8
"""Updates of the inverse Jacobian until it is learned anew."""
NEWTON = 20
NEAR = 4
"""Within so many tolerances a sweep that makes no headway has met rounding, and is the last."""
LARGEST = 1000
"""Unknowns up to which linear equations have a matrix; beyond, GMRES does without."""


Sweep = Callable[[Vector], tuple[Vector, Any]]


class Solution(NamedTuple):
    """What solves `v = sweep(v)`, what the last sweep told, their number, and whether it does."""

    value: Vector
    told: Any
    sweeps: Int[Array, ""]
    converged: Bool[Array, ""]


def fixed_point(sweep: Sweep, guess: Vector, tolerance: Float[Array, ""]) -> Solution:
    """Solve `v = sweep(v)` until a sweep changes no entry by more than the tolerance.

    Where rounding is more than that, by more than `NEAR` times the tolerance. Without a tolerance,
    one that is not a number, nothing is tried beyond one sweep. A sweep may tell something beside
    its vector, in floats, which count as constants under differentiation.
    """

    def residual(v):
        new, told = sweep(v)
        return v - new, told

    def solve(_, guess):
        found = _newton(residual, _broyden(residual, guess, tolerance), tolerance)
        # What a plain sweep makes of the last value is nearer, and obeys the laws to higher order.
        value = found.value - found.residual
        count = jnp.stack([found.sweeps, found.size <= NEAR * tolerance]).astype(guess.dtype)
        return value, (found.told, count)  # what is no number of this kind has no tangent

    value, (told, (sweeps, converged)) = lax.custom_root(
        lambda v: residual(v)[0], guess, solve, _linear_solve, has_aux=True
    )
    return Solution(value, told, sweeps.astype(int), converged > 0)


class _Found(NamedTuple):
    value: Vector
    residual: Vector
    told: Any
    sweeps: Int[Array, ""]

    @property
    def size(self):
        return jnp.max(jnp.abs(self.residual))


class _Inverse(NamedTuple):
    """`1 + left^T right`, as far as the inverse Jacobian is known."""

    left: Float[Array, "pairs n"]
    right: Float[Array, "pairs n"]

    def times(self, vector: Vector) -> Vector:
        return vector + jnp.sum(self.left * jnp.sum(self.right * vector, -1, keepdims=True), 0)

    def updated(self, step: Vector, change: Vector, number: Int[Array, ""]) -> "_Inverse":
        """The nearest one that turns the change of a residual into the step that made it.

        Update number 0 forgets all before it: what was learned far away can keep sweeps that would
        settle by themselves from doing so.
        """
        known = _Inverse(*(jnp.where(number > 0, part, 0) for part in self))
        transposed, change = _Inverse(known.right, known.left), known.times(change)
        scale = jnp.sum(step * change)
        # A vanishing scale says nothing about the inverse, nor does a first step from nowhere.
        sound = jnp.abs(scale) > jnp.finfo(step.dtype).eps * jnp.sum(step**2)
        here = (sound & (jnp.arange(PAIRS) == number))[:, None]
        left = jnp.where(here, (step - change) / jnp.where(sound, scale, 1), known.left)
        return _Inverse(left, jnp.where(here, transposed.times(step), known.right))


def _broyden(residual, guess, tolerance) -> _Found:
    def advance(carry):
        found, inverse, step, _ = carry
        value = found.value + step
        new, told = residual(value)
        inverse = inverse.updated(step, new - found.residual, (found.sweeps - 1) % PAIRS)
        after = _Found(value, new, told, found.sweeps + 1)
        return after, inverse, -inverse.times(new), found.size

    def unfinished(carry):
        found, *_, before = carry
        rounding = (found.size <= NEAR * tolerance) & (found.size > before / 2)
        far = (found.size > tolerance) & jnp.isfinite(found.size) & ~rounding
        return (found.sweeps == 0) | (far & (found.sweeps < SWEEPS))

    none = jnp.zeros((PAIRS, guess.size), guess.dtype)
    told = jax.tree.map(jnp.zeros_like, jax.eval_shape(residual, guess)[1])
    start = _Found(guess, jnp.full_like(guess, jnp.inf), told, jnp.zeros((), int))
    first = start, _Inverse(none, none), jnp.zeros_like(guess), start.size
    return lax.while_loop(unfinished, advance, first)[0]


def _newton(residual, found: _Found, tolerance) -> _Found:
    """Newton's method from zero, for what was not found; takes no time if everything was.

    A step that does not make the residual smaller, or leaves the domain of the equations, is taken
    back and halved.
    """
    tolerance = NEAR * tolerance
    lost = ~(found.size <= tolerance)
    nowhere = jnp.where(lost, jnp.inf, found.residual)
    start = _Found(jnp.where(lost, 0, found.value), nowhere, found.told, found.sweeps)

    def advance(carry):
        best, step = carry
        value = best.value - step
        new, push, told = jax.linearize(residual, value, has_aux=True)
        better = jnp.max(jnp.abs(new)) < best.size
        tried = _Found(value, new, told, best.sweeps)
        chosen = jax.tree.map(lambda a, b: jnp.where(better, a, b), tried, best)
        counted = chosen._replace(sweeps=best.sweeps + 1)
        return counted, jnp.where(better, _linear_solve(push, new), step / 2)

    def unfinished(carry):
        best, _ = carry
        return (best.size > tolerance) & (best.sweeps < found.sweeps + NEWTON)

    return lax.while_loop(unfinished, advance, (start, jnp.zeros_like(found.value)))[0]


def _linear_solve(linear, vector):
    """Solve `linear(step) = vector`; columns of the matrix one by one, to bound memory."""
    if vector.size > LARGEST:
        return gmres(linear, vector, tol=10 * float(jnp.finfo(vector.dtype).eps))[0]
    columns = lax.map(linear, jnp.eye(vector.size, dtype=vector.dtype))
    return jnp.linalg.solve(columns.T, vector)
