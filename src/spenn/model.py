"""What a user holds: a fitted model in the user's units, and its forecasts."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from . import __version__
from .calibrate import Conformal
from .config import FitConfig
from .data import Trajectories
from .devices import collect, share_out
from .epinet import SPENN
from .forecast import (
    Diverged,
    driving,
    ensemble,
    evaluate,
    first_lost,
    list_diverged,
    spread,
)
from .generic import AbstractMethod, Blocks, Coordinates, Deterministic
from .integrate import AbstractIntegrator, divided
from .integrate import integrator as by_name
from .laws import LawCheck, check_laws


@dataclass(frozen=True, eq=False)
class Calibration:
    """Conformal scores, and the times they were made at, counted from the first record."""

    times: np.ndarray
    conformal: Conformal

    def on(self, times: Float[np.ndarray, " time"]) -> Conformal:
        """Scores at all but the first of some times: between records linear, up to the last one."""
        elapsed, known = times[1:] - times[0], self.times[1:]
        slack = 1e-9 * known[-1]  # what rounding may add to a time
        if elapsed[-1] > known[-1] + slack:
            raise ValueError(
                f"intervals are calibrated up to {known[-1]:g} after the first record, and the "
                f"forecast goes on to {elapsed[-1]:g}: calibrate on longer trajectories."
            )
        after = np.clip(np.searchsorted(known, elapsed - slack), 0, len(known) - 1)
        before = np.maximum(after - 1, 0)
        length = np.where(after > before, known[after] - known[before], 1)
        share = np.clip((elapsed - known[before]) / length, 0, 1)[:, None]
        scores = np.asarray(self.conformal.scores)
        earlier, later = scores[:, before], scores[:, after]
        with np.errstate(invalid="ignore"):  # infinite scores
            between = (1 - share) * earlier + share * later
        at_record = np.abs(elapsed - known[after])[:, None] <= slack
        scores = np.where(at_record, later, np.where(share == 0, earlier, between))
        maxima = np.asarray(self.conformal.maxima)[:, after]
        return Conformal(jnp.asarray(scores), jnp.asarray(maxima))


@dataclass(frozen=True)
class Provenance:
    """Where a model comes from: seed, versions, and digests of the trajectories it learned from.

    `contradicted` names the variables whose given derivatives gave way to those of their states.
    """

    seed: int = 0
    spenn: str = __version__
    jax: str = jax.__version__
    trajectories: tuple[str, ...] = ()
    contradicted: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Forecast:
    """Sampled trajectories from one initial state.

    `samples` (sample, time, variable) and `indices` (sample, index) without the diverged ones;
    `diverged` lists those, with the record where each left the finite numbers; `free` lists the
    entries of a state that are not prescribed.
    """

    times: np.ndarray
    names: tuple[str, ...]
    samples: np.ndarray
    indices: np.ndarray
    diverged: tuple[Diverged, ...]
    calibration: Calibration | None
    free: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Mean over samples (time, variable)."""
        return self.samples.mean(0)

    @property
    def std(self) -> np.ndarray:
        """Standard deviation over samples (time, variable)."""
        return (self.samples - self.samples[:1]).std(0)

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Calibrated interval of every entry: each holds with the given probability."""
        return self._bounds(lambda conformal, *forecast: conformal.interval(*forecast, level))

    def band(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Calibrated band that holds the whole trajectory with the given probability."""
        return self._bounds(lambda conformal, *forecast: conformal.band(*forecast, level))

    def _bounds(self, around):
        if self.calibration is None:
            raise ValueError("the model is not calibrated: call model.calibrate(data) first.")
        forecast = np.s_[1:, self.free]
        samples = self.samples[:, *forecast]
        conformal = self.calibration.on(self.times)
        bounds = around(conformal, jnp.asarray(samples.mean(0)), spread(samples))
        # What is given, as the initial state, has an interval without width.
        lower, upper = self.mean.copy(), self.mean.copy()
        lower[forecast], upper[forecast] = (np.asarray(b) for b in bounds)
        return lower, upper


