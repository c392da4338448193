"""Figures: every file is written, and nothing awkward in the data is hidden or breaks an axis."""

import subprocess
import sys
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from spenn.report._view import MethodView, RunView
from spenn.report.figures import draw_figures
from spenn.report.figures._coverage import draw_coverage as _coverage
from spenn.report.figures._drawing import (
    _common,
    _log_limits,
    _number,
    _thin,
    _thin_to_minima,
    method_colours,
)
from spenn.report.figures._errors import draw_errors as _errors
from spenn.report.figures._laws import draw_laws as _laws
from spenn.report.figures._trajectories import draw_trajectories as _trajectories

SPENN = ("spenn-half-normal", "spenn-uniform", "spenn-exponential")
LEVELS = np.linspace(0.05, 0.95, 19)


def trajectory(variables, records):
    t = np.linspace(0, 15, records)
    waves = [np.exp(-0.1 * t) * np.cos((1 + 0.2 * v) * t + v) for v in range(variables)]
    return t, np.stack(waves, 1)


def method(name, truth, rng, trajectories=12):
    """A forecast with errors of about 1e-4 that grow with time."""
    time, variable = truth.shape
    growth = 1e-4 * np.linspace(0, 1, time)[:, None]
    mean = truth + growth * rng.normal(size=variable)
    sure = {"rl2e": 1e-4 * np.exp(rng.normal(size=(trajectories, variable)))}
    sure["energy_rate"] = np.sort(1e-8 * rng.normal(size=(3, time)), axis=0)
    sure["entropy_rate_min"] = 1e-6 + truth[:, 0] ** 2
    if name == "base":
        return MethodView(name, 1, mean, np.zeros_like(mean), **sure)
    std = np.broadcast_to(growth, truth.shape)
    return MethodView(
        name,
        100,
        mean,
        std,
        **sure,
        lower=mean - 3 * std,
        upper=mean + 3 * std,
        draws=mean + std * rng.normal(size=(4, 1, variable)),
        levels=LEVELS,
        coverage_raw=np.repeat(LEVELS[:, None] ** 2, variable, 1),
        coverage_calibrated=np.repeat(LEVELS[:, None], variable, 1),
        coverage_simultaneous=LEVELS,
    )


def run_view(methods=("base", *SPENN[:1]), variables=3, records=60, **changes):
    """A run; `changes` apply to the last method."""
    rng = np.random.default_rng(0)
    times, truth = trajectory(variables, records)
    views = [method(name, truth, rng) for name in methods]
    views[-1] = replace(views[-1], **changes)
    names = tuple("qpsuvwxyz"[:variables])
    labels = tuple(f"variable {name}" for name in names)
    floor = np.full(variables, 1e-5)
    return RunView("A system", names, labels, times, truth, 50, floor, tuple(views))


def texts(figure: Figure) -> str:
    """Everything written in a figure."""
    return "\n".join(t.get_text() for t in figure.findobj(matplotlib.text.Text))  # pyright: ignore


def assert_drawn(path):
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("L"))
        assert image.format == "PNG" and image.info["dpi"][0] == pytest.approx(160, abs=1)
    assert min(pixels.shape) > 400 and np.mean(pixels < 250) > 0.01


def test_four_figures_are_written(tmp_path):
    paths = draw_figures(run_view(("base", *SPENN)), tmp_path)
    assert [p.name for p in paths] == [
        "trajectories.png",
        "coverage.png",
        "errors.png",
        "laws.png",
    ]
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    for path in paths:
        assert_drawn(path)


def test_figures_are_the_same_again_and_leave_no_state(tmp_path):
    before = dict(matplotlib.rcParams)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    view = run_view()
    for first, second in zip(
        draw_figures(view, tmp_path / "a"), draw_figures(view, tmp_path / "b"), strict=True
    ):
        assert first.read_bytes() == second.read_bytes()
    assert dict(matplotlib.rcParams) == before


def test_user_style_does_not_leak_in(tmp_path):
    view = run_view(records=20)
    plain = draw_figures(view, tmp_path)[2].read_bytes()
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 30}):
        assert draw_figures(view, tmp_path)[2].read_bytes() == plain


def test_neither_pyplot_nor_jax_is_imported():
    code = "import sys, spenn.report.figures as f; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    modules = loaded.stdout.split()
    assert "spenn.report.figures" in modules
    assert "matplotlib.pyplot" not in modules
    assert "jax" not in modules


def test_more_variables_and_methods_take_more_pages():
    pages = _trajectories(run_view(("base", *SPENN, "deep-ensemble"), variables=5, records=20))
    assert list(pages) == [
        "trajectories",
        "trajectories-2",
        "trajectories-3",
        "trajectories-4",
    ]
    written = "".join(texts(page) for page in pages.values())
    for word in (*SPENN, "deep-ensemble", *(f"variable {name}" for name in "qpsuv")):
        assert word in written
    assert all(len(page.axes) <= 12 for page in pages.values())


