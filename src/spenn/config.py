"""Configuration: frozen dataclasses, written beside every result."""

from dataclasses import dataclass

MOST_LAYERS, MOST_UNITS, MOST_PRIORS = 50, 100_000, 300


@dataclass(frozen=True)
class FitConfig:
    """How a model is fitted. `docs/ablation.md` compares the defaults with others.

    **Base.** `width` and `depth` of every network; `steps` of the optimiser on batches of `batch`
    states with the peak `learning_rate`; `races` fresh starts run side by side for `race_steps` and
    the best goes on, because one start in three ends on a plateau without dissipation. Residuals
    are weighted by component, its spread to the power `-2 * component_exponent`, and by state, one
    over the squared speed with a floor of `speed_floor` of its root mean square.

    **Epinet.** `index` distribution and its `dimension`; width, depth, steps, batch and rate as
    above, and the `prior_width` of the fixed networks; `mean_weight`, how much more the mean over
    realisations counts than each of them does; `prior_scale`, the relative size of the
    perturbations before training, or `None` to find it on trajectories, of which a share
    `validation` is held out; `centred` indices for all blocks but dissipation.

    **Baselines.** A deep ensemble has `members`, their widths in turn those of `member_widths`,
    each trained for `member_steps` on batches of `member_batch`; Monte Carlo dropout is trained as
    the base is, with `dropout_width` units, and drops them at the rate `dropout`.
    """

    width: int = 30
    depth: int = 2
    steps: int = 4000
    batch: int = 4096
    learning_rate: float = 2e-2
    races: int = 4
    race_steps: int = 300
    component_exponent: float = 0.75
    speed_floor: float = 0.25
    index: str = "half-normal"
    dimension: int = 5
    epinet_width: int = 20
    prior_width: int = 10
    epinet_depth: int = 1
    epinet_steps: int = 1000
    epinet_batch: int = 2048
    epinet_learning_rate: float = 1e-2
    mean_weight: float = 30.0
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
        """Refuse networks that are out of all proportion: just laying them out would take hours."""
        units = (self.width, self.epinet_width, self.prior_width, self.dropout_width)
        if max(*units, *self.member_widths, self.members) > MOST_UNITS:
            raise ValueError(f"networks have at most {MOST_UNITS} units in a layer, or members.")
        if self.depth > MOST_LAYERS:
            raise ValueError(f"networks have at most {MOST_LAYERS} layers; depth is {self.depth}.")
        if self.dimension * self.epinet_depth > MOST_PRIORS:
            raise ValueError(
                f"the dimension of the index times epinet_depth is at most {MOST_PRIORS}; "
                f"it is {self.dimension} x {self.epinet_depth}."
            )
