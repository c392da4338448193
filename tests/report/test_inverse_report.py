"""An inverse problem as people read it: figures, page and table say what `results.json` says."""

import re
from copy import deepcopy
from io import StringIO

import matplotlib
import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from web import Reader

from spenn.report import (
    Estimate,
    InverseView,
    Panel,
    draw_inverse,
    print_inverse,
    write_inverse_page,
)
from spenn.report._inverse_words import convergence, ess_text, interval_text, plus_minus
from spenn.report.figures._inverse import draw_panels, draw_parameters
from spenn.report.page import render_inverse_page
from spenn.report.page._inverse_verdict import inverse_verdict

HOSTILE = "</title><b>&{{results}}[bold]$x$"
TRUTHS = {"a": 1.0, "b": -0.5}


# ---- Views made of nothing but NumPy ------------------------------------------------------------


def panel(name, rng, methods, points=300, measured=11):
    at = np.linspace(0, 10, points)
    truth = np.sin(at + rng.uniform())
    where = np.sort(rng.uniform(0, 10, measured))
    values = np.interp(where, at, truth) + 0.05 * rng.normal(size=measured)
    wave = 0.05 * np.sin(3 * at)
    estimates = {m: Estimate(truth + wave * rng.normal(), 0.05 + 0.02 * at / 10) for m in methods}
    return Panel(name, "x" if "=" in name else "t", at, truth, where, values, estimates)


def entry(method, panels, samples, rng):
    parameters = {
        name: {
            "mean": float(values.mean()),
            "std": float(values.std()),
            "interval95": [float(q) for q in np.quantile(values, (0.025, 0.975))],
            "truth": TRUTHS.get(name),
        }
        for name, values in samples.items()
    }
    found = {
        "samples": len(next(iter(samples.values()))),
        "rl2e": {p: float(rng.uniform(0.01, 0.1)) for p in panels},
        "inside": {p: float(rng.uniform(0.9, 1)) for p in panels},
        "parameters": parameters,
    }
    if method == "epinet":
        stages = {"train_base": 31.23, "train_epinet": 11.7, "sample": 0.42, "total": 43.35}
        return found | {"index": 8, "seconds": stages}
    return found | {
        "chains": 4,
        "acceptance": 0.83,
        "ess": {name: 400.0 + 100 * i for i, name in enumerate(samples)},
        "rhat": {name: 1.01 + 0.01 * i for i, name in enumerate(samples)},
        "seconds": {"warm_up": 20.5, "sample": 61.2, "total": 81.7, "per_gradient": 3.1e-4},
    }


def inverse_view(
    methods=("epinet", "hmc"), panels=("x1", "x2", "x3"), parameters=("a", "b"), problem=None
):
    rng = np.random.default_rng(0)
    centres = {n: TRUTHS.get(n, 2.0) for n in parameters}
    samples = {
        m: {n: c + 0.02 * rng.normal(size=1000) for n, c in centres.items()} for m in methods
    }
    results = {
        "problem": problem or "kraichnan-orszag",
        "data": {
            "file": "KO_train.mat",
            "field": 29,
            "source": 15,
            "noise": {"field": 0.05, "source": 0.1},
        },
        "seed": 0,
        "environment": {"spenn": "0.1.0", "jax": "0.10.2", "device": "TFRT_CPU_0"},
        "methods": {m: entry(m, panels, samples[m], rng) for m in methods},
        "paper": {
            m: {
                "rl2e": {p: 0.06 + 0.01 * i for i, p in enumerate(panels)},
                "parameters": {n: {"mean": c + 0.03, "std": 0.04} for n, c in centres.items()},
            }
            for m in ("epinet", "hmc")
        },
    }
    return InverseView(results, [panel(p, rng, methods) for p in panels], samples)


def unconverged():
    view = inverse_view()
    view.results["methods"]["hmc"] |= {
        "ess": {"a": 11.96, "b": 300.0},
        "rhat": {"a": 1.02, "b": 1.31},
    }
    return view


