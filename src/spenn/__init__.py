"""Learn GENERIC dynamics from data, with uncertainty that keeps both laws of thermodynamics."""

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .config import FitConfig as FitConfig
    from .data import Trajectories as Trajectories
    from .data import read as read
    from .data import write as write
    from .declared import read_physics as read_physics
    from .files import load as load
    from .fitting import add_uncertainty as add_uncertainty
    from .fitting import fit as fit
    from .fitting import fit_deterministic as fit_deterministic
    from .model import Forecast as Forecast
    from .model import Model as Model
    from .physics import Physics as Physics
    from .systems import simulate as simulate

try:
    __version__ = version("spenn")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0.1.0+source"

# Loaded on first use, so that `spenn --help` answers without waiting for JAX.
_PUBLIC = {
    "FitConfig": ".config",
    "Forecast": ".model",
    "Model": ".model",
    "Physics": ".physics",
    "Trajectories": ".data",
    "add_uncertainty": ".fitting",
    "fit": ".fitting",
    "fit_deterministic": ".fitting",
    "load": ".files",
    "read": ".data",
    "read_physics": ".declared",
    "simulate": ".systems",
    "write": ".data",
}
__all__ = [
    "FitConfig",
    "Forecast",
    "Model",
    "Physics",
    "Trajectories",
    "add_uncertainty",
    "fit",
    "fit_deterministic",
    "load",
    "read",
    "read_physics",
    "simulate",
    "write",
]


def __getattr__(name: str):
    if name not in _PUBLIC:
        raise AttributeError(f"module 'spenn' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name], __name__), name)
