"""Function classes that keep a promise."""

from ._activation import product as product
from ._activation import softplus as softplus
from ._convex import PICNN as PICNN
from ._convex import ConvexFeatures as ConvexFeatures
from ._convex import ConvexLayer as ConvexLayer
from ._convex import NonNegative as NonNegative
from ._mlp import MLP as MLP
from ._mlp import Linear as Linear
from ._parallel import parallel_mlps as parallel_mlps
from ._parallel import parallel_picnns as parallel_picnns
from ._random import normal as normal
from ._random import split as split
from ._tanh import TanhMLP as TanhMLP
