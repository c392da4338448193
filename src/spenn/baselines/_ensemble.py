"""Deep ensembles: models that differ in their starts and in their widths.

Members of different widths share one program. A narrow network is a wide one with zeros: units that
are added read nothing and are read by nothing, so a member means the same after padding.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from ..generic import AbstractMethod, Blocks, Generic, is_learned


class DeepEnsemble(AbstractMethod):
    """A number of admissible models; an index is the number of one of them."""

    base: Blocks
    """All members: network weights have a leading axis, known parts are shared."""
    members: int = eqx.field(static=True)

    @property
    def domain(self):
        """The domain of the members."""
        return self.base.domain

    def draw(self, n: int, *, key: PRNGKeyArray) -> Float[Array, "n 1"]:
        """Members in random order, each as often as any other, give or take one."""
        order = jax.random.permutation(key, self.members)
        return order[jnp.arange(n) % self.members, None].astype(float)

    def realise(self, index: Float[Array, " 1"]) -> Generic:
        """The vector field of one member."""
        number = jnp.round(index[0]).astype(int)
        weights, shared = eqx.partition(self.base, is_learned(self.base))
        return Generic(eqx.combine(jax.tree.map(lambda a: a[number], weights), shared))


def pad(members: Sequence[PyTree]) -> tuple[list[PyTree], list[PyTree]]:
    """Weights of different widths, zeros added up to the widest; and ones where none were added."""
    shapes = [
        tuple(max(sizes) for sizes in zip(*(leaf.shape for leaf in leaves), strict=True))
        for leaves in zip(*map(jax.tree.leaves, members), strict=True)
    ]

    def padded(tree, fill):
        leaves, structure = jax.tree.flatten(tree)
        wide = [
            np.pad(fill(leaf), [(0, b - a) for a, b in zip(leaf.shape, shape, strict=True)])
            for leaf, shape in zip(leaves, shapes, strict=True)
        ]
        return jax.tree.unflatten(structure, wide)

    return [padded(m, np.asarray) for m in members], [padded(m, np.ones_like) for m in members]
