"""Domains: what a state is made of, and how blocks of local states act on the whole of it.

Blocks are functions of one *local* state. A point is its own local state. A bar has one local state
per cell, and what differs is how the whole is put together: functionals are integrals over cells,
strain is a difference of nodes, and the adjoint of that, which differentiation supplies, is the
divergence. Both laws hold on every domain, because every local state passes the same assembly.
"""

import abc
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..networks import product
from . import _assembly as assembly
from ._conserved import moving_directions
from ._coordinates import Coordinates

State = Float[Array, " d"]
Density = Callable[[Array], Float[Array, ""]]


class Sizes(NamedTuple):
    """Entries that energy and entropy read, and that operators act on; 0: none is to be learned."""

    energy: int
    entropy: int
    poisson: int
    force: int


class Units(NamedTuple):
    """Coordinates of what energy and dissipation read, of what entropy reads, unit of energy."""

    energy: Coordinates
    entropy: Coordinates
    energy_unit: Float[Array, ""]


class AbstractDomain(eqx.Module):
    """How a state is made of local states, as many as there are `cells`."""

    cells: eqx.AbstractVar[int]

    @property
    def prescribed(self) -> tuple[int, ...]:
        """Entries of a state that are imposed from outside, such as moving ends."""
        return ()

    @property
    def directions(self) -> Float[Array, "force moving"] | None:
        """Basis of the directions that operators act in; none if those are all there are."""
        return None

    def moving(self, slope: Float[Array, " force"]) -> Float[Array, " moving"]:
        """What operators see of a slope."""
        return slope if self.directions is None else product(slope, self.directions)

    def free(self, size: int) -> np.ndarray:
        """Entries of a state with `size` entries that are forecast: all that are not prescribed."""
        return np.setdiff1d(np.arange(size), self.prescribed)

    def equations(self, size: int) -> np.ndarray:
        """The number of the set of equations that moves each of `size` entries: one, by default.

        Rates within one set must come from one source (`data/_agreement.py`).
        """
        return np.zeros(size, int)

    def places(self, size: int) -> np.ndarray | None:
        """Where each of `size` entries lies, as a share of the length; none without extent."""
        del size
        return None

    @abc.abstractmethod
    def size(self, variables: int) -> int:
        """Number of entries of a state of so many variables."""

    @abc.abstractmethod
    def sizes(self, size: int) -> Sizes:
        """What blocks read of the local states of a state with `size` entries."""

    @abc.abstractmethod
    def variables(self, size: int) -> np.ndarray:
        """The number of the variable that each of `size` entries belongs to."""

    @abc.abstractmethod
    def local(self, x: State) -> Float[Array, "cell local"]:
        """Local states, as energy and dissipation read them."""

    @abc.abstractmethod
    def internal(self, local: Float[Array, "*n local"]) -> Float[Array, "*n internal"]:
        """The entries of local states that dissipation changes; entropy reads no others."""

    @abc.abstractmethod
    def energy(self, density: Density, x: State) -> Float[Array, ""]:
        """Energy of the whole."""

    @abc.abstractmethod
    def entropies(self, density: Density, x: State) -> Float[Array, " cell"]:
        """Entropy of every local state; their sum is that of the whole."""

    @abc.abstractmethod
    def velocity(
        self,
        x: State,
        energy_slope: State,
        entropy_slope: State,
        poisson: Callable[[Array, Array], Array],
        dissipation_slope: Callable[[Array, Array], Array],
    ) -> State:
        """Velocity from slopes of the whole and blocks of local states."""

    @abc.abstractmethod
    def productions(self, entropy_slope: State, velocity: State) -> Float[Array, " cell"]:
        """Rate of change of every local entropy along a velocity."""

    @abc.abstractmethod
    def coordinates(self, states: np.ndarray, derivatives: np.ndarray) -> Coordinates:
        """Coordinates in which states (n, d) and the slopes of the energy are of order one."""

    @abc.abstractmethod
    def scaled(self) -> "AbstractDomain":
        """The same domain in its own scaled coordinates."""

    @abc.abstractmethod
    def units(self, coordinates: Coordinates) -> Units:
        """What scaled coordinates of the whole are for local states."""


