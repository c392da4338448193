"""Epinets: one network, a family of realisations."""

from ._epinet import ConvexEpinet as ConvexEpinet
from ._epinet import Epinet as Epinet
from ._epinet import GlobalEpinet as GlobalEpinet
from ._epinet import PerturbedMLP as PerturbedMLP
from ._epinet import PerturbedPICNN as PerturbedPICNN
from ._epinet import Shape as Shape
from ._index import INDICES as INDICES
from ._index import AbstractIndex as AbstractIndex
from ._index import NonNegative as NonNegative
from ._index import Normal as Normal
from ._priors import CONVEX_SHARE as CONVEX_SHARE
from ._priors import scale_priors as scale_priors
from ._spenn import SPENN as SPENN
from ._spenn import Epinets as Epinets
from ._spenn import PoissonEpinet as PoissonEpinet
from ._spenn import attach as attach
from ._spenn import trainable as trainable
