"""Integrators: their order, both laws at steps of any length, and what happens at the edges."""

from dataclasses import replace
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spenn.data import Trajectories
from spenn.forecast import evaluate
from spenn.generic import Coordinates, Deterministic, Generic
from spenn.integrate import (
    INTEGRATORS,
    Adaptive,
    Collocation,
    Divided,
    RungeKutta,
    audited_rollout,
    integrator,
)
from spenn.integrate._integrator import Motion
from spenn.physics import Physics
from spenn.systems import OSCILLATOR, SYSTEMS, simulate
from support import known_blocks, random_blocks, random_spenn

START = np.array([0.3, -0.2, 0.5])
DISCRETE = pytest.mark.parametrize(
    "dtype, stages", [("float32", 2), ("float64", 2), ("float64", 1)], indirect=["dtype"]
)


def _rollout(field, x, steps, chosen, drive=None):
    run = eqx.filter_jit(audited_rollout)
    return run(field, jnp.asarray(x, float), jnp.asarray(steps, float), drive, chosen)


def known_generic(energy, entropy):
    """Canonical motion of the first two entries, without friction."""
    canonical = jnp.zeros((3, 3)).at[0, 1].set(1).at[1, 0].set(-1)
    units = Coordinates.identity(3)
    return Generic(known_blocks(units, energy, entropy, lambda x: canonical, lambda x, y: 0 * y[0]))


def _drift(laws):
    kept = np.asarray(laws.energy - laws.work)
    return np.max(np.abs(kept - kept[0]))


@pytest.mark.parametrize(
    "chosen, order",
    [
        (RungeKutta(), 4),
        (Collocation(1, discrete=False), 2),
        (Collocation(2, discrete=False), 4),
        (Collocation(1), 2),
        (Collocation(2), 4),
    ],
)
def test_order_on_a_learned_model(x64, chosen, order):
    field = Generic(random_blocks(3, gain=(1.0, 1.0), seed=3))
    exact = _rollout(field, START, np.full(400, 0.005), RungeKutta())[0][-1]
    counts = np.array([10, 20, 40])
    # Filled up with steps of length zero, so that it is compiled once.
    steps = [np.where(np.arange(40) < n, 2 / n, 0.0) for n in counts]
    errors = [np.linalg.norm(_rollout(field, START, s, chosen)[0][-1] - exact) for s in steps]
    assert abs(-np.polyfit(np.log(counts), np.log(errors), 1)[0] - order) < 0.3


@DISCRETE
def test_both_laws_of_every_realisation_at_any_step(dtype, stages):
    model = random_spenn(4, 6, 1, gain=(0.8, 0.8))
    indices = model.draw(20, key=jax.random.key(0))
    starts = jax.random.normal(jax.random.key(1), (20, 4))
    eps = jnp.finfo(dtype).eps

    @eqx.filter_jit
    def roll(chosen, step):
        # Random models run off to infinity: up to a time of 3, then steps of length zero.
        steps = jnp.where(jnp.arange(40) * step < 3, step, 0)
        return jax.vmap(lambda z, x: audited_rollout(model.realise(z), x, steps, None, chosen))(
            indices, starts
        )

    for step in (0.02, 0.3, 1.0):
        states, laws = roll(Collocation(stages), jnp.asarray(step))
        assert np.all(np.isfinite(states))
        energy, entropy = np.asarray(laws.energy), np.asarray(laws.entropy)[..., 0]
        drift = np.max(np.abs(energy - energy[:, :1]))
        assert drift <= 20 * eps * (1 + np.abs(energy).max())
        assert np.min(np.diff(entropy, axis=1)) >= -20 * eps * (1 + np.abs(entropy).max())
        assert np.all(laws.sweeps[:, :-1] >= 1)
    if dtype == np.float64:
        other = np.asarray(roll(RungeKutta(), jnp.asarray(1.0))[1].energy)
        assert np.nanmax(np.abs(other - other[:, :1])) > 1000 * drift


@DISCRETE
def test_nothing_happens_at_equilibrium_and_nothing_odd_on_the_way_there(dtype, stages):
    """A damped oscillator comes to rest: increments vanish, and differences are all rounding."""
    field, chosen = OSCILLATOR.exact(), Collocation(stages)
    rest = np.array([0.0, 0.0, 0.7])
    states, laws = _rollout(field, rest, np.full(5, 0.1), chosen)
    np.testing.assert_allclose(states, np.tile(rest, (6, 1)), atol=2 * jnp.finfo(dtype).eps)
    starts = jnp.asarray(OSCILLATOR.draw(np.random.default_rng(0), 20))
    roll = jax.jit(jax.vmap(lambda x: audited_rollout(field, x, jnp.full(600, 0.3), None, chosen)))
    states, laws = roll(starts)
    assert np.max(np.abs(states[:, -1, :2])) < 1e-6
    assert np.max(np.abs(laws.energy - laws.energy[:, :1])) <= 10 * jnp.finfo(dtype).eps
    assert np.min(np.diff(laws.entropy[..., 0], axis=1)) >= -4 * jnp.finfo(dtype).eps


