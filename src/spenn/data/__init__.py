"""Data as users bring them."""

from ._trajectories import Trajectories as Trajectories
from ._trajectories import concatenate as concatenate
