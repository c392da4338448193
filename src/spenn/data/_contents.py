"""What a file of trajectories holds, before anything is made of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ._trajectories import Trajectories

ALWAYS_ALLOWED = 64 * 2**20
LARGEST_GAIN = 100
LONGEST_UNIT = 40
LARGEST_NUMBER = 1e100  # the squares of larger ones are no floats


class Refused(ValueError):
    """One sentence for the user, in the midst of libraries that raise what they like."""


class Contents(NamedTuple):
    """Arrays and words of one file, laid out as `Trajectories` takes them."""

    kind: str
    """NetCDF, HDF5, NPZ or CSV."""
    times: Any
    states: Any
    derivatives: Any = None
    names: Sequence[str] = ()
    units: Sequence[str] = ()
    time_unit: str = ""

    def trajectories(self) -> Trajectories:
        """The same with all values checked, and derivatives estimated where none are given."""
        for unit in (*self.units, self.time_unit):
            if len(unit) > LONGEST_UNIT or not unit.isprintable():
                raise ValueError(
                    f"the unit {unit[:LONGEST_UNIT]!r} is no plain word: use letters, digits and "
                    f"the like, {LONGEST_UNIT} at most."
                )
        with np.errstate(all="ignore"):  # what is not finite is refused
            data = Trajectories(
                self.times, self.states, self.derivatives, self.names, self.units, self.time_unit
            )
        for name in ("times", "states", "derivatives"):
            if np.nanmax(np.abs(getattr(data, name))) > LARGEST_NUMBER:
                raise ValueError(f"{name} reach beyond {LARGEST_NUMBER:g}: choose other units.")
        return data


def check_size(path: Path, wanted: int) -> None:
    """Refuse what would take far more memory than the file can fill: look before you allocate."""
    held = path.stat().st_size
    if wanted > max(ALWAYS_ALLOWED, LARGEST_GAIN * held):
        raise Refused(
            f"{path} would take {wanted / 1e9:.2g} GB of memory, but is a file of {held} bytes: it "
            "is damaged, or its trajectories differ too much in length."
        )


def padded_size(lengths: Sequence[int], columns: int) -> int:
    """Bytes of trajectories that are filled up to the longest."""
    return len(lengths) * max(lengths, default=0) * columns * np.dtype(np.float64).itemsize
