"""Ensembles: one index per rollout, laws by values, and what is said of samples that diverge."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spenn.data import Trajectories
from spenn.forecast import _ensemble, chunk_size, ensemble, evaluate, spread
from spenn.generic import (
    AbstractMethod,
    Blocks,
    Coordinates,
    Generic,
    KnownDissipation,
    KnownPotential,
)
from spenn.integrate import rk4, rollout
from support import random_spenn

SIZE, SAMPLES = 3, 4
UNITS = ([0.1, -0.2, 1.0], [1.0, 2.0, 0.5], 0.5)
TIMES = np.array([0.0, 0.02, 0.03, 0.06])
INITIAL = np.random.default_rng(0).normal(size=(5, SIZE))


def _all(chunks):
    return np.concatenate([np.asarray(c.states)[: len(c.trajectories)] for c in chunks])


def test_a_sample_is_one_realisation_from_start_to_end(x64):
    model, units = random_spenn(SIZE, 6, 1, gain=(1.0, 1.0)), Coordinates.of(*UNITS)
    indices = model.draw(SAMPLES, key=jax.random.key(0))
    states = _all(ensemble(model, units, INITIAL, TIMES, indices))
    assert states.shape == (5, SAMPLES, len(TIMES), SIZE)
    steps = jnp.diff(jnp.asarray(TIMES)) / units.time_unit

    @jax.jit
    def by_hand(x, z):
        field = model.realise(z)
        return units.unscaled(rollout(rk4, field.velocity, units.scaled(x), steps))

    for i, j in ((0, 0), (2, 3), (4, 1)):
        expected = by_hand(jnp.asarray(INITIAL[i]), indices[j])
        np.testing.assert_allclose(states[i, j], expected, rtol=1e-11, atol=1e-12)


def test_chunks_do_not_change_the_result(x64, monkeypatch):
    model, units = random_spenn(SIZE, 6, 1, gain=(1.0, 1.0)), Coordinates.of(*UNITS)
    indices = model.draw(SAMPLES, key=jax.random.key(0))
    whole = list(ensemble(model, units, INITIAL, TIMES, indices))
    assert len(whole) == 1
    monkeypatch.setitem(_ensemble.BATCH, jax.default_backend(), 2 * SAMPLES)
    chunks = list(ensemble(model, units, INITIAL, TIMES, indices))
    assert [c.trajectories for c in chunks] == [range(0, 2), range(2, 4), range(4, 5)]
    np.testing.assert_allclose(_all(chunks), _all(whole), rtol=1e-12, atol=1e-13)
    laws = np.concatenate([c.laws.entropy for c in chunks])[:5]
    np.testing.assert_allclose(laws, whole[0].laws.entropy, rtol=1e-12)


def test_chunk_sizes(monkeypatch):
    assert chunk_size(100, 4096, 10, 3) == 1
    assert chunk_size(100, 10**6, 10, 3) == 1
    assert chunk_size(10, 1, 10, 3) == 10
    monkeypatch.setattr(_ensemble, "MEMORY", 2 * 5 * 10 * 13 * 4)
    assert chunk_size(10, 5, 10, 3) == 2
    assert chunk_size(3, 5, 10, 3) == 2


class TestLawsByValues:
    """Energy and entropy themselves along rollouts, not their rates."""

    @staticmethod
    def _laws(dt, steps):
        model = random_spenn(SIZE, 6, 1, gain=(1.0, 1.0), seed=3)
        indices = model.draw(10, key=jax.random.key(0))
        times = dt * np.arange(steps + 1)
        (chunk,) = ensemble(model, Coordinates.identity(SIZE), INITIAL, times, indices)
        return chunk.laws

    def test_energy_drift_falls_as_the_fourth_power_of_the_step(self, x64):
        energies = [np.asarray(self._laws(*s).energy) for s in ((0.04, 25), (0.02, 50))]
        coarse, fine = (np.abs(e - e[..., :1]).max(-1) for e in energies)
        # Some drift more than others; one that barely moves has reached rounding.
        order = np.log2(coarse / fine)[fine > 1e-13]
        assert order.size > 25
        assert 3.5 < np.median(order) < 5.5
        assert np.median(fine) < 1e-6

    def test_entropy_never_falls(self, x64):
        entropy = np.asarray(self._laws(0.02, 50).entropy[..., 0])
        assert np.min(np.diff(entropy, axis=-1)) >= -1e-14 * np.abs(entropy).max()
        assert np.max(entropy[..., -1] - entropy[..., 0]) > 1e-3


class Growing(AbstractMethod):
    """`dx/dt = z x^3`: leaves the finite numbers soon for a large index, late for a small one."""

    def draw(self, n, *, key):
        return jnp.zeros((n, 1))

    def realise(self, index):
        units = Coordinates.identity(2)
        return Generic(
            Blocks(
                (KnownPotential(lambda x: x[1], units),),
                (KnownPotential(lambda x: index[0] * x[0] ** 4 / 4, units),),
                (),
                (KnownDissipation(lambda x, y: jnp.sum(y**2) / 2, units),),
            )
        )


class TestDivergence:
    times = np.linspace(0, 2, 41)
    data = Trajectories(times, np.ones((3, 41, 2)), np.zeros((3, 41, 2)), ["x", "y"])
    units = Coordinates.identity(2)
    indices = jnp.array([[0.01], [5.0], [0.02], [0.03]])

    def test_diverging_samples_are_listed_and_others_stand_in(self):
        result = evaluate(Growing(), self.units, self.data, self.indices)
        assert [(d.trajectory, d.sample) for d in result.diverged] == [(0, 1), (1, 1), (2, 1)]
        states = result.states[1]
        for lost in result.diverged:
            assert 0 < lost.step < 41
            # The data are ones: ten times that is lost, long before it is infinite.
            assert np.all(np.abs(states[: lost.step]) < 10)
            assert not np.all(np.abs(states[lost.step]) < 10)
        healthy = evaluate(Growing(), self.units, self.data, self.indices[np.array([0, 2, 3, 0])])
        assert healthy.diverged == ()
        for name in ("mean", "std", "crps", "energy_score", "inside"):
            ours, expected = (getattr(r.summary, name) for r in (result, healthy))
            assert np.all(np.isfinite(ours))
            np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-7)

    def test_a_sample_far_beyond_the_data_is_lost(self):
        """`x = (1 - 2 z t)^(-1/2)` is finite up to t = 2, where it has grown to sixteen."""
        result = evaluate(Growing(), self.units, self.data, jnp.array([[0.01], [0.249]]))
        assert [(d.trajectory, d.sample) for d in result.diverged] == [(0, 1), (1, 1), (2, 1)]
        assert np.all(np.isfinite(result.states))

    def test_what_is_not_required_has_no_summary(self):
        result = evaluate(Growing(), self.units, self.data, self.indices[1:2], required=0)
        assert len(result.diverged) == 3
        assert np.all(np.isnan(result.summary.mean)) and np.all(np.isnan(result.summary.crps))

    def test_no_forecast_where_every_sample_diverges(self):
        with pytest.raises(ValueError, match="every sample of trajectory 0 diverged"):
            evaluate(Growing(), self.units, self.data, self.indices[1:2])


def test_summaries_are_statistics_of_the_samples():
    model, units = random_spenn(SIZE, 6, 1, gain=(1.0, 1.0)), Coordinates.of(*UNITS)
    indices = model.draw(SAMPLES, key=jax.random.key(0))
    states = _all(ensemble(model, units, INITIAL, TIMES, indices))
    truth = np.broadcast_to(INITIAL[:, None], (5, len(TIMES), SIZE))
    data = Trajectories(TIMES, truth, np.zeros_like(truth))
    reported = []
    result = evaluate(model, units, data, indices, keep=2, report=reported.append)
    assert sum(reported) == 5
    np.testing.assert_allclose(result.states, states[2], rtol=1e-6)
    with pytest.raises(ValueError, match="no trajectory 5 among 5"):
        evaluate(model, units, data, indices, keep=5)
    np.testing.assert_allclose(result.summary.mean, states.mean(1)[:, 1:], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(result.summary.std, states.std(1)[:, 1:], rtol=1e-3, atol=1e-6)
    audit = result.summary.audit
    assert np.all(audit.entropy_rate > 0) and np.all(audit.entropy_step > 0)
    assert np.all(audit.energy_rate < 1e-4) and np.all(audit.energy_high >= audit.energy_low)


def test_what_is_missing_counts_nowhere():
    """A trajectory that ended early is scored as if the grid ended there."""
    model, units = random_spenn(SIZE, 6, 1, gain=(1.0, 1.0)), Coordinates.of(*UNITS)
    indices = model.draw(SAMPLES, key=jax.random.key(0))
    truth = np.broadcast_to(INITIAL[:, None], (5, len(TIMES), SIZE)).copy()
    truth[:, 1:] += 0.01 * np.random.default_rng(1).normal(size=(5, 3, SIZE))
    ended = truth.copy()
    ended[:, 3:] = np.nan
    short = Trajectories(TIMES[:3], truth[:, :3], np.zeros((5, 3, SIZE)))
    tails = Trajectories(TIMES, ended, np.zeros_like(truth))
    expected, found = (evaluate(model, units, d, indices).summary for d in (short, tails))
    assert np.isnan(found.mean[:, 2:]).all() and np.isnan(found.std[:, 2:]).all()
    np.testing.assert_allclose(found.mean[:, :2], expected.mean, rtol=1e-5)
    for name in ("crps", "crps_fair", "energy_score", "energy_score_fair", "inside", "width"):
        ours, theirs = (getattr(s, name) for s in (found, expected))
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(found.ranks, expected.ranks, atol=1e-6)
    drifts = (s.audit.energy_drift.max(1) for s in (found, expected))
    np.testing.assert_allclose(*drifts, atol=1e-5)


def test_spread_is_no_smaller_than_rounding():
    """Samples that agree, as ahead of a wave, are as certain as the numbers that come later."""
    samples = np.zeros((3, 4, 2), np.float32)
    samples[:, 3] = [8.0, 0.0]
    samples[:, 2, 0] = [1.0, 2.0, 3.0]
    found = np.asarray(spread(samples))
    np.testing.assert_allclose(found[[0, 1, 3], 0], 8 * np.finfo(np.float32).eps)
    np.testing.assert_allclose(found[2, 0], samples[:, 2, 0].std(), rtol=1e-6)
    np.testing.assert_array_equal(found[:, 1], 0)
