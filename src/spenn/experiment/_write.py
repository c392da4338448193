"""Results of a run to disk."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from ..folders import to_toml, together, write_json
from ..report import draw_figures, write_comparison, write_page
from ._config import RunConfig
from ._parts import Parts
from ._run import Outcome


def write(outcome: Outcome, config: RunConfig, out: Path) -> None:
    """Write results, page, models, configuration and figures; nothing, if anything fails.

    `model.spenn` is that of the first method; the others are beside it under their own names.
    """
    with together(out) as made:
        draw_figures(outcome.view, made / "figures")
        write_page(outcome.page, made / "report.html")
        names = {m: f"model-{m}.spenn" for m in config.methods}
        names[config.methods[0]] = "model.spenn"
        for method, name in names.items():
            outcome.models[method].save(made / name)
        (made / "config.toml").write_text(to_toml(asdict(config)))
        write_json(outcome.results, made / "results.json")
    Parts(out, config).clear()


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
