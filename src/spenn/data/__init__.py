"""Data as users bring them."""

from ._agreement import agreeing as agreeing
from ._agreement import differing as differing
from ._read import read as read
from ._trajectories import Trajectories as Trajectories
from ._trajectories import check_names as check_names
from ._trajectories import concatenate as concatenate
from ._write import write as write
