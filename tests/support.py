"""Random models, and the two laws as numbers."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from spenn.epinet import INDICES, attach
from spenn.generic import (
    Blocks,
    Generic,
    LearnedPoisson,
    Tensor,
    irreversible,
    learned_dissipation,
    learned_poisson,
    learned_potential,
    without,
)
from spenn.networks import Tensor
