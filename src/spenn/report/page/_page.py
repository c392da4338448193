"""The page put together: template, style, script and data in one file that asks for nothing."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from html import escape
from importlib.resources import files
from math import isfinite
from pathlib import Path

from .._view import PageView
from ..figures._drawing import method_colours
from . import _tables as tables
from ._colours import readable
from ._pack import Kept, choose, entries, pack
from ._text import bare, shown
from ._verdict import LEVEL, Fact, best_method, variable_names, verdict

LIMIT = 4_850_000
"""Bytes of a page: small enough to send by mail."""
SCRIPTS = ("numbers.js", "data.js", "drawing.js", "charts.js", "maps.js", "main.js")
LIGHT, DARK = "#ffffff", "#16191d"
NO_DATA: dict = {"times": [], "levels": [], "trajectories": 0, "variables": [], "methods": []}


def write_page(view: PageView, path: Path) -> None:
    """Write the report of a run as one self-contained HTML file of less than 5 MB."""
    Path(path).write_text(render_page(view), encoding="utf-8", newline="\n")


def render_page(view: PageView) -> str:
    """The report of a run as the text of one HTML file."""
    # All but the arrays first: what it leaves of the limit is what they may take.
    kept = choose(view, LIMIT)
    frame = len(_assemble(view, kept, NO_DATA).encode())
    kept = choose(view, LIMIT - frame)
    return _assemble(view, kept, pack(view, kept))


def _assemble(view: PageView, kept: Kept, packed: dict) -> str:
    style = asset("style.css") + method_styles(m.name for m in view.methods)
    script = _script()
    parts = {
        "policy": policy(style, script),
        "title": escape(view.title),
        "style": style,
        "intro": _intro(view),
        "verdicts": _verdicts(view),
        "shown": escape(_what_is_shown(view, kept)),
        "coverage": tables.coverage(view, LEVEL),
        "correlation": tables.per_variable(
            view,
            "error_spread_correlation",
            "Rank correlation of error and spread over all test trajectories",
        ),
        "laws": tables.laws(view),
        "scores": tables.scores(view),
        "errors": tables.errors(view),
        "outside": tables.per_variable(
            view,
            "spread_outside",
            "How many times wider the spread is outside the range of the training data",
        ),
        "without_fields": "" if view.places is not None else " hidden",
        "without_uncertainty": "" if _uncertain(view) else " hidden",
        "provenance": escape(provenance(view.results)),
        "results": _json(view.results),
        "view": _json(_described(view) | packed),
        "script": script,
    }
    # One pass: nothing that is filled in is looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], asset("page.html"))


def _uncertain(view: PageView) -> bool:
    return any("coverage" in view.results["methods"][m.name] for m in view.methods)


def asset(name: str) -> str:
    return (files("spenn.report.page") / "assets" / name).read_text(encoding="utf-8")


def _script() -> str:
    body = "\n".join(asset(name) for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{body}\n}})();\n'


def document(title: str, style: str, body: str) -> str:
    """A page without scripts; title and body are HTML already."""
    return f"""<!doctype html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy(style, "")}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def policy(style: str, script: str) -> str:
    """This style and this script, and nothing from anywhere else."""
    rules = {"style-src": style, "script-src": script}
    hashes = [
        f"{rule} 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
        for rule, text in rules.items()
    ]
    return "; ".join(["default-src 'none'", *hashes, "base-uri 'none'", "form-action 'none'"])


