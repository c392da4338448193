"""Data as users bring them."""

from ._trajectories import Trajectories as Trajectories