@dataclass(frozen=True, eq=False)
class Model:
    """An admissible model, or a family of them, of one system in the user's units.

    Made by `spenn.fit` or `spenn.load`. Immutable: `calibrate` returns a new one.
    """

    names: tuple[str, ...]
    coordinates: Coordinates
    method: AbstractMethod
    config: FitConfig
    calibration: Calibration | None = None
    units: tuple[str, ...] = ()
    time_unit: str = ""
    provenance: Provenance = Provenance()
    longest_step: float | None = None
    """Of forecasts, in the user's time; without one, one step leads from each time to the next."""

    @classmethod
    def of(
        cls,
        train: Trajectories,
        seed: int,
        coordinates: Coordinates,
        method: AbstractMethod,
        config: FitConfig,
        contradicted: tuple[str, ...] = (),
    ) -> "Model":
        """A model that was fitted to some trajectories."""
        return cls(
            tuple(train.names),
            coordinates,
            method,
            config,
            units=tuple(train.units),
            time_unit=train.time_unit,
            provenance=Provenance(seed, trajectories=train.digests, contradicted=contradicted),
            longest_step=train.typical_step,
        )

    @property
    def blocks(self) -> Blocks:
        """The blocks of the base; those of all members, for an ensemble."""
        blocks = getattr(self.method, "base", None)
        if not isinstance(blocks, Blocks):
            raise ValueError(f"a {type(self.method).__name__} has no blocks of its own.")
        return blocks

    @property
    def base(self) -> "Model":
        """The deterministic model inside."""
        if not isinstance(self.method, Deterministic | SPENN):
            raise ValueError(f"a {type(self.method).__name__} has no base.")
        return replace(self, method=Deterministic(self.blocks), calibration=None)

    @property
    def prior_scale(self) -> float:
        """Relative size of the perturbations before training, `w`; 0 for a deterministic model."""
        return float(self.method.amplitude) if isinstance(self.method, SPENN) else 0.0

    def with_prior_scale(self, prior_scale: float) -> "Model":
        """The same epinets turned up or down; every realisation stays admissible."""
        amplitude = jnp.asarray(prior_scale, float)
        method = eqx.tree_at(lambda m: m.amplitude, self.method, amplitude)
        return replace(self, method=method, calibration=None)

    def draw(self, n: int, seed: int = 0) -> Float[Array, "n k"]:
        """Indices of `n` realisations."""
        if n < 1:
            raise ValueError(f"the number of samples must be at least 1; it is {n}.")
        return self.method.draw(n, key=jax.random.key(seed))

    def energy(self, x: Float[ArrayLike, " d"], z: Float[ArrayLike, " k"]) -> Float[Array, ""]:
        """Energy of one state in the realisation of one index."""
        return self.method.realise(jnp.asarray(z)).energy(self._scaled(x))

    def entropy(self, x: Float[ArrayLike, " d"], z: Float[ArrayLike, " k"]) -> Float[Array, ""]:
        """Entropy of one state in the realisation of one index."""
        return self.method.realise(jnp.asarray(z)).entropy(self._scaled(x))

    def velocity(self, x: Float[ArrayLike, " d"], z: Float[ArrayLike, " k"]) -> Float[Array, " d"]:
        """Velocity of one state in the realisation of one index."""
        velocity = self.method.realise(jnp.asarray(z)).velocity(self._scaled(x))
        return self.coordinates.unscaled_velocity(velocity)

    def calibrate(
        self,
        data: Trajectories,
        samples: int = 500,
        seed: int = 1,
        integrator: str | AbstractIntegrator = "rk4",
    ) -> "Model":
        """Calibrate forecasts on trajectories that were not used for training."""
        indices, data = self.draw(samples, seed), data.on_one_grid()
        chosen = self.integrator_for(data.times, integrator)
        every = evaluate(self.method, self.coordinates, data, indices, integrator=chosen)
        summary = every.summary
        free = self.method.domain.free(data.states.shape[-1])
        truth = jnp.asarray(data.states[:, 1:, free], float)
        conformal = Conformal.fit(jnp.asarray(summary.mean), jnp.asarray(summary.std), truth)
        return replace(self, calibration=Calibration(data.times - data.times[0], conformal))

    def forecast(
        self,
        x0: Float[ArrayLike, " d"],
        times: ArrayLike,
        samples: int = 500,
        seed: int = 1,
        prescribed: Float[ArrayLike, "time prescribed"] | None = None,
        integrator: str | AbstractIntegrator = "rk4",
    ) -> Forecast:
        """Sample trajectories from one initial state, in steps no longer than `longest_step`.

        The integrator is one of `spenn.integrate`, or the name of one: docs/integrators.md.
        Where entries are prescribed, as at the ends of a bar, `prescribed` holds their values.
        """
        times, x0 = np.asarray(times, np.float64), np.asarray(x0, np.float64)
        if x0.shape != (len(self.names),) or not np.all(np.isfinite(x0)):
            raise ValueError(f"x0 must hold {len(self.names)} finite numbers, for {self.names}.")
        if times.ndim != 1 or times.size < 2 or not np.all(np.diff(times) > 0):
            raise ValueError("times must be at least two numbers, strictly increasing.")
        indices = self.draw(samples, seed)
        drive = self._drive(x0, times, prescribed)
        own = share_out(indices)
        chosen = self.integrator_for(times, integrator)
        (chunk,) = ensemble(
            self.method, self.coordinates, x0[None], times, own, drive, integrator=chosen
        )
        states, lost = collect((chunk.states[0], first_lost(chunk)[0]), samples)
        diverged = list_diverged(lost[None])
        keep = np.setdiff1d(np.arange(samples), [d.sample for d in diverged])
        if keep.size == 0:
            raise ValueError(
                f"all samples diverged, the first at record {min(d.step for d in diverged)}."
            )
        free, kept = self.method.domain.free(x0.size), np.asarray(states)[keep]
        kept[:, 0, free] = x0[free]  # as given, without the rounding of scaled coordinates
        return Forecast(
            times,
            self.names,
            kept,
            np.asarray(indices)[keep],
            diverged,
            self.calibration,
            free,
        )

    def integrator_for(
        self, times: Float[np.ndarray, " time"], integrator: str | AbstractIntegrator = "rk4"
    ) -> AbstractIntegrator:
        """An integrator, or the one of a name, that takes steps no longer than `longest_step`.

        Those that find their steps themselves stay as they are.
        """
        unit = float(self.coordinates.on_host().time_unit)
        longest = None if self.longest_step is None else self.longest_step / unit
        return divided(by_name(integrator), times / unit, longest)

    def check(
        self,
        states: Float[ArrayLike, "n d"] | None = None,
        pairs: int = 100_000,
        seed: int = 0,
        report: Callable[[int], None] = lambda pairs: None,
    ) -> LawCheck:
        """Audit both laws at pairs of a state and an index, in double precision.

        States are those given, in turn, or random ones that spread twice as far as the data do.
        """
        scaled = len(self.names)
        if states is not None:
            states = np.asarray(states, np.float64)
            if states.ndim != 2 or states.shape[1] != scaled or not states.size:
                raise ValueError(f"states must be rows of {scaled} numbers, for {self.names}.")
            scaled = self.coordinates.on_host().scaled(states)
        return check_laws(self.method, scaled, pairs, seed, report)

    def save(self, path: str | Path) -> None:
        """Write the model to one file, atomically."""
        from .files import save_model

        save_model(self, Path(path))

    def export(self, path: str | Path) -> None:
        """Write velocity, energy and entropy as one program that runs without spenn.

        `jax.export.deserialize(bytes).call(x, z)` takes states (n, d) and indices (n, k).
        """
        from .export import export_velocity

        export_velocity(self, Path(path))

    def _drive(self, x0, times, prescribed):
        where = list(self.method.domain.prescribed)
        if not where:
            return None
        values = np.asarray(prescribed if prescribed is not None else np.nan, np.float64)
        if values.shape != (len(times), len(where)) or not np.all(np.isfinite(values)):
            raise ValueError(
                f"prescribed must hold finite numbers of shape {(len(times), len(where))}, "
                f"for {[self.names[i] for i in where]} at every time."
            )
        states = np.tile(x0, (1, len(times), 1))
        states[0][:, where] = values
        data = Trajectories(times, states, names=self.names)
        return driving(self.method.domain, self.coordinates, data)

    def _scaled(self, x):
        if isinstance(x, jax.Array):
            return self.coordinates.scaled(x)
        return jnp.asarray(self.coordinates.on_host().scaled(np.asarray(x)), float)
