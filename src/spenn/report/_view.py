"""What the figures of a run need, as plain NumPy arrays: importing this brings in no JAX."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class FieldView:
    """One method on the displayed trajectory of a field: one array (time, place) per variable."""

    mean: list[np.ndarray]
    std: list[np.ndarray]
    reach: list[np.ndarray] | None = None
    """Half the width of the calibrated 95 % interval, possibly infinite."""


@dataclass(frozen=True, eq=False)
class MethodView:
    """One method on the test trajectories; `None` where it has nothing to show.

    The first group describes the displayed test trajectory from t = 0 on, the others all of them.
    """

    name: str
    """As in the configuration: 'base', 'spenn-half-normal', 'deep-ensemble', ..."""
    samples: int
    """Sampled models behind each forecast; 1 for a method without uncertainty."""
    mean: np.ndarray
    """(time, variable): mean over the samples."""
    std: np.ndarray
    """(time, variable): standard deviation over the samples."""
    rl2e: np.ndarray
    """(trajectory, variable): relative L2 error of the mean; not finite where it diverged."""
    energy_rate: np.ndarray | None = None
    """(3, time): 2.5 %, 50 % and 97.5 % quantiles over samples of dE/dt, per model time."""
    entropy_rate_min: np.ndarray | None = None
    """(time,): minimum over samples of dS/dt."""
    lower: np.ndarray | None = None
    """(time, variable): lower end of the calibrated 95 % interval, possibly -inf."""
    upper: np.ndarray | None = None
    """(time, variable): upper end of the calibrated 95 % interval, possibly +inf."""
    draws: np.ndarray | None = None
    """(few, time, variable): some of the sampled rollouts."""
    levels: np.ndarray | None = None
    """(level,): nominal coverages in (0, 1), increasing."""
    coverage_raw: np.ndarray | None = None
    """(level, variable): empirical coverage of the samples' own quantiles."""
    coverage_calibrated: np.ndarray | None = None
    """(level, variable): empirical coverage of the calibrated intervals."""
    coverage_simultaneous: np.ndarray | None = None
    """(level,): fraction of trajectories wholly inside the calibrated band."""
    fields: FieldView | None = None
    """The whole fields, where variables are fields; above is their middle alone."""

    def __post_init__(self) -> None:
        time, variable = np.shape(self.mean)
        level = 0 if self.levels is None else len(self.levels)
        few = 0 if self.draws is None else len(self.draws)
        shapes = {
            "std": (time, variable),
            "rl2e": (len(self.rl2e), variable),
            "energy_rate": (3, time),
            "entropy_rate_min": (time,),
            "lower": (time, variable),
            "upper": (time, variable),
            "draws": (few, time, variable),
            "coverage_raw": (level, variable),
            "coverage_calibrated": (level, variable),
            "coverage_simultaneous": (level,),
        }
        for field, shape in shapes.items():
            _check(f"{self.name}: {field}", getattr(self, field), shape)
        if (self.lower is None) != (self.upper is None):
            raise ValueError(f"{self.name}: lower and upper come together, or not at all.")

    @property
    def uncertain(self) -> bool:
        """Whether the method states an uncertainty."""
        return self.samples > 1


@dataclass(frozen=True, eq=False)
class RunView:
    """One run: the displayed test trajectory, and every method on it."""

    title: str
    """What was learned, for a reader: 'Harmonic oscillator in a heat bath'."""
    names: tuple[str, ...]
    """(variable,): short names, 'q'."""
    labels: tuple[str, ...]
    """(variable,): axis labels with units where there are any, 'position q'."""
    times: np.ndarray
    """(time,): from t = 0 on."""
    truth: np.ndarray
    """(time, variable): the displayed test trajectory."""
    calibration_trajectories: int
    """How many trajectories the intervals were calibrated on; 0 for none."""
    floor_rl2e: np.ndarray
    """(variable,): error of the exact physics through the same protocol; NaN if unknown."""
    methods: tuple[MethodView, ...]
    """In the order in which to show them; names differ."""
    time_label: str = "time t"
    """Axis label of time, with its unit where there is one."""
    field_truth: list[np.ndarray] | None = None
    """One array (time, place) per variable, where variables are fields."""

    def __post_init__(self) -> None:
        time, variable = len(self.times), len(self.names)
        _check("labels", self.labels, (variable,))
        _check("truth", self.truth, (time, variable))
        _check("floor_rl2e", self.floor_rl2e, (variable,))
        for method in self.methods:
            _check(f"{method.name}: mean", method.mean, (time, variable))
        if not self.methods or len({m.name for m in self.methods}) < len(self.methods):
            raise ValueError(
                "A run view needs at least one method, and a name of its own for each."
            )


@dataclass(frozen=True, eq=False)
class PageMethod:
    """One method on the page: its forecasts of the shown test trajectories, from t = 0 on."""

    name: str
    """A key of `results["methods"]`."""
    mean: np.ndarray
    """(trajectory, time, entry): mean over the samples."""
    std: np.ndarray | None = None
    """(trajectory, time, entry): standard deviation over them; `None` for one sample."""
    reach: np.ndarray | None = None
    """(level, time, entry): half the width of calibrated intervals over `std`, possibly inf."""
    energy_rate: np.ndarray | None = None
    """(3, time): 2.5 %, 50 % and 97.5 % quantiles over samples of dE/dt, first trajectory."""
    entropy_rate_min: np.ndarray | None = None
    """(time,): minimum over samples of dS/dt, first trajectory."""


@dataclass(frozen=True, eq=False)
class PageView:
    """What `report.html` shows beyond the numbers of `results.json`, which it holds as well.

    A state is a vector of entries. A variable is one of them, or, where it is a field, several
    consecutive ones: those from `starts[i]` up to the next start.
    """

    results: dict
    """The document of `results.json`."""
    title: str
    """What was learned, for a reader: 'Harmonic oscillator in a heat bath'."""
    labels: tuple[str, ...]
    """(variable,): 'position q'; the names are those of `results["floor"]["mae"]`, in order."""
    time_label: str
    """'time t', with its unit where there is one."""
    times: np.ndarray
    """(time,): from t = 0 on."""
    levels: tuple[float, ...]
    """Nominal levels, the same as in `results`."""
    starts: tuple[int, ...]
    """(variable,): first entry of each variable."""
    truth: np.ndarray
    """(trajectory, time, entry): the shown test trajectories, few enough for a small file."""
    methods: tuple[PageMethod, ...]
    """In the order in which to show them."""
    places: tuple[np.ndarray, ...] | None = None
    """For fields: (entry of the variable,) positions, one array per variable."""
    place_label: str = ""
    """'position (mm)'."""


def _check(name: str, value: ArrayLike | None, shape: tuple[int, ...]) -> None:
    if value is not None and np.shape(value) != shape:
        raise ValueError(f"{name} has shape {np.shape(value)}, expected {shape}.")
