"""A bar of cells: slopes of functionals, both laws in every cell, scaled coordinates, mesh size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spenn.generic import Bar, Coordinates, Generic
from spenn.integrate import Collocation, Drive, audited_rollout
from spenn.physics import Physics

CELLS = 7
SIZE = 2 * (CELLS + 1) + 2 * CELLS


def _bar(cells=CELLS):
    return Bar.of(cells, 1.0, 1.0)


def _learned(seed=0, cells=CELLS):
    size = _bar(cells).size(4)
    units = Coordinates.identity(size)
    key = jax.random.key(seed)
    return Generic(Physics(domain=_bar(cells)).blocks(units, size, 8, 2, key=key))


def _states(n, seed=0, size=SIZE):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(n, size)) * 0.3)


def test_slopes_of_the_functionals_agree_with_finite_differences(x64):
    """So the divergence of the stress is the adjoint of the strain, on the staggered mesh."""
    field, x = _learned(), _states(1)[0]
    for functional in (field.energy, field.entropy):
        slope = jax.grad(functional)(x)
        step = 1e-6 * jnp.eye(SIZE)
        differences = jax.vmap(lambda h, f=functional: (f(x + h) - f(x - h)) / 2e-6)(step)
        np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-8)


def test_momentum_changes_by_the_divergence_of_the_stress(x64):
    field, x = _learned(), _states(1)[0]
    domain = field.blocks.domain
    stress = jax.vmap(jax.grad(field.energy_density))(domain.local(x))[:, 0]
    nodes = CELLS + 1
    force = field.velocity(x)[nodes : 2 * nodes]
    np.testing.assert_allclose(force[1:-1], jnp.diff(stress) / domain.width, rtol=1e-12)


def test_entropy_reads_neither_displacement_nor_momentum():
    field, x = _learned(), _states(1)[0]
    slope = jax.grad(field.entropy)(x)
    assert np.all(np.asarray(slope[: 2 * (CELLS + 1)]) == 0)


@pytest.mark.parametrize("seed", range(5))
def test_both_laws_hold_and_the_second_one_in_every_cell(seed, x64):
    rates = jax.jit(jax.vmap(_learned(seed).rates))(_states(50, seed))
    size = np.max(np.abs(rates.velocity))
    assert np.max(np.abs(rates.energy_rate)) < 1e-12 * max(size, 1)
    assert rates.entropy_rates.shape == (50, CELLS)
    assert np.min(rates.entropy_rates) > -1e-14


def _drive(steps, amplitude=0.1):
    times = np.concatenate([[0], np.cumsum(steps)])
    move, rate = amplitude * np.sin(times), amplitude * np.cos(times)
    still = np.zeros_like(times)
    values = np.stack([still, move, still, rate], -1)
    rates = np.stack([still, rate, still, -move], -1)
    return Drive.from_records(steps, values, rates)


def test_work_at_the_moving_end_balances_the_energy(x64):
    """Energy changes by what the end does; halving the step leaves a sixteenth of the gap."""
    field, x = _learned(), 0.3 * _states(1)[0]

    def gap(count):
        steps = np.full(count, 1.0 / count)
        drive = jax.tree.map(jnp.asarray, _drive(steps))
        _, laws = jax.jit(lambda x: audited_rollout(field, x, jnp.asarray(steps), drive))(x)
        assert np.ptp(laws.energy) > 1e-3
        return float(np.max(np.abs(laws.energy - laws.work - laws.energy[0])))

    coarse, fine = gap(40), gap(80)
    assert fine < 1e-5
    assert 10 < coarse / fine < 30


@pytest.mark.parametrize("count", [5, 40])
def test_discrete_gradients_balance_the_energy_of_a_bar_to_rounding(x64, count):
    """Work included, in steps of any length; entropy grows in every cell."""
    field, x = _learned(), 0.3 * _states(1)[0]
    steps = np.full(count, 1.0 / count)
    drive = jax.tree.map(jnp.asarray, _drive(steps))
    states, laws = jax.jit(
        lambda x: audited_rollout(field, x, jnp.asarray(steps), drive, Collocation())
    )(x)
    assert np.ptp(laws.energy) > 1e-3
    assert np.max(np.abs(laws.energy - laws.work - laws.energy[0])) < 1e-14
    assert np.min(np.diff(laws.entropy, axis=0)) > -1e-16
    where = list(_bar().prescribed)
    np.testing.assert_array_equal(states[:, where], drive.values)


def test_derivatives_of_the_work_done_on_a_bar(x64):
    """Work is told by the last sweep of each step, and derivatives go another way."""
    field, x = _learned(), 0.3 * _states(1)[0]
    steps = np.full(3, 0.2)
    drive = jax.tree.map(jnp.asarray, _drive(steps))
    direction = jnp.asarray(np.random.default_rng(1).normal(size=SIZE))

    def work(h):
        start = x + h * direction
        return audited_rollout(field, start, jnp.asarray(steps), drive, Collocation())[1].work[-1]

    @jax.jit
    def derivatives(h):
        squared = jax.value_and_grad(lambda h: work(h) ** 2)
        return jax.jvp(squared, (h,), (1.0,))

    h = 1e-5
    (_, slope), (_, curvature) = derivatives(0.0)
    (after, later), (before, earlier) = derivatives(h)[0], derivatives(-h)[0]
    np.testing.assert_allclose(slope, (after - before) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(curvature, (later - earlier) / (2 * h), rtol=1e-5)


def test_prescribed_entries_follow_their_records(x64):
    steps = np.full(20, 0.05)
    drive = _drive(steps)
    states, _ = audited_rollout(_learned(), _states(1)[0], jnp.asarray(steps), drive)
    where = list(_bar().prescribed)
    np.testing.assert_allclose(states[:, where], drive.values, atol=1e-14)


def test_a_runge_kutta_step_lands_on_the_records():
    steps, drive = np.full(20, 0.05), _drive(np.full(20, 0.05))
    change = steps[:, None] / 6 * (drive.rates[:-1] + 4 * drive.halfway + drive.rates[1:])
    np.testing.assert_allclose(change, np.diff(drive.values, axis=0), atol=1e-15)


def test_a_rollout_without_the_motion_of_the_ends_is_refused():
    with pytest.raises(ValueError, match="prescribed"):
        audited_rollout(_learned(), _states(1)[0], jnp.full(3, 0.1))


def test_the_same_densities_serve_any_mesh(x64):
    """A uniformly stretched bar has the energy of its length, whatever its cells."""

    def energy(cells):
        field = _learned(cells=cells)
        u = 0.2 * jnp.linspace(0, 1, cells + 1)
        inner = jnp.concatenate([jnp.full(cells, 0.1), jnp.full(cells, -0.3)])
        return field.energy(jnp.concatenate([u, jnp.ones(cells + 1), inner]))

    np.testing.assert_allclose(energy(4), energy(400), rtol=1e-12)


def test_a_state_that_does_not_fit_the_mesh_is_refused():
    with pytest.raises(ValueError, match="7 cells"):
        _bar().sizes(SIZE + 1)


def test_what_moves_the_nodes_is_one_system_and_what_happens_in_cells_another():
    nodes, cells = 2 * (CELLS + 1), 2 * CELLS
    np.testing.assert_array_equal(_bar().equations(SIZE), [0] * nodes + [1] * cells)
