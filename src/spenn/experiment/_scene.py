"""What figures and page are about, apart from the methods: variables and test trajectories."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..data import Trajectories
from ._layout import Layout

FEW, FEW_FIELDS = 12, 4  # trajectories on the page


@dataclass(frozen=True, eq=False)
class Scene:
    """Title, labels, and the first few test trajectories."""

    title: str
    labels: tuple[str, ...]
    time_label: str
    layout: Layout
    times: Float[np.ndarray, " time"]
    truth: Float[np.ndarray, "trajectory time entry"]
    calibration_trajectories: int

    @classmethod
    def of(
        cls,
        title: str,
        labels: tuple[str, ...],
        time_label: str,
        layout: Layout,
        test: Trajectories,
        calibration_trajectories: int,
    ) -> "Scene":
        """The scene of some test trajectories on one grid."""
        truth = test.states[: shown_trajectories(layout, test), :, layout.free]
        return cls(title, labels, time_label, layout, test.times, truth, calibration_trajectories)


def shown_trajectories(layout: Layout, test: Trajectories) -> int:
    """How many test trajectories are shown: few enough for a small page."""
    return min(FEW_FIELDS if layout.extended else FEW, len(test))