def printed(results, width=120):
    console = Console(width=width, record=True, file=StringIO())
    print_inverse(results, console)
    return console.export_text()


def texts(figures):
    """Everything written in figures."""
    kind = matplotlib.text.Text  # pyright: ignore
    return "\n".join(t.get_text() for f in figures.values() for t in f.findobj(kind))


def values(text):
    """Exact numbers behind what is shown."""
    return [float(v) for v in re.findall(r'data-value="([^"]+)"', text)]


# ---- Words --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [
        (1.00312, 0.0123, "1.003 ± 0.012"),
        (-0.5, 0.25, "−0.50 ± 0.25"),
        (123456.0, 1200.0, "(1.235 ± 0.012)·10⁵"),
        (2.5e-7, 1e-8, "(2.50 ± 0.10)·10⁻⁷"),
        (1.0, 0.0, "1.0000 ± 0.0000"),
        (12.0, 340.0, "12 ± 340"),
        (None, None, "– ± –"),
    ],
)
def test_an_estimate_has_the_digits_that_its_spread_gives_a_meaning(mean, std, text):
    assert plus_minus(mean, std) == text


def test_an_interval_is_written_like_its_estimate():
    assert interval_text([0.97911, 1.0271], 0.0123) == "0.979 to 1.027"
    assert interval_text([2.3e-7, 2.7e-7], 1e-8) == "2.30·10⁻⁷ to 2.70·10⁻⁷"
    assert interval_text(None, 0.1) == "– to –"


@pytest.mark.parametrize(
    ("ess", "rhat", "words"),
    [
        (100.0, 1.05, ""),
        (99.99, 1.0, "the effective sample size is 99.9 of 1000 for b (should be at least 100)"),
        (500.0, 1.0501, "split R-hat reaches 1.050 for b (should be at most 1.05)"),
        (None, 1.0, "the effective sample size is – of 1000 for b (should be at least 100)"),
        (500.0, float("nan"), "split R-hat reaches – for b (should be at most 1.05)"),
        (5.0, 2.0, "split R-hat reaches 2.000 for b (should be at most 1.05) and the effective"),
    ],
)
def test_chains_are_believed_within_limits_and_never_where_a_number_is_missing(ess, rhat, words):
    found = convergence(
        {"samples": 1000, "ess": {"a": 900.0, "b": ess}, "rhat": {"a": 1.0, "b": rhat}}
    )
    assert found is not None
    start = "the chains have not converged: " if words else ""
    assert found.warning.startswith(start + words) and bool(found.warning) == bool(words)


def test_the_size_of_a_sample_is_rounded_down():
    assert [ess_text(v) for v in (99.99, 100.7, 5.0, None)] == ["99.9", "100", "5", "–"]


# ---- Verdict ------------------------------------------------------------------------------------


def test_the_verdict_gives_each_parameter_with_its_interval_and_truth():
    view = inverse_view()
    found = view.results["methods"]["epinet"]["parameters"]
    (lead,) = inverse_verdict(view.results, "epinet").sentences
    for name, truth in (("a", "1"), ("b", "−0.5")):
        estimate = plus_minus(found[name]["mean"], found[name]["std"])
        ends = interval_text(found[name]["interval95"], found[name]["std"])
        assert (
            f"{name} = {estimate} (95\u00a0% interval {ends}, which holds the truth, {truth})"
            in lead
        )
    assert "misses" not in lead and "not known" not in lead


def test_the_verdict_says_when_the_truth_is_outside():
    view = inverse_view()
    view.results["methods"]["epinet"]["parameters"]["b"]["interval95"] = [-0.4, -0.3]
    (lead,) = inverse_verdict(view.results, "epinet").sentences
    assert lead.count("holds the truth, 1") == 1
    assert lead.count("which misses the truth, −0.5") == 1


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("c",), "The true value is not known."),
        (("c", "d"), "The true values are not known."),
        (("a", "c"), "The true value of c is not known."),
    ],
)
def test_the_verdict_says_when_nobody_knows_the_truth(names, words):
    view = inverse_view(parameters=names)
    (lead,) = inverse_verdict(view.results, "hmc").sentences
    assert lead.endswith(words)
    assert render_inverse_page(view)


