"""Results to disk: everything is made in a temporary folder and moved into place at the end."""

import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from ..report import draw_figures, write_comparison, write_page
from ._config import RunConfig
from ._parts import Parts
from ._run import Outcome


def prepare(out: Path) -> None:
    """Make sure that results can be written, before any work is done."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise ValueError(f"cannot write to {out}: {error.strerror}.") from None


def write(outcome: Outcome, config: RunConfig, out: Path) -> None:
    """Write results, page, models, configuration and figures; nothing, if anything fails.

    `model.spenn` is that of the first method; the others are beside it under their own names.
    """
    made = Path(tempfile.mkdtemp(dir=out, prefix=".partial-"))
    try:
        (made / "figures").mkdir()
        draw_figures(outcome.view, made / "figures")
        write_page(outcome.page, made / "report.html")
        names = {m: f"model-{m}.spenn" for m in config.methods}
        names[config.methods[0]] = "model.spenn"
        for method, name in names.items():
            outcome.models[method].save(made / name)
        (made / "config.toml").write_text(to_toml(asdict(config)))
        text = json.dumps(outcome.results, indent=1, allow_nan=False)
        (made / "results.json").write_text(text + "\n")
        shutil.rmtree(out / "figures", ignore_errors=True)
        # The results go last: where they are, the rest is too.
        for name in ("figures", *names.values(), "report.html", "config.toml", "results.json"):
            (made / name).replace(out / name)
        Parts(out, config).clear()
    finally:
        shutil.rmtree(made, ignore_errors=True)


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


def to_toml(table: Mapping, prefix: str = "") -> str:
    """A flat TOML document with one level of tables; `None` is left out, as TOML has no null."""
    plain = {k: v for k, v in table.items() if v is not None and not isinstance(v, Mapping)}
    lines = [f"{key} = {_toml_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{prefix}{key}]", to_toml(value, f"{prefix}{key}.").rstrip("\n")]
    return "\n".join(lines) + "\n"


def _toml_value(value) -> str:
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    # Strings, numbers and booleans are written alike in JSON and TOML.
    return json.dumps(value)
