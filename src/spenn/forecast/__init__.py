"""Forecasts: ensembles of rollouts and what is kept of them."""

from ._ensemble import chunk_size as chunk_size
from ._ensemble import driving as driving
from ._ensemble import ensemble as ensemble
from ._summary import LEVELS as LEVELS
from ._summary import Audit as Audit
from ._summary import Diverged as Diverged
from ._summary import Evaluation as Evaluation
from ._summary import Summary as Summary
from ._summary import evaluate as evaluate
from ._summary import first_lost as first_lost
from ._summary import list_diverged as list_diverged
from ._summary import rehearse as rehearse
from ._summary import spread as spread