class Point(AbstractDomain):
    """A state without extent: it is its own, single local state.

    Where linear combinations of variables are conserved, `basis` is an orthonormal basis `D` of all
    directions in which the state moves, and operators act there: with slopes `D^T DE` and `D^T DS`
    both laws are those of the assembly, and every realisation keeps the combinations.
    """

    cells: int = eqx.field(default=1, static=True)
    basis: Float[Array, "d moving"] | None = None

    @property
    def directions(self):
        """The basis."""
        return self.basis

    @classmethod
    def keeping(cls, conserved: Float[np.ndarray, "c d"]) -> "Point":
        """A point on which the combinations `conserved @ x` never change."""
        return cls(basis=jnp.asarray(moving_directions(conserved), float))

    def size(self, variables):
        """One entry per variable."""
        return variables

    def sizes(self, size):
        """Every block reads everything; operators act on what moves."""
        rank = size if self.directions is None else self.directions.shape[1]
        return Sizes(size, size, rank, rank)

    def variables(self, size):
        """Every entry is a variable."""
        return np.arange(size)

    def local(self, x):
        """The state itself."""
        return x[None]

    def internal(self, local):
        """All of it."""
        return local

    def energy(self, density, x):
        """Value of the energy."""
        return density(x)

    def entropies(self, density, x):
        """Value of the entropy."""
        return density(x)[None]

    def velocity(self, x, energy_slope, entropy_slope, poisson, dissipation_slope):
        """`L DE + D Xi(x, DS)`."""
        entropy_slope = self.moving(entropy_slope)
        velocity = assembly.velocity(
            self.moving(energy_slope),
            entropy_slope,
            lambda vector: poisson(entropy_slope, vector),
            lambda y: dissipation_slope(x, y),
        )
        return velocity if self.directions is None else product(self.directions, velocity)

    def productions(self, entropy_slope, velocity):
        """`DS . dx/dt`."""
        return jnp.sum(entropy_slope * velocity)[None]

    def coordinates(self, states, derivatives):
        """Every variable standardised."""
        return Coordinates.from_data(states, derivatives)

    def scaled(self):
        """A point has no size."""
        return self

    def units(self, coordinates):
        """The same for all."""
        return Units(coordinates, coordinates, jnp.ones(()))


