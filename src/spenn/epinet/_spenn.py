"""S-PENN: an epinet on every learned block, one index for all of them."""

from typing import Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from ..generic import (
    BLOCKS,
    AbstractMethod,
    Blocks,
    Generic,
    LearnedDissipation,
    LearnedPoisson,
    LearnedPotential,
)
from ..networks import split
from ._epinet import (
    ConvexEpinet,
    Epinet,
    GlobalEpinet,
    Index,
    PerturbedMLP,
    PerturbedPICNN,
    Shape,
)
from ._index import AbstractIndex


class PoissonEpinet(eqx.Module):
    """Two branches, for the raw operator and for the global tensor."""

    network: Epinet
    tensor: GlobalEpinet


AnyEpinet = Epinet | PoissonEpinet | ConvexEpinet | None


class Epinets(eqx.Module):
    """One epinet per learned part, in the layout of `Blocks`; known parts have none."""

    energy: tuple[AnyEpinet, ...]
    entropy: tuple[AnyEpinet, ...]
    poisson: tuple[AnyEpinet, ...]
    dissipation: tuple[AnyEpinet, ...]


class SPENN(AbstractMethod):
    """A family of admissible vector fields, one per index `z >= 0`."""

    base: Blocks
    epinets: Epinets
    law: AbstractIndex
    amplitude: Float[Array, ""]
    dimension: int = eqx.field(static=True)
    centred: bool = eqx.field(static=True)

    @property
    def domain(self):
        """The domain of the base."""
        return self.base.domain

    def draw(self, n: int, *, key: PRNGKeyArray) -> Float[Array, "n k"]:
        """Indices of `n` realisations."""
        return self.law.draw((int(n), self.dimension), key=key)

    def realise(self, index: Index) -> Generic:
        """The admissible vector field of one index."""
        index = _refuse_negative(index)
        centred = index - self.law.mean if self.centred else index

        def perturbed(name) -> Any:
            pairs = zip(getattr(self.base, name), getattr(self.epinets, name), strict=True)
            return tuple(_perturb(p, e, index, centred, self.amplitude) for p, e in pairs)

        every = {name: perturbed(name) for name in BLOCKS}
        return Generic(Blocks(**every, domain=self.base.domain))


def _refuse_negative(index: Index) -> Index:
    """A negative index would break convexity: an error where it can be seen, NaN under a trace."""
    if not isinstance(index, jax.core.Tracer) and np.any(np.asarray(index) < 0):
        raise ValueError("the index of a realisation must not be negative: convexity needs z >= 0.")
    return jnp.where(index < 0, jnp.nan, index)


def _perturb(part, epinet, index, centred, amplitude):
    """A part with its epinet at one index: again a part of the same kind."""
    match part, epinet:
        case _, None:
            return part
        case LearnedPotential(), Epinet():
            network = PerturbedMLP(part.network, epinet, centred, amplitude)
            return LearnedPotential(network, part.reads)
        case LearnedPoisson(), PoissonEpinet():
            network = PerturbedMLP(part.network, epinet.network, centred, amplitude)
            return LearnedPoisson(network, part.tensor + amplitude * epinet.tensor(centred))
        case LearnedDissipation(), ConvexEpinet():
            return LearnedDissipation(
                PerturbedPICNN(part.network, epinet, index, centred, amplitude)
            )
        case _:
            raise TypeError(f"no {type(epinet).__name__} fits a {type(part).__name__}.")


def attach(
    base: Blocks,
    law: AbstractIndex,
    shape: Shape,
    *,
    amplitude: Float[ArrayLike, ""],
    centred: bool = True,
    key: PRNGKeyArray,
) -> SPENN:
    """Attach fresh epinets to every learned part of a base."""

    def epinet(part, key):
        match part:
            case LearnedPotential():
                return Epinet.of(part.network, shape, key=key)
            case LearnedPoisson():
                network_key, tensor_key = split(key, 2)
                return PoissonEpinet(
                    Epinet.of(part.network, shape, key=network_key),
                    GlobalEpinet(part.tensor, shape.dimension, key=tensor_key),
                )
            case LearnedDissipation():
                return ConvexEpinet(part.network, shape, key=key)
            case _:
                return None

    keys = split(key, len(BLOCKS))
    epinets = Epinets(
        *(
            tuple(epinet(p, jax.random.fold_in(k, i)) for i, p in enumerate(getattr(base, name)))
            for name, k in zip(BLOCKS, keys, strict=True)
        )
    )
    return SPENN(base, epinets, law, jnp.asarray(amplitude, float), shape.dimension, centred)


def trainable(model: SPENN) -> SPENN:
    """Tree of booleans: true for the learnable branches alone. Base and priors stay as they are."""
    mask = jax.tree.map(lambda _: False, model)

    def branches(tree):
        found = [
            e
            for e in jax.tree.leaves(tree.epinets, is_leaf=_has_learnable_branch)
            if _has_learnable_branch(e)
        ]
        gains = [
            leaf
            for e in found
            if isinstance(e, ConvexEpinet)
            for leaf in (e.gain, e.local_gain.learn)
        ]
        return [e.learn for e in found] + gains

    return eqx.tree_at(
        branches, mask, replace=[jax.tree.map(eqx.is_inexact_array, b) for b in branches(model)]
    )


def _has_learnable_branch(node) -> bool:
    return isinstance(node, (Epinet, ConvexEpinet, GlobalEpinet))
