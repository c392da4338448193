"""Results of a run to disk."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from ..folders import to_toml, together, write_json
from ..report import draw_figures, write_comparison, write_page
from ._archive import read_archive, write_archive
from ._config import RunConfig
from ._parts import Parts
from ._run import Outcome
from ._views import page_view, run_view


def write(outcome: Outcome, config: RunConfig, out: Path) -> None:
    """Write results, page, models, configuration and figures; nothing, if anything fails.

    `model.spenn` is that of the first method; the others are beside it under their own names.
    """
    with together(out) as made:
        _show(outcome, made)
        names = {m: f"model-{m}.spenn" for m in config.methods}
        names[config.methods[0]] = "model.spenn"
        for method, name in names.items():
            outcome.models[method].save(made / name)
        (made / "config.toml").write_text(to_toml(asdict(config)))
        write_json(outcome.results, made / "results.json")
    Parts(out, config).clear()


def write_evaluation(outcome: Outcome, out: Path) -> None:
    """Write results, page and figures of a model on data."""
    with together(out) as made:
        _show(outcome, made)
        write_json(outcome.results, made / "results.json")


def rewrite_report(folder: Path) -> None:
    """Make page and figures of a folder anew; its results are left alone."""
    results, scene, parts = read_archive(folder)
    with together(folder) as made:
        _show(Outcome(results, {}, scene, parts), made)


def _show(outcome: Outcome, made: Path) -> None:
    """Figures, page, and what both can be made from again."""
    shown = outcome.scene, outcome.results, outcome.parts
    draw_figures(run_view(*shown), made / "figures")
    write_page(page_view(*shown), made / "report.html")
    write_archive(outcome.scene, outcome.parts, made)


def finished(config: RunConfig, out: Path) -> bool:
    """Whether a folder holds the results of just this run."""
    try:
        same = (out / "config.toml").read_text() == to_toml(asdict(config))
    except OSError:
        return False
    return same and (out / "results.json").exists()


def compare(folders: Iterable[Path], page: Path) -> None:
    """Write one page on the results of several folders beside it."""
    documents = {f.name: json.loads((f / "results.json").read_text()) for f in folders}
    write_comparison(documents, page)
