"""Implicit steps: collocation at Gauss points, with exact or with discrete slopes.

A step is a path `u` from `x`, with velocities `v_i` at the Gauss points `c_i` of the step and
polynomial in between. Collocation asks for `v_i = velocity(DE, DS; u(c_i))`, with slopes at
`u(c_i)`. Discrete slopes are averages along the path instead, `DE_i = sum_k a_ik DE(u(t_k))`, such
that

    E(u(1)) - E(u(0)) = dt sum_i b_i DE_i . v_i,   and the same for the entropy.

The assembly makes every `DE_i . v_i` zero and every `DS_i . v_i` at least zero, so both laws hold
for steps of any length (docs/integrators.md).
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..generic import Generic
from ..networks import product
from ._integrator import AbstractIntegrator, Step
from ._quadrature import Gauss, gauss, projection
from ._solve import fixed_point
from ._steppers import State

Velocities = Float[Array, "s d"]

PRECISION = 32
"""A step is solved when a sweep changes it by no more than so many units of rounding."""
ROUNDING = 8
"""Differences of energies below so many units of rounding are not told from zero."""
PAID = 1e-3
"""What is paid back in a step changes slopes by no more than this share of the velocity."""
NEAREST = 0.3
"""Steps are extrapolated from one before that was at least this share of their length."""


class Memory(NamedTuple):
    """What is kept between steps."""

    velocities: Velocities
    dt: Float[Array, ""]
    remainder: State
    """What rounding has left out of the state, so that it does not add up."""
    energy: Float[Array, ""]
    """That of the first state, and so of all others but for the work done since."""
    work: Float[Array, ""]


class Collocation(AbstractIntegrator):
    """Gauss collocation of order `2 * stages`.

    With `discrete` slopes both laws hold exactly. With exact slopes at the stages, one stage is the
    implicit midpoint rule.
    """

    stages: int = eqx.field(default=2, static=True)
    discrete: bool = eqx.field(default=True, static=True)

    def begin(self, field, x):
        """No earlier step."""
        none = jnp.zeros((self.stages, x.size), x.dtype)
        zero = jnp.zeros((), x.dtype)
        return Memory(none, zero, jnp.zeros_like(x), field.energy(x), zero)

    def step(self, field, x, rates, dt, motion, memory):
        """Solve for the velocities at all stages at once."""
        # More digits are averaged over more nodes: what is left to correct should be rare.
        extra = (2 if x.dtype == jnp.float64 else 1) if self.discrete else 0
        rule = gauss(self.stages, self.stages + extra).astype(x.dtype)
        imposed, now = None, rates.velocity
        if motion is not None:
            imposed = product(projection(self.stages).astype(x.dtype), jnp.stack(motion))
            now, _ = field.driven(now, rates.energy_slope, motion.start)
        owed = rates.energy - memory.energy - memory.work
        at_start = rates.energy, owed, rates.entropies
        path = _Path(field, rule, x, dt, *at_start, imposed, self.discrete)
        guess = _extrapolated(rule.stages, now, dt, memory)
        speed = jnp.max(jnp.abs(now)) + jnp.max(jnp.abs(x)) / jnp.where(dt == 0, 1, jnp.abs(dt))
        tolerance = PRECISION * jnp.finfo(x.dtype).eps * speed
        found = fixed_point(path.sweep, guess.ravel(), tolerance)
        velocities = found.value.reshape(self.stages, -1)
        work = jnp.where(found.converged, dt * _power(path, found.value, found.told), jnp.nan)
        new, remainder = _added(x, dt * product(rule.weights, velocities), memory.remainder)
        kept = Memory(velocities, dt, remainder, memory.energy, memory.work + work)
        return Step(jnp.where(found.converged, new, jnp.nan), work, found.sweeps, kept)


class _Path(eqx.Module):
    """The path of one step: its start, and the equations of the velocities along it."""

    field: Generic
    rule: Gauss
    x: State
    dt: Float[Array, ""]
    energy: Float[Array, ""]
    owed: Float[Array, ""]
    """By how much the energy is more than it should be, at the start."""
    entropies: Float[Array, " cell"]
    imposed: Float[Array, "s prescribed"] | None
    discrete: bool

    def sweep(self, flat: Float[Array, " s*d"]) -> tuple[Float[Array, " s*d"], Float[Array, ""]]:
        """Velocities at all stages from those of the last sweep, and the power that is imposed."""
        velocities = flat.reshape(len(self.rule.stages), -1)
        energy, entropy = self._slopes(velocities)
        states = self.x + self.dt * product(self.rule.to_stages, velocities)
        new = jax.vmap(self.field.assemble)(states, energy, entropy)
        if self.imposed is None:
            return new.ravel(), jnp.zeros((), new.dtype)
        new, power = jax.vmap(self.field.driven)(new, energy, self.imposed)
        return new.ravel(), jnp.sum(self.rule.weights * power)

    def _slopes(self, velocities: Velocities) -> tuple[Velocities, Velocities]:
        """Slopes of energy and entropy for every stage."""
        points = self.x + self.dt * product(self.rule.to_nodes, velocities)
        potentials = self.field.energy, self.field.entropy
        slopes = (jax.vmap(jax.grad(potential))(points) for potential in potentials)
        energy, entropy = (product(self.rule.averages, slope) for slope in slopes)
        if not self.discrete:
            return energy, entropy
        weights = self.dt * self.rule.weights
        end = self.x + product(weights, velocities)
        energies = self.field.energy(end)[None], self.energy[None]
        entropies = self.field.entropies(end), self.entropies
        production = self.field.blocks.domain.productions
        return (
            _exact(_rate, energy, velocities, weights, *energies, self.owed),
            _exact(production, entropy, velocities, weights, *entropies),
        )


@eqx.filter_custom_jvp
def _power(path, flat, told):
    """The power that the last sweep told; its derivatives are those of another one."""
    del path, flat
    return told


@_power.def_jvp
def _power_jvp(primals, tangents):
    (*inputs, told), (*changes, _) = primals, tangents
    _, change = eqx.filter_jvp(lambda path, flat: path.sweep(flat)[1], inputs, changes)
    return _power(*inputs, told), change


def _rate(slope, velocity):
    return jnp.sum(slope * velocity)[None]


def _exact(rate, slopes, velocities, weights, after, before, owed: Array | float = 0.0):
    """Slopes that explain the change of a quantity, or several, and pay back what is owed.

    What averages do not explain is the error of quadrature. It is shared out along the velocities;
    where it drowns in rounding, as close to equilibrium, there is nothing to share out. What
    is owed is what rounding has made of earlier steps: a little of it at a time.
    """
    missing = after - before - product(weights, jax.vmap(rate)(slopes, velocities))
    rounding = ROUNDING * jnp.finfo(after.dtype).eps * (jnp.abs(after) + jnp.abs(before))
    length = product(weights, jax.vmap(rate)(velocities, velocities))
    limit = PAID * jnp.abs(length)
    missing = missing - jnp.clip(missing, -rounding, rounding) + jnp.clip(owed, -limit, limit)
    share = missing / jnp.where(length == 0, jnp.inf, length)

    def corrected(slope, velocity):
        _, adjoint = jax.vjp(lambda slope: rate(slope, velocity), slope)
        return slope + adjoint(share)[0]

    return jax.vmap(corrected)(slopes, velocities)


def _extrapolated(stages, now: State, dt, memory: Memory) -> Velocities:
    """Velocities at the stages, from those of the step before and the one at its end.

    Where that one was far shorter, its polynomial would be far off: then the velocity as it is.
    """
    ratio = memory.dt / jnp.where(dt == 0, jnp.inf, dt)
    near = ratio > NEAREST
    places = jnp.append((stages - 1) * jnp.where(near, ratio, 1), 0)
    values = jnp.concatenate([memory.velocities, now[None]])
    others = ~jnp.eye(len(places), dtype=bool)
    gaps = jnp.where(others, places[:, None] - places, 1)
    reach = jnp.where(others, stages[:, None, None] - places, 1)
    return jnp.where(near, product(jnp.prod(reach / gaps, -1), values), now)


def _added(x: State, change: State, remainder: State) -> tuple[State, State]:
    """`x + (change + remainder)`, and what rounding leaves out of that, without an error."""
    change = change + remainder
    new = x + change
    part = new - x
    return new, (x - (new - part)) + (change - part)
