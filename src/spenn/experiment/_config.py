"""What a run is: system, protocol and sizes."""

from dataclasses import dataclass, field, replace

from ..config import FitConfig

SYSTEMS = ("oscillator", "chemical-motor", "viscoplastic")
PRESETS = ("quick", "paper")
REFERENCES = ("paper", "converged")
METHODS = (
    "spenn-half-normal",
    "spenn-uniform",
    "spenn-exponential",
    "deep-ensemble",
    "mc-dropout",
)


@dataclass(frozen=True)
class RunConfig:
    """One run of a benchmark system; written as `config.toml` beside its results."""

    system: str
    preset: str = "quick"
    reference: str = "paper"
    methods: tuple[str, ...] = METHODS[:1]
    samples: int = 100
    outside: int = 10
    seed: int = 0
    integrator: str = "rk4"
    fit: FitConfig = field(default_factory=FitConfig)

    def __post_init__(self):
        """Refuse what cannot be run, with a sentence."""
        choices = (
            ("system", self.system, SYSTEMS),
            ("preset", self.preset, PRESETS),
            ("reference", self.reference, REFERENCES),
            *(("method", method, METHODS) for method in self.methods),
        )
        for what, value, known in choices:
            if value not in known:
                raise ValueError(f"there is no {what} {value!r}; choose from {', '.join(known)}.")
        if not self.methods:
            raise ValueError(f"name at least one method of {', '.join(METHODS)}, or all.")
        if self.samples < 2:
            raise ValueError(f"the number of samples must be at least 2; it is {self.samples}.")
        if self.seed < 0:
            raise ValueError(f"the seed must not be negative; it is {self.seed}.")


# Samples per trajectory and training, by system: for two CPU cores, and for a GPU, which trains
# four starts to the end in little more time than one. So does a CPU with those of the bar, which
# differ most.
QUICK = FitConfig(members=10, member_steps=2000, member_batch=512)
PAPER = FitConfig(steps=20_000, race_steps=20_000, epinet_steps=3000, dropout_width=100)
# Its base is wrong at the edges of the data alone, where priors differ anyway: docs/ablation.md.
OSCILLATOR = {"bootstrap": 0.0}
BAR = {"member_widths": (20, 25, 30), "dropout": 0.1}
SMALL = {"width": 20, "epinet_width": 10, "prior_width": 5}
SIZES = {
    "quick": {
        "oscillator": (100, replace(QUICK, **OSCILLATOR)),
        "chemical-motor": (50, replace(QUICK, steps=20_000, width=50)),
        "viscoplastic": (50, replace(QUICK, steps=6000, race_steps=6000, **SMALL, **BAR)),
    },
    "paper": {
        "oscillator": (2000, replace(PAPER, **OSCILLATOR)),
        "chemical-motor": (2000, replace(PAPER, width=50, dropout_width=150)),
        "viscoplastic": (2000, replace(PAPER, **BAR)),
    },
}


def preset(name: str, system: str = "oscillator") -> RunConfig:
    """A run of a system with the sizes of a preset."""
    config = RunConfig(system, preset=name)  # refuses unknown names
    samples, fit = SIZES[name][system]
    return replace(config, samples=samples, fit=fit)
