"""Compile the second half of a run while the first half trains.

An accelerator leaves the host idle during training, and most of a short run is compilation. So what
comes after the base (stage two, forecasts, scores) is run once beforehand, in threads, with the
right shapes and random weights: a few steps of training, and compilation alone for the rollouts,
which would keep the device busy. The results are thrown away; the compiled programs stay. A base
that turns out to need several steps a record has its forecasts compiled later.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import jax
import jax.numpy as jnp

from ..fitting import FEWEST_JUDGES, VALIDATION_SAMPLES, hold_out, judges
from ..forecast import rehearse
from ..generic import Coordinates, Deterministic
from ..integrate import RK4, Divided
from ..integrate import integrator as by_name
from ..physics import Physics
from ..systems import SYSTEMS
from ..training import CHUNK, PILOT, fit_epinet, make_samples
from ._config import RunConfig
from ._data import RunData


class Rehearsal:
    """`start` it when the device is at work and the host idle; `wait` for it before the real thing.

    Without an accelerator it does nothing: training needs the host itself. Nor does it with
    several, whose programs are others. Baselines are not rehearsed.
    """

    def __init__(self, config: RunConfig, data: RunData):
        """Rehearse one run on its own data."""
        self.config, self.data = config, data
        self.methods = [method for method in config.methods if method.startswith("spenn-")]
        self.pool = ThreadPoolExecutor()
        self.jobs: list[Future] = []

    def start(self) -> None:
        """Start, once."""
        alone = jax.device_count() == 1 and jax.default_backend() != "cpu"
        if not self.jobs and self.methods and alone:
            self.jobs.append(self.pool.submit(self._start, self.config, self.data))

    def wait(self) -> None:
        """Wait until everything is compiled."""
        for job in self.jobs:  # the first one adds the others
            job.result()
        self.pool.shutdown()

    def _start(self, config: RunConfig, data: RunData) -> None:
        index = self.methods[0].removeprefix("spenn-")
        fit = replace(config.fit, index=index, epinet_steps=CHUNK)
        domain = SYSTEMS[config.system].domain()
        learning, validation = hold_out(data.train, fit, config.seed)
        size = len(data.train.names)
        coordinates = Coordinates.identity(size)
        key = jax.random.key(0)
        base = Physics(domain=domain).blocks(coordinates, size, fit.width, fit.depth, key=key)
        samples = make_samples(learning, coordinates, fit, domain)
        untrained = fit_epinet(base, samples, PILOT, replace(fit, epinet_steps=0), key=key)
        many, few = (untrained.draw(n, key=key) for n in (config.samples, VALIDATION_SAMPLES))

        def submit(function, *arguments, **options):
            self.jobs.append(self.pool.submit(function, *arguments, **options))

        submit(fit_epinet, base, samples, PILOT, fit, key=key)
        chosen = by_name(config.integrator)
        submit(rehearse, untrained, coordinates, data.forecast, many, chosen)
        judged = judges(learning, validation, domain.cells)
        submit(rehearse, untrained, coordinates, judged, few)
        submit(rehearse, Deterministic(base), coordinates, judged, jnp.zeros((1, 0)))
        divided = Divided(RK4, jnp.ones(()))
        first = learning[:FEWEST_JUDGES]
        submit(rehearse, Deterministic(base), coordinates, first, jnp.zeros((1, 0)), divided)
        exact = SYSTEMS[config.system].exact()
        for blocks in (base, exact.blocks):
            alone = Deterministic(blocks)
            submit(rehearse, alone, coordinates, data.test, jnp.zeros((1, 0)), chosen)