@pytest.mark.parametrize("variables", [1, 6])
def test_any_number_of_variables(variables, tmp_path):
    for path in draw_figures(run_view(variables=variables, records=20), tmp_path):
        assert_drawn(path)


def test_base_alone(tmp_path):
    view = run_view(("base",))
    for path in draw_figures(view, tmp_path):
        assert_drawn(path)
    assert "No method states an uncertainty" in texts(_coverage(view))


OPTIONAL = (
    "energy_rate",
    "entropy_rate_min",
    "draws",
    "coverage_raw",
    "coverage_calibrated",
    "coverage_simultaneous",
)


@pytest.mark.parametrize("field", OPTIONAL)
def test_any_optional_field_may_be_missing(field):
    view = run_view(records=20, **{field: None})  # pyright: ignore[reportArgumentType]
    assert _trajectories(view) and _coverage(view) and _errors(view) and _laws(view)


def test_all_optional_fields_may_be_missing(tmp_path):
    view = run_view(records=20, **dict.fromkeys(OPTIONAL))  # pyright: ignore[reportArgumentType]
    assert len(draw_figures(view, tmp_path)) == 4
    assert "rate not known" in texts(_laws(view))


def test_method_without_calibration(tmp_path):
    missing = dict.fromkeys(["lower", "upper", "coverage_calibrated", "coverage_simultaneous"])
    view = run_view(records=20, **missing)  # pyright: ignore[reportArgumentType]
    assert len(draw_figures(view, tmp_path)) == 4
    assert "calibrated" not in texts(_trajectories(view)["trajectories"])
    assert "calibrated" not in texts(_coverage(view))


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match=r"spenn-half-normal: std has shape \(3, 60\)"):
        run_view(std=np.zeros((3, 60)))
    with pytest.raises(ValueError, match="come together"):
        run_view(upper=None)
    view = run_view()
    with pytest.raises(ValueError, match="truth has shape"):
        replace(view, truth=view.truth[1:])
    with pytest.raises(ValueError, match="base: mean has shape"):
        replace(view, times=view.times[1:], truth=view.truth[1:])
    with pytest.raises(ValueError, match="name of its own"):
        replace(view, methods=view.methods * 2)
    with pytest.raises(ValueError, match="at least one method"):
        replace(view, methods=())


# Intervals and forecasts that are not finite


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_infinite_intervals_are_said_and_keep_the_scale(share, tmp_path):
    view = run_view()
    last = view.methods[-1]
    assert last.lower is not None and last.upper is not None
    lower, upper = last.lower.copy(), last.upper.copy()
    lower[-int(share * 60) :], upper[-int(share * 60) :] = -np.inf, np.inf
    wide = run_view(lower=lower, upper=upper)
    few = replace(wide, calibration_trajectories=8)
    page = _trajectories(few)["trajectories"]
    for ax in page.axes:
        assert np.isfinite(ax.get_ylim()).all()
    for ax, finite in zip(page.axes[3:], _trajectories(view)["trajectories"].axes[3:], strict=True):
        assert 0.3 < np.ptp(ax.get_ylim()) / np.ptp(finite.get_ylim()) <= 1
        heights = np.concatenate([np.asarray(p.vertices) for p in ax.collections[0].get_paths()])[
            :, 1
        ]
        assert heights.min() < ax.get_ylim()[0] and heights.max() > ax.get_ylim()[1]
    expected = "95 % interval ±∞" if share == 1 else "±∞: 25 % of run"
    assert texts(page).count(expected) == 3
    assert "infinite" in texts(page) and "95 % needs 19" in texts(page)
    assert len(draw_figures(few, tmp_path)) == 4


def test_diverged_forecasts_are_counted(tmp_path):
    view = run_view()
    mean, errors = view.methods[-1].mean.copy(), view.methods[-1].rl2e.copy()
    mean[30:], errors[:2], errors[2] = np.nan, np.inf, np.nan
    diverged = run_view(mean=mean, rl2e=errors)
    assert "A forecast diverged" in texts(_trajectories(diverged)["trajectories"])
    assert texts(_errors(diverged)).count("3 diverged") == 3
    assert len(draw_figures(diverged, tmp_path)) == 4


def test_median_counts_diverged_forecasts_as_infinite():
    errors = run_view().methods[-1].rl2e.copy()
    errors[:7] = np.nan
    assert "∞" in texts(_errors(run_view(rl2e=errors)))


def test_floor_is_a_labelled_line_and_may_be_unknown():
    view = run_view()
    figure = _errors(view)
    assert texts(figure).count("exact physics") == 3 + 1  # panels and title
    for ax in figure.axes:
        assert any(np.array_equal(line.get_xdata(), [1e-5, 1e-5]) for line in ax.lines)
    unknown = _errors(replace(view, floor_rl2e=np.full(3, np.nan)))
    assert "exact physics" not in texts(unknown)


