"""The baseline: its density, its chains, and what is said of them."""

import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from line import NOISE, TIMES, slope_problem

from spenn.inverse import InverseConfig, Measurements
from spenn.inverse._hmc import HMCConfig, Sampler, log_density, require_blackjax, split_rhat

SMALL = InverseConfig(width=6, depth=1)


def test_density_is_that_of_a_b_pinn(x64):
    problem = slope_problem()
    density, fit_of, size = log_density(problem, SMALL)
    vector = 0.5 * jax.random.normal(jax.random.key(0), (size,))
    fit = fit_of(vector)
    hidden, readout = fit.network.layers[0], fit.network.readout

    def u(t):
        return jnp.tanh(t * hidden.weight[:, 0] + hidden.bias) @ readout.weight[0] + readout.bias[0]

    k, weights = vector[-1], vector[:-1]
    assert fit.raw[0] == k
    misfit = jnp.sum(((jax.vmap(u)(TIMES[:, 0]) - problem.field.values[:, 0]) / NOISE) ** 2)
    random = jax.random.uniform(jax.random.key(0), (50, 1))
    points = 2 * (jnp.arange(50)[:, None] + random) / 50
    physics = sum(((jax.grad(u)(t[0]) - k) / problem.tolerance) ** 2 for t in points)
    expected = -(misfit + physics + jnp.sum(weights**2) + (k / 2) ** 2) / 2
    assert float(density(vector)) == pytest.approx(float(expected), rel=1e-9)


def test_what_was_not_measured_of_the_source_counts_for_nothing():
    values = np.array([[0.1], [np.nan]])
    problem = replace(slope_problem(), source=Measurements(TIMES[:2], values, 0.1))
    density, _, size = log_density(problem, SMALL)
    assert np.isfinite(density(jnp.ones(size)))


def test_chains_and_what_is_said_of_them():
    seen = []

    def report(stage, done, total):
        seen.append((stage, done))

    hmc = HMCConfig(chains=2, warm_up=60, draws=70, leapfrogs=5)
    sampler = Sampler.of(slope_problem(), SMALL, hmc)
    warm = sampler.warm_up(key=jax.random.key(0), report=report)
    chains = sampler.draw(warm, key=jax.random.key(1), report=report)
    assert chains.raw.shape == (2, 70, 1) and np.all(np.isfinite(chains.raw))
    assert 0 < chains.acceptance <= 1 and chains.ess.shape == chains.rhat.shape == (1,)
    assert sum(done for stage, done in seen if stage == "draws") == 70
    assert chains.fields(np.zeros((3, 1)), 20).shape[1:] == (3, 1)


def test_rhat_tells_chains_that_agree_from_chains_that_do_not():
    values = np.random.default_rng(0).normal(size=(4, 1000, 2))
    values[0, :, 1] += 3
    agreed, apart = split_rhat(values)
    assert agreed == pytest.approx(1, abs=0.01) and apart > 1.5
    drifting = np.linspace(0, 3, 1000)[None, :, None] + values[:, :, :1]
    assert split_rhat(drifting)[0] > 1.2


def test_a_sentence_where_blackjax_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "blackjax", None)
    with pytest.raises(ValueError, match=r"pip install 'spenn\[hmc\]'"):
        require_blackjax()