def _json(document: dict) -> str:
    """JSON that no string in it can end: every `<`, `>` and `&` is written as an escape."""
    text = json.dumps(_plain(document), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _plain(value):
    """JSON has no infinity and no NaN: null stands for them, as in `results.json`."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _described(view: PageView) -> dict:
    return {
        "names": variable_names(view.results),
        "labels": list(view.labels),
        "timeLabel": view.time_label,
        "placeLabel": view.place_label,
        "opening": best_method(view),
    }


def method_styles(names: Iterable[str]) -> str:
    """A class per method that sets its colour, readable on a light and on a dark page."""
    colours = method_colours(names).values()
    light, dark = (
        "".join(f".m{i}{{--method:{readable(colour, page)}}}\n" for i, colour in enumerate(colours))
        for page in (LIGHT, DARK)
    )
    return f"{light}@media screen and (prefers-color-scheme: dark) {{\n{dark}}}\n"


def _intro(view: PageView) -> str:
    data, names = view.results.get("data", {}), variable_names(view.results)
    variables = f"{len(names)} {'variable' if len(names) == 1 else 'variables'}"
    text = f"Dynamics of {variables} ({', '.join(map(bare, view.labels))})"
    if data.get("train"):
        text += f", learned from {data['train']} trajectories"
    if data.get("calibration"):
        text += f", calibrated on {data['calibration']} others"
    if data.get("test"):
        text += f" and tested on {data['test']} that were used for neither"
    return escape(text + ".")


def _verdicts(view: PageView) -> str:
    opening = best_method(view)
    return "".join(_verdict(view, i, m.name, m.name == opening) for i, m in enumerate(view.methods))


def _verdict(view: PageView, index: int, name: str, opens: bool) -> str:
    found = verdict(view, name)
    several = len(view.methods) > 1
    scored = sum("energy_score" in view.results["methods"][m.name] for m in view.methods)
    why = ", the method with the lowest energy score" if opens and scored > 1 else ""
    heading = tables.method_heading(view, name)
    title = f'<p class="which">{heading}<span>{escape(why)}</span></p>' if several else ""
    first, *rest = found.sentences
    return (
        f'<div class="verdict" data-method="{index}"{"" if opens else " hidden"}>{title}'
        f'<p class="lead">{escape(first)}</p><p>{escape(" ".join(rest))}</p>'
        f'<dl class="facts">{"".join(fact(f) for f in found.facts)}</dl></div>'
    )


def fact(found: Fact) -> str:
    kind, sign = ("fine", "✓") if found.fine else ("care", "!")
    sign = f'<span aria-hidden="true">{sign}</span>'
    mark = f'<span class="mark {kind}">{sign} {escape(found.mark)}</span>' if found.mark else ""
    return (
        f"<div><dt>{escape(found.label)}</dt><dd>{shown(found.text, found.value)}"
        f"{mark}<small>{escape(found.note)}</small></dd></div>"
    )


def _what_is_shown(view: PageView, kept: Kept) -> str:
    """What the charts leave out, so that nobody takes them for everything."""
    tested = max(view.results.get("data", {}).get("test") or 0, len(view.truth))
    count = len(kept.trajectories)
    which = f"the first {count} of {tested} test trajectories"
    if count == 1 and tested > 1:
        which = f"one of {tested} test trajectories"
    if count == tested:
        which = "every test trajectory" if count > 1 else "the test trajectory"
    text = f"To keep this file small, the charts hold {which}"
    pairs = (
        (len(kept.times), len(view.times), "times"),
        (len(kept.levels), len(view.levels), "levels"),
        (sum(map(len, kept.entries)), sum(map(len, entries(view))), "places"),
    )
    text += "".join(f", {few} of {all_} {what}" for few, all_, what in pairs if few < all_)
    whole = count == tested and all(few == all_ for few, all_, _ in pairs)
    scores = "Scores and coverages are over all of the test data."
    return scores if whole else f"{text}. {scores}"


def provenance(results: dict) -> str:
    environment = results.get("environment", {})
    parts = [
        f"system {results['system']}" if "system" in results else "",
        f"preset {results['preset']}" if "preset" in results else "",
        f"seed {results['seed']}" if "seed" in results else "",
        f"spenn {environment['spenn']}" if "spenn" in environment else "",
        f"JAX {environment['jax']}" if "jax" in environment else "",
        f"device {environment['device']}" if "device" in environment else "",
    ]
    return " · ".join(part for part in parts if part)
