"""Spread that means something: against closed forms, and on the problems of the paper."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from line import NOISE, TIMES, slope_problem

from spenn.epinet import GlobalEpinet
from spenn.inverse import BENCHMARKS, InverseConfig, attach, fit_base
from spenn.inverse._epinet import _leading

CONFIG = InverseConfig(width=20, steps=2000)


@pytest.fixture(scope="module")
def line():
    problem = slope_problem()
    base = fit_base(problem, CONFIG, key=jax.random.key(0))
    return problem, base, attach(problem, base, CONFIG, key=jax.random.key(1))


def test_a_straight_line_is_linear_regression(line):
    problem, _, posterior = line
    k = np.asarray(posterior.raw(posterior.draw(4000, key=jax.random.key(2))))[:, 0]
    slope, intercept = np.polyfit(TIMES[:, 0], problem.field.values[:, 0], 1)
    spread = NOISE / np.sqrt(np.sum((TIMES - TIMES.mean()) ** 2))
    assert k.mean() == pytest.approx(slope, abs=0.1 * spread)
    assert k.std() == pytest.approx(spread, rel=0.06)
    at = jnp.array([[0.0], [1.0], [2.0]])
    fields = np.asarray(posterior.fields(at, posterior.draw(4000, key=jax.random.key(3))))[..., 0]
    np.testing.assert_allclose(
        fields.mean(0), intercept + slope * np.asarray(at)[:, 0], atol=0.1 * NOISE
    )
    middle = NOISE * np.sqrt(1 / len(TIMES) + (at[:, 0] - 1) ** 2 * (spread / NOISE) ** 2)
    np.testing.assert_allclose(fields.std(0), middle, rtol=0.08)


def test_one_index_gives_field_and_parameter_together(line):
    """Realisations whose line is steeper are those whose parameter is larger."""
    _, _, posterior = line
    indices = posterior.draw(200, key=jax.random.key(4))
    fields = np.asarray(posterior.fields(jnp.array([[0.0], [2.0]]), indices))[..., 0]
    k = np.asarray(posterior.raw(indices))[:, 0]
    np.testing.assert_allclose((fields[:, 1] - fields[:, 0]) / 2, k, atol=0.02)


def test_realisations_solve_the_equation(line):
    problem, _, posterior = line
    for index in posterior.draw(4, key=jax.random.key(5)):
        constants = {name: value[0] for name, value in posterior.constants(index[None]).items()}
        residual = problem.residual(
            lambda s, z=index: posterior.fields(s[None], z[None])[0, 0], constants
        )
        left = jax.vmap(residual)(jnp.linspace(0.1, 1.9, 20)[:, None])
        assert float(jnp.sqrt(jnp.mean(left**2))) < 3 * problem.tolerance


def test_other_units_are_the_same_problem():
    problem, parameter = slope_problem(), slope_problem().parameters["k"]
    data = problem.field
    other = replace(
        problem,
        field=replace(data, values=1000 * data.values, noise=1000 * data.noise),
        tolerance=1000 * problem.tolerance,
        parameters={"k": replace(parameter, prior=2000.0, start=300.0)},
    )
    found = []
    for case in (problem, other):
        base = fit_base(case, CONFIG, key=jax.random.key(0))
        posterior = attach(case, base, CONFIG, key=jax.random.key(1))
        k = np.asarray(posterior.constants(posterior.draw(2000, key=jax.random.key(2)))["k"])
        found.append((k.mean(), k.std()))
    np.testing.assert_allclose(np.array(found[1]) / 1000, found[0], rtol=0.03)


class TestLeadingDirections:
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(np.cov(rng.normal(size=(12, 40))) + np.eye(12))
    seen = rng.normal(size=(30, 2, 12)) * np.array([1.0, 1e-3])[:, None]
    raw = np.eye(12)[-2:]

    def test_all_of_them_are_the_whole_covariance(self):
        heads = _leading(self.root, self.seen, self.raw, 1.0)
        np.testing.assert_allclose(
            heads @ heads.T, np.linalg.inv(self.root @ self.root.T), rtol=1e-6, atol=1e-9
        )

    def test_a_component_in_small_units_keeps_its_share(self):
        covariance = np.linalg.inv(self.root @ self.root.T)
        heads = _leading(self.root, self.seen, self.raw, 0.9)
        assert heads.shape[1] < 12
        for rows in np.moveaxis(self.seen, 1, 0):
            kept = np.sum((rows @ heads) ** 2) / np.trace(rows @ covariance @ rows.T)
            assert kept > 0.8

    def test_parameters_keep_all_of_theirs(self):
        heads = _leading(self.root, self.seen, self.raw, 0.5)
        covariance = np.linalg.inv(self.root @ self.root.T)
        np.testing.assert_allclose((heads @ heads.T)[-2:, -2:], covariance[-2:, -2:], rtol=1e-9)


def test_the_base_is_the_mean_of_the_draws(line):
    _, base, posterior = line
    indices = posterior.draw(10, key=jax.random.key(6))
    assert posterior.draw(7, key=jax.random.key(6)).shape == (7, posterior.dimension)
    points = jnp.array([[0.5], [1.5]])
    mean = posterior.fields(points, indices).mean(0)
    np.testing.assert_allclose(mean, jax.vmap(base.network)(points), atol=1e-5)
    np.testing.assert_allclose(posterior.raw(jnp.zeros((1, posterior.dimension)))[0], base.raw)


def test_every_unknown_has_an_epinet_of_the_library(line):
    _, base, posterior = line
    epinets = jax.tree.leaves(posterior.epinets, is_leaf=lambda e: isinstance(e, GlobalEpinet))
    assert all(isinstance(e, GlobalEpinet) for e in epinets)
    assert posterior.epinets.raw.learn.shape == (posterior.dimension, len(base.raw))


def test_what_the_data_do_not_tell_the_prior_does():
    problem = slope_problem()
    vague = replace(problem, field=replace(problem.field, noise=1000.0))
    base = fit_base(vague, CONFIG, key=jax.random.key(0))
    posterior = attach(vague, base, CONFIG, key=jax.random.key(1))
    k = np.asarray(posterior.constants(posterior.draw(4000, key=jax.random.key(2)))["k"])
    prior = problem.parameters["k"].prior
    assert abs(k.mean()) < prior / 2 and k.std() == pytest.approx(prior, rel=0.06)


def test_few_steps_of_the_optimiser_are_enough(line):
    """The last steps go to the bottom, wherever the optimiser stopped near it."""
    problem, base, _ = line
    short = fit_base(problem, replace(CONFIG, steps=400), key=jax.random.key(3))
    np.testing.assert_allclose(short.raw, base.raw, atol=0.003)


def test_twice_the_noise_is_twice_the_spread(line):
    problem, base, posterior = line
    noisier = replace(problem, field=replace(problem.field, noise=2 * NOISE))
    wide = attach(noisier, base, CONFIG, key=jax.random.key(1))

    def spread(p):
        return np.asarray(p.raw(p.draw(4000, key=jax.random.key(2)))).std()

    assert spread(wide) / spread(posterior) == pytest.approx(2, rel=0.06)


def test_a_positive_parameter_is_positive_for_every_index():
    problem = slope_problem(positive=True)
    base = fit_base(problem, replace(CONFIG, steps=300), key=jax.random.key(0))
    posterior = attach(problem, base, CONFIG, key=jax.random.key(1))
    raw = posterior.raw(100 * posterior.draw(200, key=jax.random.key(2)))
    assert np.all(np.asarray(problem.constants(jnp.clip(raw, -80, 80))["k"]) > 0)


def test_training_is_a_function_of_the_seed():
    problem, short = slope_problem(), replace(CONFIG, steps=200)
    first, again, other = (fit_base(problem, short, key=jax.random.key(s)) for s in (0, 0, 1))
    np.testing.assert_array_equal(first.raw, again.raw)
    assert not np.array_equal(first.raw, other.raw)


def test_kraichnan_orszag_is_learned():
    benchmark = BENCHMARKS["kraichnan-orszag"]()
    problem = benchmark.problem(seed=11)
    base = fit_base(problem, benchmark.config, key=jax.random.key(0))
    posterior = attach(problem, base, benchmark.config, key=jax.random.key(1))
    indices = posterior.draw(500, key=jax.random.key(2))
    for name, values in posterior.constants(indices).items():
        values = np.asarray(values)
        assert abs(values.mean() - benchmark.truth[name]) < 3 * values.std() < 0.3
    for curve in benchmark.curves:
        mean = np.asarray(posterior.fields(curve.points, indices))[..., curve.component].mean(0)
        assert np.linalg.norm(mean - curve.truth) < 0.08 * np.linalg.norm(curve.truth)
