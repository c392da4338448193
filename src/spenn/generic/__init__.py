"""GENERIC: blocks to admissible velocity."""

from ._assembly import degenerate_operator as degenerate_operator
from ._assembly import irreversible as irreversible
from ._assembly import restricted_operator as restricted_operator
from ._assembly import rows_without as rows_without
from ._assembly import velocity as velocity
from ._assembly import without as without
from ._blocks import AbstractDissipation as AbstractDissipation
from ._blocks import AbstractPoisson as AbstractPoisson
from ._blocks import AbstractPotential as AbstractPotential
from ._blocks import Blocks as Blocks
from ._blocks import LearnedDissipation as LearnedDissipation
from ._blocks import LearnedPoisson as LearnedPoisson
from ._blocks import LearnedPotential as LearnedPotential
from ._blocks import learned_dissipation as learned_dissipation
from ._blocks import learned_poisson as learned_poisson
from ._blocks import learned_potential as learned_potential
from ._coordinates import Coordinates as Coordinates
from ._known import KnownDissipation as KnownDissipation
from ._known import KnownPoisson as KnownPoisson
from ._known import KnownPotential as KnownPotential
from ._method import AbstractMethod as AbstractMethod
from ._method import Deterministic as Deterministic
from ._model import Generic as Generic
from ._model import Rates as Rates
