"""Two stages of training with SOAP."""

from ._loop import CHUNK as CHUNK
from ._loop import Samples as Samples
from ._losses import base_loss as base_loss
from ._losses import epinet_loss as epinet_loss
from ._losses import make_samples as make_samples
from ._scale import CLOSE as CLOSE
from ._scale import PILOT as PILOT
from ._scale import RANGE as RANGE
from ._scale import correction as correction
from ._soap import scale_by_soap as scale_by_soap
from ._soap import soap as soap
from ._stages import BLOCKS as BLOCKS
from ._stages import Physics as Physics
from ._stages import base_steps as base_steps
from ._stages import fit_base as fit_base
from ._stages import fit_epinet as fit_epinet
