"""The closing table of an inverse problem: our estimates, and the paper's beneath them."""

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ._inverse_words import (
    MISSING,
    convergence,
    ess_text,
    holds_truth,
    interval_text,
    label,
    panel_names,
    parameter_names,
    plus_minus,
    problem_title,
    rhat_text,
    truth_of,
    value_text,
)


def print_inverse(results: dict, console: Console) -> None:
    """Print parameters, then errors and time, then a warning where chains have not converged."""
    console.print(parameters_table(results))
    console.print()
    console.print(errors_table(results))
    for method, entry in results["methods"].items():
        chains = convergence(entry)
        if chains is not None and chains.warning:
            console.print(f"[bold yellow]{label(method)}: {escape(chains.warning)}.[/]")


def parameters_table(results: dict) -> Table:
    """Mean, interval and truth per parameter and method; ESS and R-hat where there are chains."""
    chained = any(convergence(entry) for entry in results["methods"].values())
    columns = ["", "method", "mean ± sd", "95 % interval", "truth", "inside"]
    table = _table(f"{problem_title(results)}: parameters", columns, ["ESS", "R-hat"], chained)
    paper = results.get("paper") or {}
    named = [n for entry in paper.values() for n in entry.get("parameters") or {}]
    for name in dict.fromkeys([*parameter_names(results), *named]):
        truth = value_text(truth_of(results, name))
        for method, entry in results["methods"].items():
            if name in entry["parameters"]:
                _add(table, [name, label(method), *_estimate(entry, name, chained)])
        for method, entry in paper.items():
            found = (entry.get("parameters") or {}).get(name)
            if found:
                # With the digits that the paper gives, and no more.
                estimate = f"{value_text(found.get('mean'))} ± {value_text(found.get('std'))}"
                _add(table, [name, f"paper: {label(method)}", estimate, "", truth])
        table.add_section()
    return table


def _estimate(entry: dict, name: str, chained: bool) -> list[str]:
    found = entry["parameters"][name]
    cells = [plus_minus(found["mean"], found["std"])]
    cells += [interval_text(found.get("interval95"), found["std"]), value_text(found.get("truth"))]
    cells.append({True: "yes", False: "no", None: MISSING}[holds_truth(found)])
    return cells + (_pair(entry, name) if chained else [])


def _pair(entry: dict, name: str) -> list[str]:
    if convergence(entry) is None:
        return ["", ""]
    ess, rhat = ((entry.get(key) or {}).get(name) for key in ("ess", "rhat"))
    return [ess_text(ess), rhat_text(rhat)]


def errors_table(results: dict) -> Table:
    """Relative L2 errors of the mean field, samples and seconds; the paper's rows beneath ours."""
    names, entries = panel_names(results), results["methods"]
    chained = any(convergence(entry) for entry in entries.values())
    device = results.get("environment", {}).get("device", "an unknown device")
    columns = ["method", "samples", "seconds", *(f"RL2E {n}" for n in names)]
    table = _table(f"field: lower is better; ours on {device}", columns, ["ESS", "R-hat"], chained)
    for method, entry in entries.items():
        seconds, errors = entry.get("seconds") or {}, entry.get("rl2e") or {}
        total = f"{seconds['total']:.1f}" if "total" in seconds else ""
        row = [label(method), str(entry.get("samples", "")), total]
        _add(table, [*row, *(_error(errors.get(n)) for n in names), *_worst(entry, chained)])
    table.add_section()
    for method, entry in (results.get("paper") or {}).items():
        errors = entry.get("rl2e") or {}
        if errors:
            figures = (_error(errors.get(n)) for n in names)
            _add(table, [f"paper: {label(method)}", "", "", *figures])
    return table


def _worst(entry: dict, chained: bool) -> list[str]:
    """The worst of all chains, with a sign that it is one end of a range."""
    chains = convergence(entry)
    if chains is None:
        return ["", ""] if chained else []
    return [f"≥ {ess_text(chains.ess)}", f"≤ {rhat_text(chains.rhat)}"]


def _table(title: str, columns: list[str], more: list[str], wanted: bool) -> Table:
    style = {"box": SIMPLE_HEAD, "show_edge": False, "pad_edge": False, "collapse_padding": True}
    table = Table(title=escape(title), **style)
    for column in [*columns, *(more if wanted else [])]:
        left = column in ("", "method")
        table.add_column(escape(column), justify="left" if left else "right", overflow="fold")
    return table


def _add(table: Table, cells: list[str]) -> None:
    """Names come from anywhere, and a bracket in one is a bracket."""
    table.add_row(*map(escape, cells))


def _error(value: float | None) -> str:
    return MISSING if value is None else f"{value:.1e}"
