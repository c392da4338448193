"""What is shown of an inverse problem: plain arrays, so that figures and page need nothing else."""

from typing import NamedTuple

from jaxtyping import Float
from numpy import ndarray


class Estimate(NamedTuple):
    """One method's answer along a panel."""

    mean: Float[ndarray, " point"]
    std: Float[ndarray, " point"]


class Panel(NamedTuple):
    """One curve: a component of the field over time, or the field over space at one time."""

    name: str
    """As in `results.json`, such as `x1` or `t = 0.4`."""
    axis: str
    """Name of the abscissa, such as `t`."""
    at: Float[ndarray, " point"]
    truth: Float[ndarray, " point"]
    measured_at: Float[ndarray, " measurement"]
    measured: Float[ndarray, " measurement"]
    """Measurements of this curve; may be empty."""
    estimates: dict[str, Estimate]
    """By method, `epinet` or `hmc`."""


class InverseView(NamedTuple):
    """Everything that figures and page of an inverse problem show."""

    results: dict
    """The content of `results.json`."""
    panels: list[Panel]
    parameters: dict[str, dict[str, Float[ndarray, " sample"]]]
    """Samples by method, then by name of the parameter."""
