"""Time steppers and rollouts."""

from ._rollout import Drive as Drive
from ._rollout import Laws as Laws
from ._rollout import audited_rollout as audited_rollout
from ._rollout import rollout as rollout
from ._steppers import implicit_midpoint as implicit_midpoint
from ._steppers import rk4 as rk4
