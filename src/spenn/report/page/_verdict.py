"""What a run amounts to, in plain sentences made from its numbers."""

from dataclasses import dataclass
from math import inf

from .._view import PageView
from ._text import bare, listed, number, percent, relative, span

LEVEL = 0.9
ROUNDING = 1e-6  # of a coverage, which is a mean in float32
ENERGY_ROUNDING = 1e-4  # of the range of the energy, along a whole forecast in float32
ENTROPY_ROUNDING = 1e-6  # of the range of the entropy, in one step


@dataclass(frozen=True)
class Fact:
    """One number at a glance: what it is, the text, the exact value, and whether it is fine."""

    label: str
    text: str
    value: float | None
    note: str
    fine: bool | None = None
    """`None` where there is nothing to judge."""
    mark: str = ""
    """The judgement, in a word or two."""


@dataclass(frozen=True)
class Verdict:
    """Sentences for the top of the page, and the facts they rest on."""

    sentences: tuple[str, ...]
    facts: tuple[Fact, ...]


def variable_names(results: dict) -> list[str]:
    """Short names of the variables, in order."""
    return list(results["floor"]["mae"])


def total_seconds(entry: dict) -> float:
    """Seconds of everything that a method needed."""
    seconds = entry["seconds"]
    return seconds.get("total", sum(seconds.values()))


def best_method(view: PageView) -> str:
    """The method to open with: the lowest energy score, or the first if none has one."""
    entries = view.results["methods"]
    scores = {m.name: entries[m.name].get("energy_score") for m in view.methods}
    known = {name: score for name, score in scores.items() if score is not None}
    return min(known, key=lambda name: known[name]) if known else view.methods[0].name


def verdict(view: PageView, method: str) -> Verdict:
    """The verdict on one method."""
    entry = view.results["methods"][method]
    accuracy, coverage = _accuracy(view, entry), _coverage(view, entry)
    energy, entropy = _energy(entry), _entropy(entry)
    diverged, cost = _diverged(entry), _cost(view, entry)
    laws = [sentence for sentence, _ in filter(None, (energy, entropy))]
    joined = (f"{', and '.join(laws)}.",) if laws else ()
    before, after = (tuple(filter(None, pair)) for pair in ((accuracy, coverage), (diverged, cost)))
    sentences = (*(s for s, _ in before), *map(_capital, joined), *(s for s, _ in after))
    found = filter(None, (accuracy, coverage, energy, entropy, diverged, cost))
    return Verdict(sentences, tuple(fact for _, fact in found))


def _accuracy(view: PageView, entry: dict) -> tuple[str, Fact]:
    names = variable_names(view.results)
    errors = {n: _finite(entry["rl2e"][n]["median"]) for n in names}
    worst = max(names, key=lambda n: errors[n])
    label = bare(view.labels[names.index(worst)])
    floor = view.results["floor"].get("rl2e", {}).get(worst)
    if errors[worst] == inf:
        sentence = f"Half of the forecasts or more diverge in {label}."
        return sentence, Fact("Worst typical error", "∞", None, label, False, "diverges")
    ends = [relative(e) for e in (min(errors.values()), errors[worst])]
    sentence = f"In a typical test trajectory the forecast is off by {span(ends)}"
    sentence += f"; {label} is the hardest." if len(names) > 1 else "."
    note = f"{label}; relative to its size, median over test trajectories"
    if floor:
        note += f". Exact physics through the same time steps: {relative(floor)}"
    return sentence, Fact("Worst typical error", ends[1], errors[worst], note)


