"""What a run is: system, protocol and sizes."""

from dataclasses import dataclass, field

from ..config import FitConfig

SYSTEMS = ("oscillator",)
PRESETS = ("quick", "paper")
REFERENCES = ("paper", "converged")
METHODS = ("spenn-half-normal", "spenn-uniform", "spenn-exponential")


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


PAPER = FitConfig(steps=10_000, batch=8192)
QUICK = FitConfig(steps=5000, batch=2048)


def preset(name: str) -> RunConfig:
    """Sizes for two CPU cores (`quick`) or the paper's own (`paper`, meant for a GPU)."""
    if name == "paper":
        return RunConfig("oscillator", preset=name, samples=2000, fit=PAPER)
    return RunConfig("oscillator", preset=name, fit=QUICK)
