"""Results of an inverse problem to disk."""

from dataclasses import asdict
from pathlib import Path

import numpy as np

from ..folders import to_toml, together, write_json
from ..report import InverseView, draw_inverse, write_inverse_page
from ._run import InverseRun


def write(view: InverseView, config: InverseRun, out: Path) -> None:
    """Write results, page, samples of the parameters, configuration and figures, or nothing."""
    with together(out) as made:
        draw_inverse(view, made / "figures")
        write_inverse_page(view, made / "report.html")
        samples = {
            f"{method}/{name}": values
            for method, parameters in view.parameters.items()
            for name, values in parameters.items()
        }
        np.savez(made / "samples.npz", **samples)  # pyright: ignore[reportArgumentType]
        (made / "config.toml").write_text(to_toml(asdict(config)))
        write_json(view.results, made / "results.json")