def test_steps_of_length_zero_and_of_unequal_length(x64):
    field = Generic(random_blocks(3, gain=(1.0, 1.0)))
    steps = [0.1, 0.0, 0.02, 0.2, 0.0]
    for chosen in (RungeKutta(), Collocation(1, discrete=False), Collocation(2)):
        states, laws = _rollout(field, START, steps, chosen)
        np.testing.assert_array_equal(states[1], states[2])
        np.testing.assert_array_equal(states[-1], states[-2])
        fine = _rollout(field, START, np.full(320, 0.001), RungeKutta())[0][-1]
        np.testing.assert_allclose(states[-1], fine, atol=1e-3)
        assert np.all(np.isfinite(laws.energy))


@pytest.mark.parametrize("whole", [RungeKutta(), Collocation(2)])
def test_divided_steps_are_shorter_ones(x64, whole):
    field = Generic(random_blocks(3, gain=(1.0, 1.0)))
    # 0.3 / 0.1 is a little more than 3 on a computer.
    states, laws = _rollout(field, START, [0.3, 0.0, 0.15, 0.05], Divided(whole, jnp.array(0.1)))
    short = np.array([0.1, 0.1, 0.1, 0.0, 0.075, 0.075, 0.05])
    records = [0, 3, 4, 6, 7]
    expected, each = _rollout(field, START, short, whole)
    np.testing.assert_allclose(states, expected[jnp.array(records)], rtol=1e-12)
    np.testing.assert_allclose(laws.energy, each.energy[jnp.array(records)], rtol=1e-12)
    most = [np.max(each.sweeps[a:b]) for a, b in pairwise(records)]
    np.testing.assert_array_equal(laws.sweeps[:-1], most)


def test_motion_of_prescribed_entries_during_parts_of_a_step():
    motion = Motion(*np.random.default_rng(0).normal(size=(3, 2)))
    jax.tree.map(np.testing.assert_allclose, motion.during(0.0, 1.0), motion)
    parts = [motion.during(a, b) for a, b in pairwise((0.0, 0.25, 1.0))]
    way = [(start + 4 * halfway + end) / 6 for start, halfway, end in (motion, *parts)]
    np.testing.assert_allclose(way[0], 0.25 * way[1] + 0.75 * way[2])
    np.testing.assert_allclose(parts[0].end, parts[1].start)


@pytest.mark.parametrize("halves, less", [(1, 1), (2, 8)])
def test_shorter_steps_of_a_driven_bar(halves, less):
    """The exact bar, whose waves are short: half the step takes most of the error away."""
    bar = SYSTEMS["viscoplastic"]
    data = simulate(bar, bar.draw(np.random.default_rng(0), 2), "converged")
    exact, units = Deterministic(bar.exact().blocks), Coordinates.identity(data.states.shape[-1])
    chosen = Divided(RungeKutta(), jnp.asarray(bar.dt / halves))
    made = evaluate(exact, units, data, jnp.zeros((1, 0)), integrator=chosen).summary
    free = exact.domain.free(data.states.shape[-1])
    momenta = exact.domain.variables(data.states.shape[-1])[free] == 1
    error = np.abs(made.mean - data.states[:, 1:, free])[..., momenta].mean()
    assert 20 / less < error < 100 / less


def _scaled(system, data):
    """Exact physics in coordinates of order one."""
    physics = Physics(
        system.energy, system.entropy, system.poisson, system.dissipation, (),
        domain=system.domain(),
    )  # fmt: skip
    units = physics.domain.coordinates(*data.records())
    size = data.states.shape[-1]
    return physics.blocks(units, size, 1, 1, key=jax.random.key(0)), units


def test_divided_steps_of_a_bar_count_the_work_of_all_of_them(x64):
    bar = SYSTEMS["viscoplastic"]
    data = simulate(bar, bar.draw(np.random.default_rng(0), 1), "converged")
    few = replace(
        data,
        times=data.times[:8],
        states=data.states[:, :8],
        derivatives=data.derivatives[:, :8],
    )
    blocks, units = _scaled(bar, data)
    chosen = Divided(Collocation(), jnp.asarray(bar.dt / 2 / units.time_unit))
    exact, nothing = Deterministic(blocks), jnp.zeros((1, 0))
    audit = evaluate(exact, units, few, nothing, integrator=chosen).summary.audit
    work = np.max(audit.energy_high) - np.min(audit.energy_low)
    assert work > 0 and np.max(audit.energy_drift) < 1e-12 * work


