"""What an inverse problem amounts to, in plain sentences made from its numbers."""

from .._inverse_words import (
    LEAST_ESS,
    MOST_RHAT,
    Convergence,
    convergence,
    ess_text,
    holds_truth,
    interval_text,
    label,
    plus_minus,
    rhat_text,
    value_text,
)
from ._text import listed, number, percent, relative
from ._verdict import Fact, Verdict, total_seconds

WIDE = "95\u00a0%"
SPREAD = {
    "epinet": (
        "Each realisation fits its own draw of the measurement noise, and one random index gives "
        "both its field and its parameters. Where the measurements leave something undecided the "
        "realisations differ, and that difference is the spread shown here."
    ),
    "hmc": (
        "Networks and parameters are drawn together from the posterior, which priors and the "
        "stated measurement noise define. The spread is that of the draws, and means something "
        "only once the chains have converged."
    ),
}


def inverse_verdict(results: dict, method: str) -> Verdict:
    """The parameters, then a warning where one is due; and the facts behind them."""
    entry = results["methods"][method]
    chains = convergence(entry)
    sentences = [_parameters(entry["parameters"])]
    if chains is not None and chains.warning:
        advice = "Do not rely on these means and spreads; run more warm-up or more samples."
        sentences.append(f"Warning: {chains.warning}. {advice}")
    facts = [_error(entry), _inside(entry), *_chains(chains, entry), _time(results, entry)]
    return Verdict(tuple(sentences), tuple(fact for fact in facts if fact is not None))


def _parameters(parameters: dict) -> str:
    if not parameters:
        return "No parameter was estimated."
    text = listed([_parameter(name, found) for name, found in parameters.items()]) + "."
    unknown = [name for name, found in parameters.items() if found.get("truth") is None]
    if unknown:
        which = "" if len(unknown) == len(parameters) else f" of {listed(unknown)}"
        text += f" The true {'value' if len(unknown) == 1 else 'values'}{which} "
        text += f"{'is' if len(unknown) == 1 else 'are'} not known."
    return text


def _parameter(name: str, found: dict) -> str:
    """'a = 1.003 ± 0.012 (95 % interval 0.979 to 1.027, which holds the truth, 1)'."""
    text = f"{name} = {plus_minus(found['mean'], found['std'])}"
    text += f" ({WIDE} interval {interval_text(found.get('interval95'), found['std'])}"
    held = holds_truth(found)
    if held is not None:
        verb = "holds" if held else "misses"
        text += f", which {verb} the truth, {value_text(found['truth'])}"
    return text + ")"


def _error(entry: dict) -> Fact | None:
    errors = {n: e for n, e in (entry.get("rl2e") or {}).items() if e is not None}
    if not errors:
        return None
    worst = max(errors, key=lambda n: errors[n])
    note = f"{worst}; of the mean, relative to the size of the truth"
    return Fact("Worst error of the field", relative(errors[worst]), errors[worst], note)


def _inside(entry: dict) -> Fact | None:
    shares = {n: s for n, s in (entry.get("inside") or {}).items() if s is not None}
    if not shares:
        return None
    least = min(shares, key=lambda n: shares[n])
    note = f"{least}, the least of all curves; share of points with the truth inside the band"
    return Fact("Within 2 sd", percent(shares[least]), shares[least], note)


def _chains(chains: Convergence | None, entry: dict) -> list[Fact]:
    if chains is None:
        return []
    enough = chains.ess is not None and chains.ess >= LEAST_ESS
    mixed = chains.rhat is not None and chains.rhat <= MOST_RHAT
    size = f"{chains.ess_of}; effective samples among {entry.get('samples', 'those')} drawn"
    agreement = f"{chains.rhat_of}; 1 where all chains agree"
    ess = Fact(
        "Smallest ESS",
        ess_text(chains.ess),
        chains.ess,
        size,
        enough,
        f"{LEAST_ESS} or more" if enough else f"below {LEAST_ESS}",
    )
    rhat = Fact(
        "Largest split R-hat",
        rhat_text(chains.rhat),
        chains.rhat,
        agreement,
        mixed,
        f"{MOST_RHAT} or less" if mixed else f"above {MOST_RHAT}",
    )
    return [fact for fact, of in ((ess, chains.ess_of), (rhat, chains.rhat_of)) if of]


def _time(results: dict, entry: dict) -> Fact | None:
    if not entry.get("seconds"):
        return None
    total = total_seconds(entry)
    return Fact("Time", f"{number(total, 3)}\u00a0s", total, f"all stages, on {device(results)}")


def device(results: dict) -> str:
    """What the run was made on."""
    return str(results.get("environment", {}).get("device", "an unknown device"))


def spread(results: dict) -> list[str]:
    """How the spread of each method is made; the name first where there are several."""
    methods = [m for m in results["methods"] if m in SPREAD]
    several = len(methods) > 1
    return [f"{label(m)}: {SPREAD[m]}" if several else SPREAD[m] for m in methods]
