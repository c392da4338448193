"""Configuration: frozen dataclasses, written beside every result."""

import tomllib
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path

MOST_LAYERS, MOST_UNITS, MOST_PRIORS = 50, 100_000, 300

TABLES = ("fit", "physics")
LARGEST_FILE = 1_000_000


@dataclass(frozen=True)
class FitConfig:
    """How a model is fitted. `docs/ablation.md` compares the defaults with others.

    **Base.** `width` and `depth` of every network; `steps` of the optimiser on batches of `batch`
    states with the peak `learning_rate`; `races` fresh starts run side by side for `race_steps` and
    the best goes on, because one in three stays long on a plateau without dissipation; where all of
    them are on it, others are tried, in up to `heats` heats. Which starts end several times higher
    than others shows late: a race as long as training finds the best. Residuals
    are weighted by component, its spread to the power `-2 * component_exponent`, and by state, one
    over the squared speed with a floor of `speed_floor` of its root mean square. Given derivatives
    that are not those of the states give way to these, unless `agreeing` is false or a block known.

    **Epinet.** `index` distribution and its `dimension`; width, depth, steps, batch and rate as
    above, and the `prior_width` of the fixed networks; `mean_weight`, how much more the mean over
    realisations counts than each of them does; `bootstrap`, how far the velocities that they learn
    lie apart where the base is wrong; `prior_scale`, the relative size of the perturbations before
    training, or `None` to find it on trajectories, of which a share `validation` is held out;
    `centred` indices for all blocks but dissipation.

    **Baselines.** A deep ensemble has `members`, their widths in turn those of `member_widths`,
    each trained for `member_steps` on batches of `member_batch`; Monte Carlo dropout is trained as
    the base is, with `dropout_width` units, and drops them at the rate `dropout`.
    """

    width: int = 30
    depth: int = 2
    steps: int = 16_000
    batch: int = 512
    learning_rate: float = 2e-2
    races: int = 4
    race_steps: int = 1000
    heats: int = 1
    component_exponent: float = 0.75
    speed_floor: float = 0.25
    agreeing: bool = True
    index: str = "half-normal"
    dimension: int = 5
    epinet_width: int = 20
    prior_width: int = 10
    epinet_depth: int = 1
    epinet_steps: int = 1000
    epinet_batch: int = 2048
    epinet_learning_rate: float = 1e-2
    mean_weight: float = 30.0
    bootstrap: float = 2.0
    prior_scale: float | None = None
    centred: bool = True
    validation: float = 0.05
    members: int = 50
    member_widths: tuple[int, ...] = (20, 30, 40)
    member_steps: int = 4000
    member_batch: int = 2048
    dropout: float = 0.2
    dropout_width: int = 30

    def __post_init__(self):
        """Refuse networks of nothing, and such that just laying them out would take hours."""
        units = (self.width, self.epinet_width, self.prior_width, self.dropout_width)
        for width in (*units, *self.member_widths):
            if not 1 <= width <= MOST_UNITS:
                raise ValueError(f"a layer has from 1 to {MOST_UNITS} units, not {width}.")
        if self.members > MOST_UNITS:
            raise ValueError(f"an ensemble has at most {MOST_UNITS} members, not {self.members}.")
        for depth in (self.depth, self.epinet_depth):
            if not 1 <= depth <= MOST_LAYERS:
                raise ValueError(f"a network has from 1 to {MOST_LAYERS} layers, not {depth}.")
        if not 1 <= self.dimension <= MOST_PRIORS / self.epinet_depth:
            raise ValueError(
                f"the dimension of the index, times epinet_depth, lies from 1 to {MOST_PRIORS}; "
                f"it is {self.dimension} x {self.epinet_depth}."
            )


def read_tables(path: Path) -> dict[str, dict]:
    """The tables `[fit]` and `[physics]` of a TOML file, either of which may be missing."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError(f"{path} is too large for a configuration.")
        tables = tomllib.loads(path.read_text())
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML file: {error}.") from None
    for name, table in tables.items():
        if name not in TABLES or not isinstance(table, dict):
            raise ValueError(f"{path} has {name!r}, but the tables are [fit] and [physics].")
    return {name: tables.get(name, {}) for name in TABLES}


def with_table(base: FitConfig, table: dict, path: Path) -> FitConfig:
    """A configuration with the values of a table `[fit]` in place of some of its own."""
    return replace(base, **{key: _checked(path, key, value) for key, value in table.items()})


def _checked(path: Path, key: str, value):
    """A value of the kind that the field has."""
    known = {field.name: field.default for field in fields(FitConfig)}
    if key not in known:
        near = get_close_matches(key, known, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(f"{path}: [fit] has no {key!r}{hint}; the fields are those of FitConfig.")
    default = known[key]
    if isinstance(default, tuple):
        value = tuple(value) if isinstance(value, list) else value
    elif isinstance(default, float) or default is None:
        value = float(value) if isinstance(value, int) and not isinstance(value, bool) else value
        default = 0.0
    if type(value) is not type(default) or (not isinstance(value, str | tuple) and value < 0):
        raise ValueError(f"{path}: {key} in [fit] cannot be {value!r}.")
    return value
