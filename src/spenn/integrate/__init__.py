"""Integrators and rollouts."""

from ._adaptive import Adaptive as Adaptive
from ._collocation import Collocation as Collocation
from ._divided import Divided as Divided
from ._divided import divided as divided
from ._integrator import RK4 as RK4
from ._integrator import AbstractIntegrator as AbstractIntegrator
from ._integrator import RungeKutta as RungeKutta
from ._named import INTEGRATORS as INTEGRATORS
from ._named import integrator as integrator
from ._rollout import Drive as Drive
from ._rollout import Laws as Laws
from ._rollout import audited_rollout as audited_rollout
from ._rollout import rollout as rollout
from ._steppers import implicit_midpoint as implicit_midpoint
from ._steppers import rk4 as rk4
