"""Inverse problems as they are stated: derivatives, references, data and what is refused."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.io

from spenn.inverse import (
    BENCHMARKS,
    InverseConfig,
    Measurements,
    Parameter,
    Problem,
    derivatives,
)
from spenn.inverse._benchmark import (
    kdv_residual,
    kdv_solution,
    kraichnan_orszag_residual,
    kraichnan_orszag_solution,
)
from spenn.inverse._setting import Observed, Setting
from spenn.inverse._source import Source


def test_derivatives_along_a_direction(x64):
    s, direction = jnp.array([0.3, -0.7]), jnp.array([2.0, 1.0])
    found = derivatives(lambda s: jnp.sin(s[:1] * 2 + s[1]), s, direction, 3)
    phase, rate = 2 * 0.3 - 0.7, 5.0
    expected = [np.sin(phase), np.cos(phase), -np.sin(phase), -np.cos(phase)]
    for order, (ours, value) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_allclose(ours, [rate**order * value], rtol=1e-12)


def test_the_two_solitons_solve_the_equation(x64):
    def logarithm(s):
        first, second = s[0] + s[1] + np.log(3) / 2, 2 * s[0] + 8 * s[1] + np.log(3) / 2
        powers = [-first - second, first - second, second - first, first + second - np.log(9)]
        return jax.nn.logsumexp(jnp.stack(powers))[None]

    def u(s):
        return 2 * derivatives(logarithm, s, [1.0, 0.0], 2)[2]

    points = jnp.asarray(np.random.default_rng(0).uniform((-10, -1.5), (10, 1.5), (40, 2)))
    np.testing.assert_allclose(jax.vmap(u)(points)[:, 0], kdv_solution(*points.T), atol=1e-12)
    truth = {"kappa1": jnp.array(1.5), "kappa2": jnp.array(0.25)}
    np.testing.assert_allclose(jax.vmap(kdv_residual(u, truth))(points), 0, atol=1e-9)


def test_the_reference_of_kraichnan_orszag_keeps_its_invariants():
    times = np.linspace(0, 10, 50)
    for a, b in ((1.0, 1.0), (0.7, 1.4)):
        x1, x2, x3 = kraichnan_orszag_solution(times, a, b).T
        for invariant in (b * x1**2 - a * x2**2, (a + b) * x1**2 + a * x3**2):
            np.testing.assert_allclose(invariant, invariant[0], atol=1e-9)


def test_the_residual_of_kraichnan_orszag_is_its_equation(x64):
    rate = kraichnan_orszag_residual(lambda t: jnp.array([1.0, 0.8, 0.5]) * t[0], {"a": 2, "b": 3})
    np.testing.assert_allclose(rate(jnp.array([1.0])), [0.2, -0.7, 4.5], rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "field", "source"), [("kraichnan-orszag", 29, 42), ("kdv", 200, 100)]
)
def test_generated_data_have_the_layout_of_the_paper(name, field, source):
    benchmark = BENCHMARKS[name]()
    problem, again, other = (benchmark.problem(seed) for seed in (1, 1, 2))
    assert problem.field.known.sum() == field and problem.source.known.sum() == source
    np.testing.assert_array_equal(problem.field.values, again.field.values)
    assert not np.array_equal(problem.field.values, other.field.values, equal_nan=True)


def test_noise_of_generated_data_is_as_stated():
    errors = []
    for seed in range(30):
        field = BENCHMARKS["kdv"]().problem(seed).field
        errors.append(field.values[:, 0] - kdv_solution(*field.points.T))
    assert np.std(errors) == pytest.approx(0.1, rel=0.05)


def test_what_was_not_measured_counts_for_nothing(x64):
    values = np.array([[1.0, np.nan], [np.nan, 3.0]])
    observed = Observed.of(Measurements(np.zeros((2, 1)), values, 0.5))
    errors = observed.errors(lambda s: jnp.array([2.0, 2.0]))
    np.testing.assert_allclose(errors, [[2.0, 0.0], [0.0, -2.0]])


class TestSource:
    points = np.linspace(-1, 2, 40)[:, None]
    rng = np.random.default_rng(0)

    def _problem(self, values):
        field = Measurements(np.zeros((1, 1)), np.zeros((1, 1)), 0.1)
        source = Measurements(self.points, values, 0.1)
        return Problem(lambda u, p: u, field, {"k": Parameter()}, (-1.0,), (2.0,), source)

    def test_noise_alone_is_taken_for_no_source(self):
        source = Source.of(self._problem(self.rng.normal(0, 0.1, (40, 1))))
        assert source.scale < 0.02

    def test_a_real_source_is_seen(self):
        source = Source.of(self._problem(np.sin(self.points)))
        assert source.scale > 0.1

    def test_a_source_that_oscillates_is_followed(self):
        source = Source.of(self._problem(np.sin(4 * self.points)))
        basis = np.asarray(jax.vmap(source.basis)(jnp.asarray(self.points, float)))
        best = np.linalg.lstsq(basis, np.sin(4 * self.points))[0]
        assert source.degree > 4
        np.testing.assert_allclose(basis @ best, np.sin(4 * self.points), atol=0.1)

    def test_one_that_cannot_be_followed_is_refused(self):
        with pytest.raises(ValueError, match="varies too much between its measurements"):
            Source.of(self._problem(np.sin(30 * self.points)))

    def test_without_measurements_it_is_zero(self):
        problem = replace(self._problem(np.sin(self.points)), source=None, tolerance=0.1)
        setting = Setting.of(problem)
        coefficients = jnp.ones((len(setting.source.basis(jnp.zeros(1))), 1))
        assert np.all(setting.source(coefficients, jnp.array([0.3])) == 0)

    def test_basis_is_orthonormal_on_the_box(self, x64):
        source = Source.of(BENCHMARKS["kdv"]().problem())
        nodes, weights = np.polynomial.legendre.leggauss(8)
        grid = np.stack(np.meshgrid(10 * nodes, 1.5 * nodes, indexing="ij"), -1).reshape(-1, 2)
        basis = np.asarray(jax.vmap(source.basis)(jnp.asarray(grid)))
        weight = np.outer(weights, weights).ravel() / 4
        np.testing.assert_allclose(basis.T * weight @ basis, np.eye(15), atol=1e-12)


def _table(rows=3, columns=1):
    return np.zeros((rows, columns))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"points": np.zeros(3)}, "points of measurements must be a table"),
        ({"points": _table(2)}, "there are 2 points, but values at 3"),
        ({"values": np.full((3, 1), np.inf)}, "values finite or NaN"),
        ({"points": np.full((3, 1), np.nan)}, "points must be finite"),
        ({"noise": 0.0}, "noise must be a positive number"),
    ],
)
def test_measurements_refuse(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        Measurements(**({"points": _table(), "values": _table(), "noise": 0.1} | change))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"parameters": {}}, "at least one unknown parameter"),
        ({"upper": (-1.0,)}, "must lie above its lower end"),
        ({"lower": (0.0, 0.0), "upper": (1.0, 1.0)}, "have 1 coordinates, the box 2"),
        ({"names": ("u", "v")}, "1 components are measured, but 2 are named"),
        ({"lower": -1.0, "upper": -0.5}, "some points of the field lie outside the box"),
        ({"lengths": (1.0, 2.0)}, "lengths must be 1 positive numbers"),
        ({"tolerance": -1.0}, "must be positive"),
        ({"residual": lambda u, p: lambda s: p["c"] * u(s)}, "a parameter 'c' that is not given"),
        (
            {"source": Measurements(_table(), _table(3, 2), 0.1)},
            "the residual has 1 components, but 2 of the source are measured",
        ),
    ],
)
def test_problems_refuse(change, sentence):
    good = {
        "residual": lambda u, p: u,
        "field": Measurements(_table(), _table(), 0.1),
        "parameters": {"k": Parameter()},
        "lower": (0.0,),
        "upper": (1.0,),
    }
    with pytest.raises(ValueError, match=sentence):
        Problem(**(good | change))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Parameter(positive=True, start=-1.0), "cannot start at -1"),
        (lambda: Parameter(prior=0.0), "prior of a parameter must be positive"),
        (lambda: InverseConfig(share=2.0), "at most 1"),
        (lambda: InverseConfig(steps=0), "at least 1"),
    ],
)
def test_settings_refuse(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


class TestPublishedFiles:
    """The reader, on files of generated data: the published ones are not ours to copy."""

    def _arrays(self):
        field, source = BENCHMARKS["kdv"]().generate(np.random.default_rng(3))
        return {
            "x_u_train": field.points[:, :1],
            "t_u_train": field.points[:, 1:],
            "u_train": field.values,
            "x_f_train": source.points[:, :1],
            "t_f_train": source.points[:, 1:],
            "f_train": source.values,
        }

    def test_columns_of_the_first_problem(self, tmp_path):
        path, names = tmp_path / "data.mat", BENCHMARKS["kraichnan-orszag"]().arrays
        scipy.io.savemat(path, {name: _table(5) for name in names})
        with pytest.raises(ValueError, match="u_train must have 3 columns"):
            BENCHMARKS["kraichnan-orszag"]().problem(data=path)

    def test_round_trip(self, tmp_path):
        path, arrays = tmp_path / "data.mat", self._arrays()
        scipy.io.savemat(path, arrays)
        problem = BENCHMARKS["kdv"]().problem(data=path)
        np.testing.assert_array_equal(problem.field.values, arrays["u_train"])
        np.testing.assert_array_equal(problem.source.points[:, 1:], arrays["t_f_train"])

    @pytest.mark.parametrize(
        ("spoil", "sentence"),
        [
            (lambda path, arrays: None, "cannot read .*: No such file"),
            (lambda path, arrays: path.write_bytes(b"a,b\n1,2\n" * 40), "as a MATLAB file"),
            (lambda path, arrays: path.write_bytes(b""), "as a MATLAB file"),
            (lambda path, arrays: _cut(path, arrays), "as a MATLAB file|has no array"),
            (lambda path, arrays: scipy.io.savemat(path, {"x": 1.0}), "has no array 'x_u_train'"),
            (
                lambda path, arrays: scipy.io.savemat(
                    path, arrays | {"u_train": np.zeros((2, 3, 4))}
                ),
                "u_train of .* must be a table",
            ),
            (
                lambda path, arrays: scipy.io.savemat(path, arrays | {"u_train": _table(7)}),
                "there are 200 points, but values at 7",
            ),
            (
                lambda path, arrays: scipy.io.savemat(path, arrays | {"u_train": "text"}),
                "must be|numbers",
            ),
        ],
    )
    def test_one_sentence_for_a_bad_file(self, tmp_path, spoil, sentence):
        path = tmp_path / "data.mat"
        spoil(path, self._arrays())
        with pytest.raises(ValueError, match=sentence):
            BENCHMARKS["kdv"]().problem(data=path)


def _cut(path, arrays):
    scipy.io.savemat(path, arrays)
    path.write_bytes(path.read_bytes()[:3000])