def test_the_verdict_warns_of_chains_that_have_not_converged():
    view = unconverged()
    _, warning = inverse_verdict(view.results, "hmc").sentences
    assert "the chains have not converged: split R-hat reaches 1.310 for b" in warning
    assert "the effective sample size is 11.9 of 1000 for a" in warning
    assert len(inverse_verdict(view.results, "epinet").sentences) == 1
    marks = [f.mark for f in inverse_verdict(view.results, "hmc").facts if f.fine is False]
    assert marks == ["below 100", "above 1.05"]
    text = render_inverse_page(view)
    assert text.count('class="warning care"') == 1
    assert text.count("the chains have not converged.") == 2  # beside both rows of charts
    assert 'class="warning care"' not in render_inverse_page(inverse_view())


# ---- Page ---------------------------------------------------------------------------------------


def test_a_page_is_one_small_file_without_scripts_that_asks_for_nothing(tmp_path):
    write_inverse_page(inverse_view(), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|url\(|@import|//cdn|<script|style=", text)
    page = Reader(text)
    assert all(address.startswith("#") for address in page.addresses)
    assert not {"link", "iframe", "object", "embed", "img"} & {tag for tag, _ in page.tags}
    policy = next(a["content"] for _, a in page.tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    assert len(text.encode()) < 200_000


def test_a_page_stays_under_1_mb():
    names = tuple(f"x{i}" for i in range(60))
    view = inverse_view(panels=names, parameters=tuple(f"k{i}" for i in range(30)))
    rng = np.random.default_rng(0)
    panels = [panel(n, rng, ("epinet", "hmc"), 5000, 3000) for n in names]
    text = render_inverse_page(view._replace(panels=panels))
    assert 300_000 < len(text.encode()) < 1_000_000
    assert "The first 24 of 60 curves." in text and "The first 24 of 30 parameters." in text
    assert "x59" in text and "k29" in text  # in the tables


def test_numbers_on_the_page_are_those_of_the_results():
    view = inverse_view()
    text = render_inverse_page(view)
    sections = dict(re.findall(r'<section id="(\w+)"(.*?)</section>', text, re.S))
    methods = view.results["methods"]
    tables = re.findall(r"<table>.*?</table>", sections["fields"], re.S)
    expected = [v for e in methods.values() for k in ("rl2e", "inside") for v in e[k].values()]
    assert values(tables[0]) == expected
    expected = []
    for name in ("a", "b"):
        for found in methods.values():
            p = found["parameters"][name]
            expected += [p["mean"], p["std"], *p["interval95"], p["truth"]]
            expected += [found[k][name] for k in ("ess", "rhat") if k in found]
    assert values(sections["parameters"]) == expected
    chains = [methods["hmc"][k][n] for n in ("a", "b") for k in ("ess", "rhat")]
    assert values(sections["chains"]) == chains and "83\u00a0%" in sections["chains"]
    seconds = methods["epinet"]["seconds"], methods["hmc"]["seconds"]
    stages = ("train_base", "train_epinet", "warm_up", "sample", "total", "per_gradient")
    assert values(sections["times"]) == [s[k] for s in seconds for k in stages if k in s]
    assert "TFRT_CPU_0" in sections["times"] and ">0.31<" in sections["times"]


def test_the_paper_stands_beside_ours_with_the_ratio_of_errors():
    view = inverse_view()
    text = render_inverse_page(view).split('<section id="paper"')[1].split("</section>")[0]
    errors, parameters = re.findall(r"<table>.*?</table>", text, re.S)
    expected = []
    for method, found in view.results["methods"].items():
        ours, theirs = found["rl2e"].values(), view.results["paper"][method]["rl2e"].values()
        expected += [*ours, *theirs, *(a / b for a, b in zip(ours, theirs, strict=True))]
    np.testing.assert_allclose(values(errors), expected, rtol=1e-12)
    expected = []
    for name, truth in TRUTHS.items():
        for method, found in view.results["methods"].items():
            ours = found["parameters"][name]
            theirs = view.results["paper"][method]["parameters"][name]
            off = [abs(p["mean"] - truth) for p in (ours, theirs)]
            expected += [ours["mean"], ours["std"], off[0], theirs["mean"], theirs["std"], off[1]]
            expected.append(off[0] / off[1])
    np.testing.assert_allclose(values(parameters), expected, rtol=1e-12)


def test_a_method_that_only_the_paper_ran_has_its_row_and_no_ratio():
    text = render_inverse_page(inverse_view(("epinet",)))
    section = text.split('<section id="paper"')[1].split("</section>")[0]
    assert "HMC <small>in the paper</small>" in section
    assert "HMC <small>here" not in section and "HMC <small>ratio" not in section


def test_what_a_run_does_not_have_is_left_out():
    view = inverse_view(("epinet",), problem="mine")
    view.results["paper"] = {}
    text = render_inverse_page(view)
    identities = re.findall(r'<section id="(\w+)"', text)
    assert identities == ["fields", "parameters", "spread", "times"]
    assert "R-hat" not in text and "<h1>mine</h1>" in text


def test_how_the_spread_is_made_is_said_for_each_method():
    text = render_inverse_page(inverse_view())
    assert "Each realisation fits its own draw of the measurement noise" in text
    assert "from the posterior" in text
    assert "from the posterior" not in render_inverse_page(inverse_view(("epinet",)))


def test_every_chart_has_a_title_and_a_description_of_its_own():
    text = render_inverse_page(inverse_view())
    charts = re.findall(r'<svg viewBox.*?aria-labelledby="(\S+) (\S+)"><title id="(\S+)">', text)
    assert len(charts) == 2 * (3 + 2)
    assert len({c[0] for c in charts}) == len(charts) and all(c[0] == c[2] for c in charts)
    identities = re.findall(r' id="([^"]+)"', text)
    assert len(set(identities)) == len(identities)
    assert all(f' id="{d}"' in text for _, d, _ in charts)


def test_charts_hold_mean_truth_band_and_every_measurement():
    text = render_inverse_page(inverse_view(("epinet",), panels=("t = 0.4",), parameters=("a",)))
    chart = re.findall(r"<svg viewBox.*?</svg>", text, re.S)[0]
    assert [len(re.findall(f'class="{k}"', chart)) for k in ("mean", "truth", "band")] == [1, 1, 1]
    dots = re.search(r'class="measured" d="([^"]+)"', chart)
    assert dots and dots[1].count("M") == 11
    assert ">u at t = 0.4<" in chart and ">x<" in chart
    error = inverse_view(("epinet",), ("t = 0.4",), ("a",)).results["methods"]["epinet"]["rl2e"]
    assert f"RL2E {error['t = 0.4']:.3f}" in chart


def test_names_from_anywhere_stay_text(tmp_path):
    names = ("<b>", HOSTILE, "$\\bad$")
    view = inverse_view(panels=names, parameters=names, problem=HOSTILE)
    view.results["environment"]["device"] = view.results["data"]["file"] = HOSTILE
    view = view._replace(panels=[p._replace(axis=HOSTILE) for p in view.panels])
    view.results["methods"]["hmc"]["rhat"][HOSTILE] = 9.0
    text = render_inverse_page(view)
    assert "<b>" not in text and "&lt;b&gt;" in text
    assert not {"b", "script"} & {tag for tag, _ in Reader(text).tags}
    assert all(p.exists() for p in draw_inverse(view, tmp_path))  # and no formula is looked for
    written = texts(draw_panels(view)).split("\n")
    assert f"{HOSTILE[:23]}…" in written and not any(HOSTILE in text for text in written)
    rows = printed(view.results, 400).splitlines()
    assert sum(row.strip().startswith(HOSTILE) for row in rows) == 4 + 1  # the title too


def test_missing_and_infinite_numbers_are_shown_as_such(tmp_path):
    view = inverse_view()
    found = view.results["methods"]["hmc"]
    found["rl2e"]["x1"] = found["inside"]["x1"] = None
    found["parameters"]["a"] |= {"mean": None, "std": None, "interval95": [None, None]}
    found["ess"]["a"] = found["rhat"]["a"] = None
    nothing = Estimate(np.full(300, np.nan), np.full(300, np.inf))
    view.panels[0].estimates["hmc"] = nothing
    view.panels[1] = view.panels[1]._replace(
        truth=np.full(300, np.nan), measured=np.zeros(0), measured_at=np.zeros(0)
    )
    view.panels[2].measured[3] = np.nan
    view.parameters["hmc"]["a"] = np.full(1000, np.nan)
    view.parameters["hmc"]["b"] = np.full(1000, 0.3)
    text = render_inverse_page(view)
    assert "nan" not in text.lower().replace("kraichnan", "")
    assert "None" not in text
    assert all(p.exists() for p in draw_inverse(view, tmp_path))
    assert "–" in printed(view.results)


def test_views_and_results_are_left_as_they_were(tmp_path):
    view = inverse_view()
    before = deepcopy(view.results)
    render_inverse_page(view), draw_inverse(view, tmp_path), printed(view.results)
    assert view.results == before


# ---- Figures ------------------------------------------------------------------------------------


def test_two_figures_are_written_and_the_same_again(tmp_path):
    before = dict(matplotlib.rcParams)
    paths = draw_inverse(inverse_view(), tmp_path)
    assert [p.name for p in paths] == ["fields.png", "parameters.png"]
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    first = [p.read_bytes() for p in paths]
    for path in paths:
        with Image.open(path) as image:
            pixels = np.asarray(image.convert("L"))
            assert image.format == "PNG" and image.info["dpi"][0] == pytest.approx(160, abs=1)
        assert min(pixels.shape) > 400 and np.mean(pixels < 250) > 0.01
    assert [p.read_bytes() for p in draw_inverse(inverse_view(), tmp_path)] == first
    assert dict(matplotlib.rcParams) == before


def test_more_curves_take_more_figures(tmp_path):
    view = inverse_view(("epinet",), tuple(f"x{i}" for i in range(5)), tuple("abcde"))
    names = [p.name for p in draw_inverse(view, tmp_path)]
    assert names == ["fields.png", "fields-2.png", "parameters.png", "parameters-2.png"]


def test_titles_carry_the_numbers_of_the_results():
    view = inverse_view()
    for name, value in (("x1", 0.0123), ("x2", 0.0456), ("x3", 0.0789)):
        view.results["methods"]["hmc"]["rl2e"][name] = value
    view.results["methods"]["epinet"]["parameters"]["a"] |= {"mean": 1.00312, "std": 0.0123}
    written = texts(draw_panels(view))
    assert all(f"RL2E {error}" in written for error in ("0.012", "0.046", "0.079"))
    assert "HMC: ESS ≥ 400, R-hat ≤ 1.020 (converged)" in written
    assert {"x1", "x2", "x3", "t", "epinet", "HMC", "measured"} <= set(written.split("\n"))
    written = texts(draw_parameters(view))
    assert "1.003 ± 0.012" in written and "The truth is inside every 95 % interval" in written
    assert "ESS 400, R-hat 1.010" in written and "ESS 500, R-hat 1.020" in written
    assert {"a", "b", "samples"} <= set(written.split("\n"))


def test_figures_say_what_is_wrong():
    view = unconverged()
    view.results["methods"]["epinet"]["parameters"]["b"]["interval95"] = [-0.4, -0.3]
    written = texts(draw_parameters(view))
    assert "The truth is inside 3 of 4 intervals of 95 %" in written
    assert "ESS ≥ 11.9, R-hat ≤ 1.310 (not converged)" in written


# ---- Table --------------------------------------------------------------------------------------


def test_the_table_has_our_figures_and_the_papers_beneath():
    view = inverse_view()
    text = printed(view.results)
    for entry in view.results["methods"].values():
        assert all(plus_minus(p["mean"], p["std"]) in text for p in entry["parameters"].values())
        assert all(f"{error:.1e}" in text for error in entry["rl2e"].values())
    lines = [line.strip() for line in text.splitlines()]
    rows = [line for line in lines if line.startswith("a ")]
    assert ["epinet", "HMC", "paper: epinet", "paper: HMC"] == [
        re.split(r"  +", row)[1] for row in rows
    ]
    assert rows[1].endswith(("400   1.010", "400  1.010")) and rows[2].count("1.03 ± 0.04") == 1
    assert any("≥ 400" in line and "≤ 1.020" in line for line in lines)
    assert "not converged" not in text


def test_the_table_warns_and_fits_a_narrow_terminal():
    text = printed(unconverged().results, 80)
    assert "HMC: the chains have not converged: split R-hat reaches 1.310 for b" in text
    assert max(map(len, text.splitlines())) <= 80
    tables = [t.split("HMC: the")[0].split() for t in (text, printed(unconverged().results))]
    assert tables[0] == tables[1] and "0.999 ± 0.020" in text  # nothing is broken in two
    narrow = printed(unconverged().results, 60)
    assert all(narrow.count(word) >= 4 for word in ("epinet", "HMC", "0.020", "1.03"))
    alone = printed(inverse_view(("epinet",)).results)
    assert "R-hat" not in alone and "ESS" not in alone


# ---- In a browser -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inverse")
    views = {
        "both": unconverged(),
        "one": inverse_view(("epinet",), ("t = -1.5", "t = 0.4"), ("kappa1", "kappa2"), "kdv"),
        "hostile": inverse_view(panels=("<b>", 9 * HOSTILE), parameters=("<b>", 9 * HOSTILE)),
    }
    for name, view in views.items():
        write_inverse_page(view, folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in views}


@pytest.mark.parametrize("width", [360, 1100])
@pytest.mark.parametrize("name", ["both", "one", "hostile"])
def test_a_page_loads_without_a_complaint_and_fits_its_window(browser, pages, name, width):
    browser.visit(pages[name], width=width)
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert browser.errors() == []
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    assert browser.run("return document.documentElement.scrollWidth") <= width
    small = browser.run(
        "return [...document.querySelectorAll('svg[role=img] text')].filter("
        "t => t.getClientRects().length && t.getBoundingClientRect().height < 9).length"
    )
    assert small == 0


def test_text_of_a_chart_stays_inside_it(browser, pages):
    for name in ("both", "one", "hostile"):
        browser.visit(pages[name])
        outside = browser.run(
            "return [...document.querySelectorAll('.panels text')].filter(t => {"
            "const a = t.getBoundingClientRect(), b = t.closest('svg').getBoundingClientRect();"
            "return a.left < b.left - 1 || a.right > b.right + 1 || a.bottom > b.bottom + 1 })"
            ".map(t => t.textContent)"
        )
        assert outside == []


def test_light_and_dark_have_colours_of_their_own(browser, pages):
    found = []
    for scheme in ("light", "dark"):
        browser.visit(pages["both"], prefers_color_scheme=scheme)
        script = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
        asked = (("body", "backgroundColor"), (".mean", "stroke"), (".measured", "stroke"))
        found.append([browser.run(script, *where) for where in asked])
    assert all(light != dark for light, dark in zip(*found, strict=True))