# The two laws


def test_positive_entropy_rates_are_stated():
    written = texts(_laws(run_view()))
    assert "entropy grows in every sample" in written
    assert "dS/dt ≤ 0" not in written


@pytest.mark.parametrize(
    ("value", "finding"),
    [(0.0, "entropy never falls"), (-1e-3, "entropy does not always grow (spenn-half-normal)")],
)
def test_every_entropy_rate_that_is_not_positive_is_marked(value, finding):
    rates = run_view(records=2000).methods[-1].entropy_rate_min
    assert rates is not None
    bad = [3, 500, 501, 1999]
    rates[bad] = value
    figure = _laws(run_view(records=2000, entropy_rate_min=rates))
    crosses = [line for ax in figure.axes for line in ax.lines if line.get_marker() == "x"]
    assert len(crosses) == 1
    times = np.linspace(0, 15, 2000)
    np.testing.assert_array_equal(crosses[0].get_xdata(), times[bad])
    written = texts(figure)
    assert "dS/dt ≤ 0 at 4 of 2000 times" in written
    assert finding in written


def test_entropy_rates_that_are_not_finite_are_marked():
    rates = run_view().methods[-1].entropy_rate_min
    assert rates is not None
    rates[4] = np.nan
    written = texts(_laws(run_view(entropy_rate_min=rates)))
    assert "not finite at 1 of 60 times" in written
    assert "does not always grow" in written


def test_no_positive_entropy_rate_at_all(tmp_path):
    paths = draw_figures(run_view(("base",), entropy_rate_min=np.zeros(60)), tmp_path)
    assert_drawn(paths[-1])


def test_energy_rate_of_exactly_zero(tmp_path):
    view = run_view(("base",), energy_rate=np.zeros((3, 60)))
    assert "within ±0" in texts(_laws(view))
    assert_drawn(draw_figures(view, tmp_path)[-1])


# Coverage


def test_coverage_shows_the_expected_range_and_the_finding():
    from spenn.calibrate import coverage_range

    view = run_view()
    figure, tests = _coverage(view), len(view.methods[0].rl2e)
    assert "90 % intervals cover 81 % raw, 90 % calibrated" in texts(figure)
    assert len(figure.axes) == 4
    for ax in figure.axes:
        (shade,) = ax.collections
        vertices = np.asarray(shade.get_paths()[0].vertices)
        at = vertices[np.isclose(vertices[:, 0], 90), 1]
        low, high = coverage_range(50, 0.9, tests=tests)
        assert at.min() == pytest.approx(100 * low) and at.max() == pytest.approx(100 * high)


def test_coverage_without_calibration_trajectories(tmp_path):
    assert len(draw_figures(replace(run_view(), calibration_trajectories=0), tmp_path)) == 4


# Small parts


def test_colours_belong_to_methods():
    everything = method_colours(["base", *SPENN, "deep-ensemble", "mc-dropout", "mine", "yours"])
    assert len(set(everything.values())) == 8
    assert method_colours(["spenn-uniform"])["spenn-uniform"] == everything["spenn-uniform"]


@pytest.mark.parametrize("count", [1, 2, 499, 500, 501, 100_000])
def test_thinning_keeps_the_ends(count):
    keep = _thin(count)
    assert keep[0] == 0 and keep[-1] == count - 1 and len(keep) == min(count, 500)


def test_thinning_to_minima_loses_no_dip():
    values = np.ones(12_345)
    values[[7, 6_001]] = 1e-9, 1e-3
    keep = _thin_to_minima(values)
    assert len(keep) == 500 and {7, 6_001} <= set(keep.tolist())


def test_scales_are_common_only_to_the_comparable():
    limits = {"a": (-1.0, 1.0), "b": (-0.5, 0.2), "c": (-1e-3, 0.0), "d": (0.0, 2e-3)}
    assert _common(limits) == {
        "a": (-1.0, 1.0),
        "b": (-1.0, 1.0),
        "c": (-1e-3, 2e-3),
        "d": (-1e-3, 2e-3),
    }


@pytest.mark.parametrize("values", [[3e-4], [2e-4, 3e-4], [9e-5, 2e-3], [0.0, np.inf], []])
def test_log_axes_have_two_powers_of_ten(values):
    low, high = _log_limits(np.array(values))
    assert np.floor(np.log10(high)) > np.ceil(np.log10(low)) - 1e-9
    positive = [v for v in values if 0 < v < np.inf]
    assert all(low < v < high for v in positive)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0"),
        (0.25, "0.25"),
        (-0.5, "−0.5"),
        (123.4, "123"),
        (1.94e-4, "1.9·10⁻⁴"),
        (-3e12, "−3.0·10¹²"),
        (np.inf, "∞"),
        (np.nan, "NaN"),
    ],
)
def test_numbers(value, written):
    assert _number(value) == written
