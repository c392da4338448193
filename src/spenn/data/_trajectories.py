"""Trajectories: what a user brings and what every stage passes on."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.interpolate import CubicSpline


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Trajectories of one system on one time grid, in the user's units.

    **Arguments:** `times` (time,), strictly increasing; `states` (trajectory, time, variable);
    `derivatives` of the same shape, or `None` to take them from a cubic spline through the states;
    `names`, one per variable.
    """

    times: np.ndarray
    states: np.ndarray
    derivatives: np.ndarray = field(default=None)  # type: ignore[assignment]
    names: Sequence[str] = ()

    def __post_init__(self):
        """Check shapes and values; fill in derivatives and names."""
        times, states = (np.asarray(a, dtype=np.float64) for a in (self.times, self.states))
        if states.ndim != 3:
            raise ValueError(
                "states must have the axes (trajectory, time, variable); "
                f"they have shape {states.shape}."
            )
        if 0 in states.shape:
            raise ValueError(f"states are empty: they have shape {states.shape}.")
        _check_finite(times=times, states=states)
        if times.shape != (states.shape[1],):
            raise ValueError(
                f"times must hold one number per record: {states.shape[1]} records, "
                f"times of shape {times.shape}."
            )
        if times.size < 2 or not np.all(np.diff(times) > 0):
            raise ValueError("times must hold at least two records and be strictly increasing.")
        if self.derivatives is None:
            derivatives = CubicSpline(times, states, axis=1).derivative()(times)
        else:
            derivatives = np.asarray(self.derivatives, dtype=np.float64)
        if derivatives.shape != states.shape:
            raise ValueError(
                f"derivatives have shape {derivatives.shape} and states {states.shape}: "
                "they must agree."
            )
        _check_finite(derivatives=derivatives)
        names = tuple(self.names) or tuple(f"x{i + 1}" for i in range(states.shape[2]))
        if len(names) != states.shape[2] or len(set(names)) != len(names):
            raise ValueError(f"names must be {states.shape[2]} different words; they are {names}.")
        for key, value in zip(
            ("times", "states", "derivatives", "names"),
            (times, states, derivatives, names),
            strict=True,
        ):
            object.__setattr__(self, key, value)

    def __len__(self) -> int:
        """Number of trajectories."""
        return len(self.states)

    def __getitem__(self, which: slice | np.ndarray) -> "Trajectories":
        """Some of the trajectories."""
        return replace(self, states=self.states[which], derivatives=self.derivatives[which])

    def split(self, *sizes: int, seed: int | None = None) -> tuple["Trajectories", ...]:
        """Disjoint sets of whole trajectories, in order or, with a seed, at random.

        **Example:** `train, calibration, test = data.split(60, 50, 40, seed=0)`
        """
        if sum(sizes) > len(self) or any(size < 1 for size in sizes):
            raise ValueError(
                f"cannot split {len(self)} trajectories into sets of {list(sizes)}: "
                "each needs at least one."
            )
        order = np.arange(len(self))
        if seed is not None:
            order = np.random.default_rng(seed).permutation(len(self))
        edges = np.cumsum((0, *sizes))
        return tuple(self[order[a:b]] for a, b in itertools.pairwise(edges))


def concatenate(*parts: Trajectories) -> Trajectories:
    """Trajectories of several sets on one time grid, in order."""
    states, derivatives = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("states", "derivatives")
    )
    return replace(parts[0], states=states, derivatives=derivatives)


def _check_finite(**arrays: np.ndarray) -> None:
    for name, array in arrays.items():
        if not np.all(np.isfinite(array)):
            place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise ValueError(f"{name} hold a value that is not finite, at position {place}.")