def _coverage(view: PageView, entry: dict) -> tuple[str, Fact] | None:
    coverage = entry.get("coverage")
    if coverage is None:
        return "It is one model, and states no uncertainty.", _no_uncertainty()
    if LEVEL not in coverage["levels"]:
        return None
    at = coverage["levels"].index(LEVEL)
    names = variable_names(view.results)
    labels = {n: bare(text) for n, text in zip(names, view.labels, strict=True)}
    held = {n: coverage["calibrated"][n][at] or 0.0 for n in names}
    raw = [coverage["raw"][n][at] or 0.0 for n in names]
    worst = max(names, key=lambda n: abs(held[n] - LEVEL))
    least = _least_coverage(view.results)
    ends = [percent(s) for s in (min(held.values()), max(held.values()))]
    aim = percent(LEVEL)
    sentence = f"Its {aim} intervals held the truth {span(ends)} of the time in tests"
    narrow = [labels[n] for n in names if held[n] < least - ROUNDING]
    tests = view.results.get("data", {}).get("test")
    if narrow:
        sentence += f", less than they promise for {listed(narrow)}."
    else:
        sentence += f", as close as {tests} test trajectories can tell." if tests else "."
    note = f"furthest from {aim}: {labels[worst]}. Before calibration "
    note += span([percent(min(raw)), percent(max(raw))])
    mark = "too narrow" if narrow else "within chance"
    fact = Fact(f"{aim} intervals hold", percent(held[worst]), held[worst], note, not narrow, mark)
    return sentence, fact


def _no_uncertainty() -> Fact:
    return Fact("90\u00a0% intervals hold", "none stated", None, "a single model has no spread")


def _least_coverage(results: dict) -> float:
    """Coverage below which intervals are too narrow, not unlucky: as in the picture of coverage."""
    from spenn.calibrate import coverage_range, fewest  # brings in JAX

    data = results.get("data", {})
    calibration, tests = data.get("calibration") or 0, data.get("test") or 0
    if calibration < fewest(LEVEL) or not tests:
        return LEVEL - 0.05
    return coverage_range(calibration, LEVEL, tests=tests)[0]


def _energy(entry: dict) -> tuple[str, Fact] | None:
    if "max_energy_drift" not in entry.get("laws", {}):
        return None
    drift = entry["laws"]["max_energy_drift"]
    kept = drift is not None and drift <= ENERGY_ROUNDING
    text = number(_finite(drift))
    note = "largest change along any sampled forecast, as a share of the range of the energy"
    sentence = f"Energy is conserved to {text} of its range"
    if not kept:
        sentence = f"Energy is not conserved along every sampled forecast (drift up to {text} of "
        sentence += "its range)"
    return sentence, Fact("Energy drift", text, drift, note, kept, _kept(kept))


def _entropy(entry: dict) -> tuple[str, Fact] | None:
    if "min_entropy_step" not in entry.get("laws", {}):
        return None
    given = entry["laws"]["min_entropy_step"]
    step = -inf if given is None else given
    kept, text = step >= -ENTROPY_ROUNDING, number(step)
    note = "smallest change of entropy in any step of any sample, as a share of its range"
    sentence = "entropy never falls"
    if kept and step < 0:
        sentence = "entropy never falls by more than rounding"
    elif not kept:
        sentence = f"entropy falls in some steps (by up to {text.lstrip('−')} of its range)"
    return sentence, Fact("Smallest entropy step", text, given, note, kept, _kept(kept))


def _diverged(entry: dict) -> tuple[str, Fact] | None:
    if "diverged" not in entry.get("laws", {}):
        return None
    count = entry["laws"]["diverged"]
    sentence = "No sampled forecast diverged."
    if count:
        some = "1 sampled forecast" if count == 1 else f"{count} sampled forecasts"
        sentence = f"{some} diverged and {'is' if count == 1 else 'are'} left out of the scores."
    note = "sampled forecasts that left the finite numbers"
    mark = "left out" if count else "none"
    return sentence, Fact("Diverged", str(count), count, note, count == 0, mark)


def _kept(kept: bool) -> str:
    return "law kept" if kept else "law not kept"


def _cost(view: PageView, entry: dict) -> tuple[str, Fact]:
    seconds = total_seconds(entry)
    device = str(view.results.get("environment", {}).get("device", "an unknown device"))
    place = "the CPU" if device.lower() == "cpu" else device
    text = f"{number(round(seconds))}\u00a0s"
    sentence = f"Learning and forecasting took {text} on {place}."
    return sentence, Fact("Time", text, seconds, f"training and all forecasts, on {place}")


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _finite(value: float | None) -> float:
    """JSON has no infinity: null stands for one."""
    return inf if value is None or value != value else value
