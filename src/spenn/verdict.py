"""What a fit amounts to, in plain sentences, on trajectories that were held out of it."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from .calibrate import relative_l2_error
from .data import Trajectories
from .fitting import hold_out
from .forecast import evaluate
from .model import Model

MOST_NAMED = 10  # variables in a sentence


@dataclass(frozen=True)
class Verdict:
    """How well a model does on trajectories it has not learned from."""

    trajectories: int
    errors: dict[str, float]
    """Relative error of each variable, median over trajectories; infinite if it diverges."""
    energy: float
    """How much the learned energy changes along recorded trajectories, over its range in them."""
    entropy: float
    """The largest fall of the learned entropy between records, over its range in them."""
    contradicted: tuple[str, ...] = ()
    """Variables whose given derivatives are not those of their states."""

    @property
    def worst(self) -> str:
        """The variable with the largest error."""
        return max(self.errors, key=lambda name: self.errors[name])

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict in words."""
        several = "trajectories" if self.trajectories > 1 else "trajectory"
        held = f"Of {self.trajectories} {several} held out"
        largest, smallest = self.errors[self.worst], min(self.errors.values())
        if not np.isfinite(largest):
            accuracy = f"{held}, half or more diverge in {self.worst}."
        elif len(self.errors) == 1:
            accuracy = f"{held}, a typical forecast is off by {largest:.1%}."
        else:
            accuracy = (
                f"{held}, a typical forecast is off by {smallest:.2%} to {largest:.2%}; "
                f"the worst variable is {self.worst}."
            )
        found = (
            accuracy,
            f"Energy is learned to {self.energy:.2%} of its range, along the records; the learned "
            f"entropy falls by {self.entropy:.2%} of its range at most.",
        )
        if not self.contradicted:
            return found
        few = self.contradicted[:MOST_NAMED]
        names = ", ".join(few) + (" and others" if len(few) < len(self.contradicted) else "")
        return (
            *found,
            f"The derivatives of {names} are learned from the states, which contradict given ones.",
        )


def judge(model: Model, train: Trajectories) -> Verdict:
    """Judge the base of a model on the trajectories that its training held out."""
    base = model.base
    _, held = hold_out(train, model.config, model.provenance.seed)
    held = held.on_one_grid()
    how = {"required": 0, "integrator": base.integrator_for(held.times)}
    summary = evaluate(base.method, base.coordinates, held, base.draw(1), **how).summary
    energies, entropies = _along(base, held)
    return Verdict(
        len(held),
        dict(zip(model.names, _errors(summary.mean, held.states[:, 1:]), strict=True)),
        _change(energies),
        _fall(entropies),
        model.provenance.contradicted,
    )


def _errors(mean: np.ndarray, truth: np.ndarray) -> np.ndarray:
    known = np.isfinite(truth[..., 0])
    rows = zip(mean, truth, known, strict=True)
    errors = np.stack([np.asarray(relative_l2_error(m[k], t[k])) for m, t, k in rows])
    return np.median(np.where(np.isfinite(errors), errors, np.inf), 0)


def _along(base: Model, data: Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """Energy and entropy (trajectory, time) of recorded states; NaN where there is none."""
    field = base.method.realise(base.draw(1)[0])
    scaled = jnp.asarray(base.coordinates.on_host().scaled(data.states), float)

    @jax.jit
    def values(states):
        return tuple(jax.vmap(jax.vmap(f))(states) for f in (field.energy, field.entropy))

    energies, entropies = values(scaled)
    return np.asarray(energies), np.asarray(entropies)


def _change(energies: np.ndarray) -> float:
    """Largest standard deviation along a trajectory over the range among all records."""
    return float(np.nanmax(np.nanstd(energies, 1)) / _range(energies))


def _fall(entropies: np.ndarray) -> float:
    return float(np.nanmax(np.append(-np.diff(entropies, axis=1), 0)) / _range(entropies))


def _range(values: np.ndarray) -> float:
    return float(np.nanmax(values) - np.nanmin(values)) or 1.0