class Bar(AbstractDomain):
    """A straight bar of equal cells with given motion of its two ends.

    A state holds displacement `u` and momentum `p` at `cells + 1` nodes, then `internal_variables`
    fields with one entry per cell. With strain `(u[i+1] - u[i]) / width`, internal variables `a`
    and masses `m` (half a cell at the ends),

        E = sum_nodes m p^2 / (2 density) + sum_cells width e(strain, a),
        S = sum_cells width s(a),   Xi = sum_cells width xi(strain, a; .),   L canonical in (u, p),

    so kinetic energy and Poisson operator are known, and `e`, `s`, `xi` are the blocks. The first
    internal variable is a strain. As entropy reads neither `u` nor `p`, `L DS = 0`.
    """

    cells: int = eqx.field(static=True)
    internal_variables: int = eqx.field(static=True)
    width: Float[Array, ""]
    density: Float[Array, ""]

    @classmethod
    def of(cls, cells: int, length: float, density: float, internal_variables: int = 2) -> "Bar":
        """A bar from its length and its mass density."""
        number = jnp.result_type(float)
        return cls(
            cells,
            internal_variables,
            jnp.asarray(length / cells, number),
            jnp.asarray(density, number),
        )

    @property
    def prescribed(self):
        """Displacement and momentum of both ends."""
        return (0, self.cells, self.cells + 1, 2 * self.cells + 1)

    def size(self, variables):
        """Two fields on nodes, the others in cells."""
        return 2 * (self.cells + 1) + (variables - 2) * self.cells

    def sizes(self, size):
        """Energy and dissipation read the strain too."""
        expected = self.size(2 + self.internal_variables)
        if size != expected:
            raise ValueError(
                f"a bar of {self.cells} cells with {self.internal_variables} internal variables "
                f"has states of {expected} entries, not {size}."
            )
        return Sizes(
            1 + self.internal_variables, self.internal_variables, 0, self.internal_variables
        )

    def variables(self, size):
        """Displacement, momentum, and the internal variables."""
        self.sizes(size)
        lengths = [self.cells + 1] * 2 + [self.cells] * self.internal_variables
        return np.repeat(np.arange(len(lengths)), lengths)

    def equations(self, size):
        """One set for the motion of the nodes, which is reversible; one for what happens in cells.

        Records often resolve the second and not the first, whose waves are as short as the cells.
        """
        position_and_momentum = 2
        return (self.variables(size) >= position_and_momentum).astype(int)

    def places(self, size):
        """Nodes and centres of cells."""
        self.sizes(size)
        nodes = np.linspace(0, 1, self.cells + 1)
        centres = (nodes[1:] + nodes[:-1]) / 2
        return np.concatenate([nodes, nodes, np.tile(centres, self.internal_variables)])

    def local(self, x):
        """Strain and internal variables of every cell."""
        u, _, inner = self._parts(x)
        return jnp.column_stack([jnp.diff(u) / self.width, inner])

    def internal(self, local):
        """All but the strain."""
        return local[..., 1:]

    def energy(self, density, x):
        """Kinetic energy of the nodes and energy of the cells."""
        _, p, _ = self._parts(x)
        kinetic = jnp.sum(self._masses(x) * p**2) / (2 * self.density)
        return kinetic + self.width * jnp.sum(jax.vmap(density)(self.local(x)))

    def entropies(self, density, x):
        """Entropy of the cells."""
        return self.width * jax.vmap(density)(self._parts(x)[2])

    def velocity(self, x, energy_slope, entropy_slope, poisson, dissipation_slope):
        """Canonical motion of the nodes, the assembly in every cell."""
        del poisson
        u_slope, p_slope, forces = self._parts(energy_slope)
        masses = self._masses(x)

        def cell(state, energy_slope, entropy_slope):
            return assembly.irreversible(
                energy_slope, entropy_slope, lambda y: dissipation_slope(state, y)
            )

        drives = self._parts(entropy_slope)[2]
        rates = jax.vmap(cell)(self.local(x), forces / self.width, drives / self.width)
        return jnp.concatenate([p_slope / masses, -u_slope / masses, rates.T.ravel()])

    def productions(self, entropy_slope, velocity):
        """`DS . dx/dt`, cell by cell."""
        return jnp.sum(self._parts(entropy_slope)[2] * self._parts(velocity)[2], 1)

    def coordinates(self, states, derivatives):
        """Coordinates in which all slopes of the energy are of one size.

        Strains share one scale; a modulus, estimated from momentum against the gradient of strain,
        sets the scale of energy; internal variables do work at the scale of the first.
        """
        width, density = float(self.width), float(self.density)
        u, _, inner = self._parts(np.moveaxis(states, -1, 0))
        _, force, rates = self._parts(np.moveaxis(derivatives, -1, 0))
        strain = np.diff(u, axis=0) / width
        gradient = np.diff(strain, axis=0) / width
        modulus = abs(np.sum(gradient * force[1:-1]) / np.sum(gradient**2))
        unit = strain.std()
        length = width * self.cells
        spreads = rates.std((0, *range(2, rates.ndim)))
        inner_units = unit * np.where(spreads > 0, spreads / spreads[0], 1.0)
        scales = (unit * length, unit * np.sqrt(density * modulus), *inner_units)
        inner_means = inner.mean((0, *range(2, inner.ndim)))
        offsets = (0.0, 0.0, 0.0, *inner_means[1:])
        which = self.variables(states.shape[-1])
        return Coordinates.of(
            np.asarray(offsets)[which],
            np.asarray(scales)[which],
            length * np.sqrt(density / modulus),
        )

    def scaled(self):
        """Length and density one: motion is canonical in scaled coordinates as well."""
        return Bar.of(self.cells, 1.0, 1.0, self.internal_variables)

    def units(self, coordinates):
        """Strain in the unit of displacement over length, and the energy that makes `p` one."""
        nodes = self.cells + 1
        offset, scale = (
            a[2 * nodes :: self.cells] for a in (coordinates.offset, coordinates.scale)
        )
        strain = coordinates.scale[:1] / (self.width * self.cells)
        time_unit = coordinates.time_unit
        return Units(
            Coordinates(
                jnp.concatenate([jnp.zeros(1), offset]), jnp.append(strain, scale), time_unit
            ),
            Coordinates(offset, scale, time_unit),
            coordinates.scale[nodes] ** 2 / self.density,
        )

    def _parts(self, x):
        """Displacement and momentum (node, ...), internal variables (cell, variable, ...)."""
        u, p, inner = jnp.split(x, (self.cells + 1, 2 * (self.cells + 1)))
        return u, p, inner.reshape(self.internal_variables, self.cells, *x.shape[1:]).swapaxes(0, 1)

    def _masses(self, x):
        """Lumped masses per unit of density: half a cell at the ends."""
        ends = jnp.ones(self.cells + 1, x.dtype).at[jnp.array([0, -1])].set(0.5)
        return self.width.astype(x.dtype) * ends
