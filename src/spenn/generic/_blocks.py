"""The four blocks of GENERIC: energy, entropy, Poisson operator, dissipation potential.

A block is a tuple of *parts* that are added up: one learned part, one known part, or both. All
parts are functions of one local state in scaled coordinates; a domain puts local states together.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..networks import MLP, PICNN, normal, split
from ._assembly import above_diagonal, degenerate_operator, rows_without
from ._domain import AbstractDomain, Point

BLOCKS = ("energy", "entropy", "poisson", "dissipation")
State = Float[Array, " d"]
Moving = Float[Array, " moving"]


class AbstractPotential(eqx.Module):
    """Energy or entropy: `x -> ()`."""

    @abc.abstractmethod
    def __call__(self, x: State) -> Float[Array, ""]:
        """Value at one state."""


class AbstractPoisson(eqx.Module):
    """Poisson operator: `(x, DS) -> L`, skew and with `DS` in its null space."""

    @abc.abstractmethod
    def operator(self, x: State, entropy_slope: Moving) -> Float[Array, "moving moving"]:
        """Matrix at one state, among the directions of the domain that move."""

    def __call__(self, x: State, entropy_slope: Moving, vector: Moving) -> Moving:
        """Action on one vector; override it where the matrix would be too large."""
        return jnp.sum(self.operator(x, entropy_slope) * vector, -1)


class AbstractDissipation(eqx.Module):
    """Raw dissipation potential: `(x, y) -> ()`, convex in `y`."""

    @abc.abstractmethod
    def __call__(self, x: State, y: State) -> Float[Array, ""]:
        """Value at one state and one conjugate variable."""


class LearnedPotential(AbstractPotential):
    """An MLP, or an MLP with its epinet at one index, of all entries or of those it `reads`."""

    network: Any
    reads: tuple[int, ...] | None = eqx.field(default=None, static=True)

    def __call__(self, x):
        """Value at one state."""
        return self.network(self.read(x))[0]

    def read(self, x: Float[Array, "*n d"]) -> Float[Array, "*n in"]:
        """What the network sees of states."""
        return x if self.reads is None else x[..., np.array(self.reads)]


class LearnedPoisson(AbstractPoisson):
    """An MLP for the raw operator and one global tensor, made skew and degenerate by assembly.

    The network gives what stands above the diagonal: a skew operator has nothing else to learn.
    """

    network: Any
    tensor: Float[Array, "moving moving moving"]

    def operator(self, x, entropy_slope):
        """Matrix at one state."""
        return degenerate_operator(self.raw(x), rows_without(self.tensor, entropy_slope))

    def raw(self, x: State) -> Float[Array, "moving moving"]:
        """The matrix `W` at one state.

        The factor makes `W - W^T` as large as it would be if `W` were full, and the weights as
        quick to learn: `(W_ij - W_ji) / sqrt(2)` is as large as each of the two.
        """
        return 2**0.5 * above_diagonal(self.network(x), len(self.tensor))


class LearnedDissipation(AbstractDissipation):
    """A PICNN, or a PICNN with its epinet at one index."""

    network: Any

    def __call__(self, x, y):
        """Value at one state and one conjugate variable."""
        return self.network(x, y)[0]


class Blocks(eqx.Module):
    """Four blocks, each the sum of its parts, on a domain."""

    energy: tuple[AbstractPotential, ...]
    entropy: tuple[AbstractPotential, ...]
    poisson: tuple[AbstractPoisson, ...]
    dissipation: tuple[AbstractDissipation, ...]
    domain: AbstractDomain = Point()


def is_learned(blocks: Blocks) -> Blocks:
    """Tree of booleans: true for network weights, false for whatever a known part carries."""
    learned = (LearnedDissipation, LearnedPoisson, LearnedPotential)
    return jax.tree.map(
        lambda part: jax.tree.map(
            lambda leaf: isinstance(part, learned) and eqx.is_inexact_array(leaf), part
        ),
        blocks,
        is_leaf=lambda node: node is not blocks and isinstance(node, eqx.Module),
    )


def learned_potential(
    size: int,
    width: int,
    depth: int,
    *,
    reads: tuple[int, ...] | None = None,
    key: PRNGKeyArray,
) -> LearnedPotential:
    """Draw an energy or entropy network, of all `size` entries of a state or of some."""
    size = size if reads is None else len(reads)
    return LearnedPotential(MLP(size, 1, width, depth, key=key), reads)


def learned_poisson(
    size: int, rank: int, width: int, depth: int, *, key: PRNGKeyArray
) -> LearnedPoisson:
    """Draw a raw operator network and a tensor such that `L` starts with entries of order one."""
    network_key, tensor_key = split(key, 2)
    pairs = max(rank * (rank - 1) // 2, 1)
    network = MLP(size, pairs, width, depth, key=network_key)
    tensor = normal(tensor_key, (rank, rank, rank), (2 * rank) ** -0.5)
    return LearnedPoisson(network, tensor)


def learned_dissipation(
    size: int, force_size: int, width: int, depth: int, *, key: PRNGKeyArray
) -> LearnedDissipation:
    """Draw a dissipation network."""
    return LearnedDissipation(PICNN(size, force_size, 1, width, depth, key=key))
