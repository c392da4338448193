"""One step of a vector field, from one state."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

State = Float[Array, " d"]
Velocity = Callable[[State], State]


def rk4(
    velocity: Velocity,
    x: State,
    dt: Float[Array, ""],
    first: State | None = None,
    *,
    middle: Velocity | None = None,
    end: Velocity | None = None,
) -> State:
    """Classical Runge-Kutta step, order 4. `first` is `velocity(x)` where it is known already.

    A field that depends on time is given half a step and one step later as `middle` and `end`.
    """
    middle, end = middle or velocity, end or velocity
    k1 = velocity(x) if first is None else first
    k2 = middle(x + dt / 2 * k1)
    k3 = middle(x + dt / 2 * k2)
    k4 = end(x + dt * k3)
    return x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def implicit_midpoint(velocity: Velocity, x: State, dt: Float[Array, ""]) -> State:
    """Implicit midpoint step, order 2, by fixed-point sweeps; NaN where they do not converge.

    Sweeps stop when one changes the state by no more than rounding. They contract for steps that
    resolve the motion, which is what reference data need.
    """
    limit = 4 * jnp.finfo(x.dtype).eps * (1 + jnp.max(jnp.abs(x)))

    def unfinished(carry):
        _, change, sweeps = carry
        return (change > limit) & (sweeps < 100)

    def sweep(carry):
        guess, _, sweeps = carry
        new = x + dt * velocity((x + guess) / 2)
        return new, jnp.max(jnp.abs(new - guess)), sweeps + 1

    start = (x + dt * velocity(x), jnp.full((), jnp.inf, x.dtype), 0)
    new, change, _ = lax.while_loop(unfinished, sweep, start)
    return jnp.where(change <= limit, new, jnp.nan)