def test_the_audit_sees_every_part_of_a_divided_step(x64):
    """Energy drifts to and fro under RK4, and a part makes less entropy than all of them."""
    field = Deterministic(OSCILLATOR.exact().blocks)
    units, nothing = Coordinates.identity(3), jnp.zeros((1, 0))
    fine = np.linspace(0, 12, 25)

    def audit(times, chosen):
        states = np.tile(START, (2, len(times), 1)) * np.array([1.0, -0.7])[:, None, None]
        data = Trajectories(times, states, np.zeros_like(states))
        made = evaluate(field, units, data, nothing, integrator=chosen)
        return made.summary.audit

    every = audit(fine, RungeKutta())
    divided = audit(fine[::8], Divided(RungeKutta(), jnp.asarray(fine[1])))
    np.testing.assert_allclose(
        divided.energy_drift[:, :3],
        [[d[8 * i : 8 * i + 8].max() for i in range(3)] for d in np.asarray(every.energy_drift)],
    )
    steps = np.asarray(every.entropy_step).reshape(2, 3, 8).min(-1)
    np.testing.assert_allclose(divided.entropy_step, steps)
    undivided = audit(fine, Divided(RungeKutta(), jnp.asarray(1.0)))
    jax.tree.map(np.testing.assert_allclose, undivided, every)
    at_records = np.asarray(every.energy_drift)[:, ::8]
    assert np.all(at_records.max(1) < 0.9 * np.max(divided.energy_drift, 1))


def test_divided_steps_of_trajectories_of_unequal_length(x64):
    data = simulate(OSCILLATOR, OSCILLATOR.draw(np.random.default_rng(0), 2))
    coarse = replace(
        data,
        times=data.times[::50],
        states=data.states[:, ::50].copy(),
        derivatives=data.derivatives[:, ::50],
    )
    coarse.states[0, 7:] = np.nan
    exact, units = Deterministic(OSCILLATOR.exact().blocks), Coordinates.identity(3)
    chosen = Divided(RungeKutta(), jnp.asarray(OSCILLATOR.dt))
    made = evaluate(exact, units, coarse, jnp.zeros((1, 0)), integrator=chosen).summary.mean
    np.testing.assert_allclose(made[1], coarse.states[1, 1:], atol=1e-4)
    np.testing.assert_allclose(made[0, :6], coarse.states[0, 1:7], atol=1e-4)


@pytest.mark.parametrize("short", [1e-15, 1e-6, 1e-2])
def test_a_step_after_a_far_shorter_one(x64, short):
    field = Generic(random_blocks(3, gain=(1.0, 1.0)))
    states, laws = _rollout(field, START, [0.1, short, 0.1, 1.0], Collocation(2))
    assert np.all(np.isfinite(states)) and np.max(laws.sweeps) <= 20
    assert _drift(laws) < 1e-14


def test_a_step_that_cannot_be_solved_is_not_a_number_and_so_is_all_that_follows(x64):
    """A particle in a well without walls of its own, on a step far too long for it."""
    field = known_generic(lambda x: x[1] ** 2 / 2 - jnp.sqrt(1 - x[0] ** 2), lambda x: x[2])
    states, laws = _rollout(field, [0.0, 5.0, 0.0], np.full(4, 1.0), Collocation(2))
    assert np.all(np.isfinite(states[0])) and np.all(np.isnan(states[1:]))
    assert np.all(np.asarray(laws.sweeps)[1:] == 1)


def test_gradients_go_through_implicit_steps(x64):
    field = Generic(random_blocks(3, gain=(1.0, 1.0)))
    steps = jnp.full(3, 0.3)

    @jax.jit
    @jax.value_and_grad
    def end(x):
        return jnp.sum(audited_rollout(field, x, steps, None, Collocation(2))[0][-1] ** 2)

    h, x = 1e-6, jnp.asarray(START)
    numeric = [(end(x + s)[0] - end(x - s)[0]) / (2 * h) for s in h * np.eye(3)]
    np.testing.assert_allclose(end(x)[1], numeric, rtol=1e-7)


def test_names():
    assert isinstance(integrator("rk4"), RungeKutta)
    assert integrator("discrete-gradient").discrete  # pyright: ignore
    own = Collocation(1)
    assert integrator(own) is own
    with pytest.raises(ValueError, match="no integrator 'euler'; choose from rk4, midpoint"):
        integrator("euler")
    assert all(isinstance(make(), type(integrator(name))) for name, make in INTEGRATORS.items())


@pytest.mark.parametrize("name", ["adaptive", "stiff"])
def test_solvers_of_diffrax(x64, name):
    field = Generic(random_blocks(3, gain=(1.0, 1.0)))
    chosen = integrator(name)
    assert isinstance(chosen, Adaptive)
    states, laws = _rollout(field, START, [0.5, 0.0, 0.5], chosen)
    fine = _rollout(field, START, np.full(100, 0.01), RungeKutta())[0]
    np.testing.assert_allclose(states[-1], fine[-1], atol=1e-5)
    assert laws.sweeps[0] >= 1
