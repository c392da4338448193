"""What page, figures and table say of an inverse problem: names, judgements, numbers as text."""

from math import floor, isfinite, log10
from typing import NamedTuple

LABELS = {"epinet": "epinet", "hmc": "HMC"}
PROBLEMS = {"kraichnan-orszag": "Kraichnan–Orszag system", "kdv": "Korteweg–de Vries equation"}
LEAST_ESS, MOST_RHAT = 100, 1.05
"""Beyond these, a chain has not been run for long enough to be believed."""
MISSING = "–"


class Convergence(NamedTuple):
    """How far chains can be believed: the worst of everything that was looked at."""

    ess: float | None
    ess_of: str
    rhat: float | None
    rhat_of: str
    warning: str
    """A sentence without its capital, or nothing where there is nothing to warn of."""


def label(method: str) -> str:
    """The name of a method, for people."""
    return LABELS.get(method, method)


def problem_title(results: dict) -> str:
    """The problem in words, or under the name that a user gave it."""
    name = str(results["problem"])
    return PROBLEMS.get(name, name)


def shortened(text: str, most: int = 24) -> str:
    """As much of a name as an axis has room for."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def parameter_names(results: dict) -> list[str]:
    """Every parameter that a method has estimated, in order."""
    return _names(results, "parameters")


def panel_names(results: dict) -> list[str]:
    """Every curve of the field that has an error or a share inside, in order."""
    return list(dict.fromkeys([*_names(results, "rl2e"), *_names(results, "inside")]))


def _names(results: dict, key: str) -> list[str]:
    entries = results["methods"].values()
    return list(dict.fromkeys(name for entry in entries for name in entry.get(key) or {}))


def truth_of(results: dict, name: str) -> float | None:
    """The true value of a parameter, where anybody knows it."""
    found = (e["parameters"].get(name, {}).get("truth") for e in results["methods"].values())
    return next((truth for truth in found if truth is not None), None)


def holds_truth(parameter: dict) -> bool | None:
    """Whether the 95 % interval holds the truth; `None` where one of them is not known."""
    low, high = parameter.get("interval95") or (None, None)
    truth = parameter.get("truth")
    return None if low is None or high is None or truth is None else low <= truth <= high


def distance(parameter: dict, truth: float | None) -> float | None:
    """How far the mean is from the truth."""
    mean = parameter.get("mean")
    return None if mean is None or truth is None else abs(mean - truth)


def convergence(entry: dict) -> Convergence | None:
    """The state of the chains; `None` for a method that has none."""
    if not (entry.get("ess") or entry.get("rhat")):
        return None
    ess_of, ess = _worst(entry.get("ess"), smallest=True)
    rhat_of, rhat = _worst(entry.get("rhat"), smallest=False)
    faults = []
    if rhat_of and not (rhat is not None and rhat <= MOST_RHAT):
        faults.append(
            f"split R-hat reaches {rhat_text(rhat)} for {rhat_of} (should be at most {MOST_RHAT})"
        )
    if ess_of and not (ess is not None and ess >= LEAST_ESS):
        drawn = f" of {entry['samples']}" if "samples" in entry else ""
        text = f"the effective sample size is {ess_text(ess)}{drawn} for {ess_of}"
        faults.append(f"{text} (should be at least {LEAST_ESS})")
    warning = f"the chains have not converged: {' and '.join(faults)}" if faults else ""
    return Convergence(ess, ess_of, rhat, rhat_of, warning)


def _worst(found: dict | None, smallest: bool) -> tuple[str, float | None]:
    """One that is not finite is worse than any other."""
    if not found:
        return "", None
    known = {n: v if v is not None and isfinite(v) else None for n, v in found.items()}
    unknown = [n for n, v in known.items() if v is None]
    if unknown:
        return unknown[0], None
    name = (min if smallest else max)(known, key=lambda n: known[n])  # type: ignore[arg-type]
    return name, known[name]


def ess_text(value: float | None) -> str:
    """Rounded down, so that 99.9 is not taken for enough."""
    if value is None or not isfinite(value):
        return MISSING
    return f"{floor(value)}" if value >= LEAST_ESS else f"{floor(10 * value) / 10:g}"


def rhat_text(value: float | None) -> str:
    """Three decimals: the limit has two."""
    return MISSING if value is None or not isfinite(value) else f"{value:.3f}"


def plus_minus(mean: float | None, std: float | None) -> str:
    """'1.003 ± 0.012': the mean to the second digit of its standard deviation."""
    texts, unit = _aligned([mean, std], mean, std)
    text = " ± ".join(texts)
    return f"({text}){unit}" if unit else text


def interval_text(ends: list[float] | tuple[float, ...] | None, std: float | None) -> str:
    """'0.979 to 1.027', with as many digits as `plus_minus` gives."""
    low, high = ends or (None, None)
    size = None if low is None or high is None else max(abs(low), abs(high))
    texts, unit = _aligned([low, high], size, std)
    return f"{texts[0]}{unit} to {texts[1]}{unit}"


def value_text(value: float | None) -> str:
    """A number that people chose, as short as it is."""
    return MISSING if value is None else f"{value:.6g}".replace("-", "−")


def _aligned(values, mean: float | None, std: float | None) -> tuple[list[str], str]:
    """All with the decimals that the standard deviation has meaning for, and a power of ten."""
    sizes = [abs(v) for v in (mean, std) if v is not None and isfinite(v) and v != 0]
    largest = max(sizes, default=1.0)
    power = 0 if 1e-3 <= largest < 1e5 else floor(log10(largest))
    spread = std if std is not None and isfinite(std) and std > 0 else 1e-3 * largest
    decimals = min(max(1 - floor(log10(spread)) + power, 0), 12)
    texts = [_fixed(v, power, decimals) for v in values]
    superscripts = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return texts, f"·10{str(power).translate(superscripts)}" if power else ""


def _fixed(value: float | None, power: int, decimals: int) -> str:
    if value is None or not isfinite(value):
        return MISSING
    return f"{value / 10.0**power:.{decimals}f}".replace("-", "−")
