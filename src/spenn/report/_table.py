"""The closing table of a run: our figures beside the paper's."""

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table


def print_tables(results: dict, console: Console) -> None:
    """Print scores beside the paper's, then what the scores do not say."""
    console.print(scores_table(results))
    console.print(trust_table(results))


def scores_table(results: dict) -> Table:
    """Energy score, CRPS and seconds; the paper's rows below ours, the floor above both."""
    names = list(results["floor"]["mae"])
    device = results["environment"]["device"]
    title = f"{results['system']}: lower is better; ours on {device}"
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False)
    for column in ("method", "samples", "seconds", "ES", *(f"CRPS {n}" for n in names)):
        table.add_column(column, justify="left" if column == "method" else "right")
    floor = results["floor"]["mae"]
    if any(value is not None for value in floor.values()):
        table.add_row("exact physics (MAE)", "", "", "", *(_number(floor[n]) for n in names))
        table.add_section()
    for method, entry in results["methods"].items():
        score = entry.get("crps", entry["mae"])
        label = method if "crps" in entry else f"{method} (MAE)"
        seconds = entry["seconds"]
        table.add_row(
            f"[bold]{label}[/]",
            str(entry["samples"]),
            f"{seconds.get('total', sum(seconds.values())):.0f}",
            _number(entry.get("energy_score")),
            *(_number(score[n]) for n in names),
        )
    table.add_section()
    for method, entry in results["paper"].items():
        table.add_row(
            f"paper: {method}",
            "",
            f"{entry['seconds']['total']:.0f}",
            _number(entry["energy_score"]),
            *(_number(entry["crps"][n]) for n in names),
        )
    return table


def trust_table(results: dict) -> Table:
    """Accuracy against the base, coverage, error against spread, and the laws."""
    names = list(results["floor"]["mae"])
    methods = {m: e for m, e in results["methods"].items() if "crps" in e}
    title = f"how far to trust it ({', '.join(names)})"
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False)
    for column in ("", *methods):
        table.add_column(column, justify="left" if not column else "right")
    base = results["methods"].get("base")

    def row(label, value):
        table.add_row(label, *(value(entry) for entry in methods.values()))

    def listed(values, form="{:.2f}"):
        return "  ".join("inf" if v is None else form.format(v) for v in values)

    def coverage(entry, kind, level):
        at = entry["coverage"]["levels"].index(level)
        return listed([100 * entry["coverage"][kind][n][at] for n in names], "{:.0f} %")

    row("median RL2E", lambda e: listed([e["rl2e"][n]["median"] for n in names], "{:.1e}"))
    if base is not None:
        row(
            "  over the base's",
            lambda e: listed([e["rl2e"][n]["median"] / base["rl2e"][n]["median"] for n in names]),
        )
    row("raw coverage at 95 %", lambda e: coverage(e, "raw", 0.95))
    for level in (0.5, 0.8, 0.9, 0.95):
        row(f"calibrated at {level:.0%}", lambda e, at=level: coverage(e, "calibrated", at))
    row("whole trajectory in 90 % band", _simultaneous)
    row(
        "rank correlation, error and spread",
        lambda e: listed(e["error_spread_correlation"].values()),
    )
    first = next(iter(methods.values()))
    for key in first["laws"]:
        row(key.replace("_", " "), lambda e, key=key: _number(e["laws"][key]))
    if "laws_outside" in first:
        row(
            "spread out of distribution / in it",
            lambda e: listed(e["spread_outside"].values(), "{:.0f}"),
        )
        for key in ("max_energy_drift", "diverged"):
            name = f"{key.replace('_', ' ')}, out of distribution"
            row(name, lambda e, key=key: _number(e["laws_outside"][key]))
    return table


def _simultaneous(entry) -> str:
    coverage = entry["coverage"]
    return f"{100 * coverage['simultaneous'][coverage['levels'].index(0.9)]:.0f} %"


def _number(value) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.1e}"
