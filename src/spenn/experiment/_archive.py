"""`report.npz`: all that figures and page show beyond `results.json`, so both can be made again."""

import json
import zipfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ..report import PageMethod
from ._layout import Layout
from ._parts import Part
from ._scene import Scene

NAME = "report.npz"
TEXTS = ("title", "labels", "time_label", "calibration_trajectories")
FORMAT = 1


def write_archive(scene: Scene, parts: dict[str, Part], folder: Path) -> None:
    """Write the arrays of scene and parts into a folder."""
    layout = scene.layout
    texts = {"format": FORMAT, "names": layout.names, "methods": list(parts)}
    texts |= {name: getattr(scene, name) for name in TEXTS}
    arrays = {
        "texts": np.array(json.dumps(texts)),
        "times": scene.times,
        "truth": scene.truth,
        "free": layout.free,
        "variables": layout.variables,
    }
    arrays |= {} if layout.places is None else {"places": layout.places}
    for number, part in enumerate(parts.values()):
        shown = {k: v for k, v in asdict(part.shown).items() if isinstance(v, np.ndarray)}
        shown |= {} if part.draws is None else {"draws": part.draws}
        arrays |= {f"{number}.{key}": value for key, value in shown.items()}
    np.savez_compressed(folder / NAME, allow_pickle=False, **arrays)


def read_archive(folder: Path) -> tuple[dict, Scene, dict[str, Part]]:
    """Results, scene and parts of a folder that a run or an evaluation left."""
    try:
        results = json.loads((folder / "results.json").read_text())
        with np.load(folder / NAME, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        texts = json.loads(str(arrays["texts"]))
        layout = Layout(
            tuple(texts["names"]), arrays["free"], arrays["variables"], arrays.get("places")
        )
        labels = tuple(texts["labels"])
        shown = (layout, arrays["times"], arrays["truth"], texts["calibration_trajectories"])
        scene = Scene(texts["title"], labels, texts["time_label"], *shown)
        parts = {
            name: _part(name, results["methods"][name], number, arrays)
            for number, name in enumerate(texts["methods"])
        }
    except FileNotFoundError as error:
        raise ValueError(
            f"{folder} holds no {Path(error.filename).name}: name a folder that spenn run or "
            "spenn evaluate wrote."
        ) from None
    except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        raise ValueError(f"{folder / NAME} or the results beside it are damaged.") from None
    return results, scene, parts


def _part(name: str, entry: dict, number: int, arrays: dict[str, np.ndarray]) -> Part:
    prefix = f"{number}."
    own = {key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)}
    draws = own.pop("draws", None)
    return Part(entry, PageMethod(name=name, **own), draws)
