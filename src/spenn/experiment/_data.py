"""The data of a run: the paper's three sets, and one out of distribution."""

from dataclasses import dataclass

import jax
import numpy as np

from ..data import Trajectories, concatenate
from ..forecast import Diverged, Evaluation, Summary
from ..systems import System, simulate
from ._config import RunConfig


@dataclass(frozen=True)
class RunData:
    """Training data, and all trajectories to forecast in one list."""

    train: Trajectories
    calibration: Trajectories
    test: Trajectories
    outside: Trajectories

    @property
    def forecast(self) -> Trajectories:
        """Calibration, test and out-of-distribution trajectories: one set of chunks for all."""
        return concatenate(self.calibration, self.test, self.outside)

    def parts(self, summary: Summary) -> tuple[Summary, ...]:
        """Split a summary of `forecast` as the data are split."""
        edges = np.cumsum([len(self.calibration), len(self.test)])
        pieces = jax.tree.map(lambda a: np.split(a, edges), summary)
        leaf = lambda node: isinstance(node, list)  # noqa: E731
        return tuple(jax.tree.map(lambda p, i=i: p[i], pieces, is_leaf=leaf) for i in range(3))

    def audited(self, evaluation: Evaluation, inside: bool) -> tuple[Summary, list[Diverged]]:
        """What an audit needs of trajectories drawn as the training data were, or of the others."""
        edge = len(self.calibration) + len(self.test)
        rows = slice(None, edge) if inside else slice(edge, None)
        summary = jax.tree.map(lambda a: a[rows], evaluation.summary)
        return summary, [d for d in evaluation.diverged if (d.trajectory < edge) == inside]


def make_data(system: System, config: RunConfig) -> RunData:
    """Reference data of a run: the paper's sets and one out of distribution."""
    rng = np.random.default_rng(config.seed)
    inside = system.draw(rng, sum(system.split))
    outside = system.draw_outside(rng, config.outside)
    everything = simulate(system, np.concatenate([inside, outside]), config.reference)
    return RunData(*everything.split(*system.split, config.outside))
