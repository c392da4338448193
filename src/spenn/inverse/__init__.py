"""Inverse problems: unknown constants of an equation, and how sure to be of them."""

from ._base import fit_base as fit_base
from ._benchmark import BENCHMARKS as BENCHMARKS
from ._epinet import Posterior as Posterior
from ._epinet import attach as attach
from ._hmc import Chains as Chains
from ._hmc import HMCConfig as HMCConfig
from ._hmc import Sampler as Sampler
from ._problem import Measurements as Measurements
from ._problem import Parameter as Parameter
from ._problem import Problem as Problem
from ._problem import derivatives as derivatives
from ._setting import Fit as Fit
from ._setting import InverseConfig as InverseConfig
