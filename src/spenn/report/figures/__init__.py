"""The figures of a run: forecasts, coverage, errors and the two laws.

Colour always means method, here and from one figure to the next. Titles state what was found, and
are worked out from the numbers shown. Figures are made without pyplot, and leave no state behind.
"""

from pathlib import Path

import matplotlib.style

from .._view import RunView
from ._coverage import draw_coverage
from ._drawing import STYLE, _save
from ._errors import draw_errors
from ._fields import draw_fields
from ._inverse import draw_inverse as draw_inverse
from ._laws import draw_laws
from ._trajectories import draw_trajectories


def draw_figures(view: RunView, folder: Path) -> list[Path]:
    """Write the figures of a run into `folder`, and say which files they are.

    `trajectories.png` (and `trajectories-2.png`, ... beyond three variables or three methods),
    `coverage.png`, `errors.png` and `laws.png`; `fields-<method>.png` where variables are fields.
    The caller makes the folder.
    """
    with matplotlib.style.context(["default", STYLE]):
        figures = draw_trajectories(view)
        figures |= {
            "coverage": draw_coverage(view),
            "errors": draw_errors(view),
            "laws": draw_laws(view),
        }
        figures |= draw_fields(view)
        return [_save(figure, Path(folder) / f"{name}.png") for name, figure in figures.items()]
