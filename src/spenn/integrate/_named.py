"""Integrators by name."""

from collections.abc import Callable

from ._adaptive import Adaptive
from ._collocation import Collocation
from ._integrator import AbstractIntegrator, RungeKutta


def _diffrax(solver: str) -> Adaptive:
    try:
        import diffrax
    except ImportError:
        raise ValueError(
            "this integrator is one of Diffrax: pip install 'spenn[diffrax]' first."
        ) from None
    return Adaptive(getattr(diffrax, solver)())


INTEGRATORS: dict[str, Callable[[], AbstractIntegrator]] = {
    "rk4": RungeKutta,
    "midpoint": lambda: Collocation(stages=1, discrete=False),
    "discrete-gradient": Collocation,
    "adaptive": lambda: _diffrax("Tsit5"),
    "stiff": lambda: _diffrax("Kvaerno5"),
}


def integrator(chosen: str | AbstractIntegrator) -> AbstractIntegrator:
    """An integrator by its name, or one of the user's own as it is."""
    if isinstance(chosen, AbstractIntegrator):
        return chosen
    if chosen not in INTEGRATORS:
        raise ValueError(
            f"there is no integrator {chosen!r}; choose from {', '.join(INTEGRATORS)}."
        )
    return INTEGRATORS[chosen]()
