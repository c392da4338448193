"""Entries and variables: a variable is one entry of a state, or a field of many."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from ..data import Trajectories
from ..generic import AbstractDomain


@dataclass(frozen=True, eq=False)
class Layout:
    """Names of the variables, and the entries that are forecast of each."""

    names: tuple[str, ...]
    free: Int[np.ndarray, " free"]
    variables: Int[np.ndarray, " free"]
    places: Float[np.ndarray, " free"] | None = None
    """Where the entries of fields lie, as a share of the length."""

    @classmethod
    def of(cls, names: tuple[str, ...], domain: AbstractDomain) -> "Layout":
        """Layout of states with these variables on a domain."""
        size = domain.size(len(names))
        free = domain.free(size)
        places = domain.places(size)
        places = None if places is None else places[free]
        return cls(names, free, domain.variables(size)[free], places)

    @property
    def extended(self) -> bool:
        """Whether variables are fields."""
        return len(self.variables) > len(self.names)

    @property
    def shown(self) -> Int[np.ndarray, " variable"]:
        """The middle entry of each variable, among those that are forecast."""
        places = (np.flatnonzero(self.variables == i) for i in range(len(self.names)))
        return np.array([place[len(place) // 2] for place in places])

    def forecast(self, data: Trajectories) -> Float[np.ndarray, "trajectory time free"]:
        """The part of the data that forecasts are compared with: nothing that is prescribed."""
        return data.states[:, 1:, self.free]

    def mean(self, values: Float[np.ndarray, "*n free"]) -> Float[np.ndarray, "*n variable"]:
        """Mean over the entries of each variable."""
        return np.stack([part.mean(-1) for part in self.split(values)], -1)

    def split(self, values: Float[np.ndarray, "*n free"]) -> list[np.ndarray]:
        """Entries of each variable (*n, entry)."""
        values = np.asarray(values)
        return [values[..., self.variables == i] for i in range(len(self.names))]
