"""Other ways to be uncertain, with the same laws: deep ensembles and Monte Carlo dropout."""

from ._dropout import MCDropout as MCDropout
from ._ensemble import DeepEnsemble as DeepEnsemble
from ._fit import fit_dropout as fit_dropout
from ._fit import fit_ensemble as fit_ensemble
