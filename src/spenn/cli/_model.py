"""Commands about models of one's own data: fit, calibrate, forecast, evaluate, check, report."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from ..folders import LAST
from ._session import Session, check_file, use_cores, working_in

MODEL = typer.Argument(help="Model file that spenn fit wrote.")
DATA = typer.Argument(help="Trajectories: .nc, .h5, .npz or .csv; docs/data.md shows each.")
SAMPLES = typer.Option(help="Realisations per trajectory.")
INTEGRATOR = typer.Option(
    help="rk4, midpoint, discrete-gradient (both laws at any step), adaptive or stiff (Diffrax)."
)
SEED = typer.Option(help="Fixes training and samples.")


def fit(
    data: Annotated[Path, DATA],
    out: Annotated[Path, typer.Option(help="Model file to write, such as model.spenn.")],
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file with what you know, [physics], and sizes, [fit]."),
    ] = None,
    seed: Annotated[int, SEED] = 0,
) -> None:
    """Learn a model of trajectories that keeps both laws, with its uncertainty.

    Interrupted at any moment, the same command goes on from there to the same model.
    """
    from ..data import read
    from ..devices import on_first
    from ..fitting import choose
    from ..fitting import fit as fit_model
    from ..verdict import judge

    check_file(out)
    train = read(data)
    chosen, known = _configured(config, choose(train), train.names)
    training = out.with_name(f".{out.name}.training")
    with working_in(training), Session() as session:
        totals = {"base": chosen.steps, "epinet": chosen.epinet_steps}
        model = fit_model(
            train,
            seed,
            chosen,
            known,
            lambda stage, steps, loss: session.progress(stage, steps, totals[stage], loss),
            training,
        )
        on_first(lambda: model.save(out))
        verdict = judge(model, train)
    shutil.rmtree(training, ignore_errors=True)
    session.say(*verdict.sentences, f"Wrote {out}. Next: spenn calibrate {out} DATA.")


def calibrate(
    model: Annotated[Path, MODEL],
    data: Annotated[Path, DATA],
    out: Annotated[
        Path | None, typer.Option(help="Model file to write; by default the same.")
    ] = None,
    level: Annotated[
        float, typer.Option(help="Level that intervals must be able to have, in (0, 1).")
    ] = 0.9,
    samples: Annotated[int, SAMPLES] = 200,
    seed: Annotated[int, SEED] = 1,
    integrator: Annotated[str, INTEGRATOR] = "rk4",
) -> None:
    """Calibrate the intervals of a model on trajectories that it has not learned from."""
    from ..devices import on_first
    from ..files import load

    out = model if out is None else out
    check_file(out)
    loaded, given = load(model), _read(data)
    _check_fresh(loaded, given, data, "calibrate on")
    _check_level(len(given), level, str(data))
    with Session() as session:
        calibrated = loaded.calibrate(given, samples, seed, integrator)
        on_first(lambda: calibrated.save(out))
    highest = len(given) / (len(given) + 1)
    session.say(
        f"Calibrated on {len(given)} trajectories, for intervals up to the level {highest:.3f}.",
        f"Wrote {out}.",
    )


def forecast(
    model: Annotated[Path, MODEL],
    start: Annotated[
        str | None, typer.Option(help="Initial state, such as 'q=1,p=0,eps=0.5'.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="File whose first states and times to take instead.")
    ] = None,
    until: Annotated[
        float | None, typer.Option(help="Last time; by default that of the calibration.")
    ] = None,
    records: Annotated[int, typer.Option(help="Number of times, the first one included.")] = 101,
    samples: Annotated[int, SAMPLES] = 200,
    level: Annotated[float, typer.Option(help="Level of the intervals, in (0, 1).")] = 0.9,
    seed: Annotated[int, SEED] = 1,
    integrator: Annotated[str, INTEGRATOR] = "rk4",
    out: Annotated[
        Path | None, typer.Option(help="File to write: .csv, .npz or .nc; else CSV is printed.")
    ] = None,
) -> None:
    """Forecast from one initial state, or from those of a file."""
    from ..devices import on_first
    from ..files import load
    from ..forecast_files import check_forecast_file, csv_of, write_forecasts

    if out is not None:
        check_forecast_file(out)
    use_cores(samples)
    loaded = load(model)
    if loaded.calibration is not None:
        _check_level(loaded.calibration.conformal.trajectories, level, f"of {model}")
    starts, times = _starts(loaded, start, data, until, records)
    if loaded.calibration is not None:
        loaded.calibration.on(times)  # refuses times beyond it before any work is done
    with Session() as session:
        made = [loaded.forecast(x, times, samples, seed, integrator=integrator) for x in starts]
    if loaded.calibration is None:
        session.warn(f"{model} is not calibrated: the forecast has no intervals.")
    if lost := sum(len(one.diverged) for one in made):
        session.warn(f"{lost} of {samples * len(made)} samples diverged and are left out.")
    if out is None:
        print(csv_of(made, level), end="")
    else:
        on_first(lambda: write_forecasts(made, level, out))
        session.say(f"Wrote {len(made)} forecasts of {samples} samples to {out}.")


def evaluate(
    model: Annotated[Path, MODEL],
    data: Annotated[Path, DATA],
    out: Annotated[Path, typer.Option(help="Folder for results, report and figures.")],
    samples: Annotated[int, SAMPLES] = 200,
    seed: Annotated[int, SEED] = 1,
    integrator: Annotated[str, INTEGRATOR] = "rk4",
) -> None:
    """Score a calibrated model on trajectories that it has never seen."""
    from ..devices import on_first
    from ..experiment._evaluate import evaluate_model
    from ..experiment._write import write_evaluation
    from ..files import load
    from ..report import print_tables

    loaded, given = load(model), _read(data)
    _check_fresh(loaded, given, data, "evaluate on")
    with working_in(out), Session() as session:
        how = samples, seed, integrator
        outcome = evaluate_model(loaded, given, model.stem, *how, session.progress)
        on_first(lambda: write_evaluation(outcome, out))
    print_tables(outcome.results, session.console)
    session.say(f"Open {out / 'report.html'}; numbers and figures are beside it.")


def check(
    model: Annotated[Path, MODEL],
    data: Annotated[
        Path | None, typer.Option(help="Trajectories whose states to take; else random ones.")
    ] = None,
    pairs: Annotated[int, typer.Option(help="Pairs of a state and an index.")] = 1_000_000,
    samples: Annotated[int, SAMPLES] = 50,
    seed: Annotated[int, SEED] = 0,
    integrators: Annotated[
        str, typer.Option(help="Integrators to roll out with, several with commas, or none.")
    ] = "rk4,discrete-gradient",
) -> None:
    """Audit both laws of thermodynamics; a violation ends with exit code 1.

    First the velocity at random pairs of a state and an index; then rollouts, every step of every
    sample, where RK4 keeps the laws to its own error and discrete-gradient keeps them exactly.
    """
    from ..experiment._evaluate import audit_rollouts
    from ..files import load
    from ..integrate import integrator

    names = [] if integrators == "none" else [name.strip() for name in integrators.split(",")]
    for name in names:
        integrator(name)  # refuses unknown ones before any work is done
    loaded = load(model)
    given = None if data is None else _read(data, loaded)
    states = None if given is None else given.records()[0]
    if given is None and loaded.method.domain.prescribed and names:
        raise ValueError(
            "some entries of this model are prescribed: rollouts need trajectories that say how "
            "they move, with --data, or --integrators none."
        )
    with Session() as session:
        found = loaded.check(
            states, pairs, seed, lambda n: session.progress("check", n, pairs, float("nan"))
        )
    session.say(found.sentence)
    broken = found.violations
    for name in names:
        audit = audit_rollouts(loaded, name, given, samples, seed)
        session.say(_audit_sentence(name, audit))
        if name == "discrete-gradient":
            broken += audit["energy_violations"] + audit["entropy_violations"]
            broken += audit["diverged"]  # what is lost obeys no law
    if broken:
        raise typer.Exit(1)


def _audit_sentence(name: str, audit: dict) -> str:
    """The audit of one integrator in words."""
    if audit["max_energy_drift"] is None:
        return f"{name}: all {audit['diverged']} rollouts were lost."
    sweeps = ""
    if "max_sweeps" in audit:
        sweeps = f" Sweeps per step: {audit['mean_sweeps']:.1f}, at most {audit['max_sweeps']:.0f}."
    return (
        f"{name}, {audit['records']:,} records: energy kept to {audit['max_energy_drift']:.1e} of "
        f"its range ({audit['energy_violations']} beyond rounding), smallest entropy step "
        f"{audit['min_entropy_step']:.1e} ({audit['entropy_violations']} beyond rounding), "
        f"{audit['diverged']} samples lost.{sweeps}"
    )


def report(
    folder: Annotated[Path, typer.Argument(help="Folder that run or evaluate wrote.")],
) -> None:
    """Make the page and the figures of a folder anew from its numbers."""
    from ..devices import on_first
    from ..experiment._write import rewrite_report

    if not (folder / LAST).exists():
        raise ValueError(
            f"{folder} holds no {LAST}: name a folder that spenn run or spenn evaluate wrote."
        )
    with working_in(folder), Session() as session:
        on_first(lambda: rewrite_report(folder))
    session.say(f"Open {folder / 'report.html'}.")


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    examples = {
        fit: "spenn fit train.nc --out model.spenn",
        calibrate: "spenn calibrate model.spenn calibration.nc",
        forecast: "spenn forecast model.spenn --start 'q=1,p=0,eps=0.5' --until 10 --out f.csv",
        evaluate: "spenn evaluate model.spenn test.nc --out runs/test",
        check: "spenn check model.spenn",
        report: "spenn report runs/test",
    }
    for command, example in examples.items():
        app.command(epilog=f"Example:  {example}")(command)


def _configured(path: Path | None, sizes, names):
    """Sizes and physics as a file says, and as they are by default."""
    from ..config import read_tables, with_table
    from ..declared import read_physics
    from ..physics import Physics

    if path is None:
        return sizes, Physics()
    tables = read_tables(path)
    try:
        physics = read_physics(tables["physics"], names) if tables["physics"] else Physics()
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return with_table(sizes, tables["fit"], path), physics


def _read(file: Path, model=None):
    from ..data import read

    given = read(file)
    if model is not None:
        _check_names(model, given, file)
    return given


def _check_names(model, given, file: Path) -> None:
    if tuple(given.names) != model.names:
        raise ValueError(
            f"{file} has the variables {', '.join(given.names)}, and the model those named "
            f"{', '.join(model.names)}: name them alike, in this order."
        )


def _check_fresh(model, given, file: Path, what: str) -> None:
    """Refuse trajectories that the model has learned from: they would tell too good a story."""
    _check_names(model, given, file)
    learned = set(model.provenance.trajectories)
    known = [number for number, digest in enumerate(given.digests) if digest in learned]
    if known:
        raise ValueError(
            f"the model has learned from {len(known)} of the {len(given)} trajectories of {file}, "
            f"the first of them number {known[0]}: {what} others."
        )


def _check_level(trajectories: int, level: float, where: str) -> None:
    from ..calibrate import conformal_rank, fewest

    if conformal_rank(trajectories, level) > trajectories:
        raise ValueError(
            f"the {trajectories} calibration trajectories {where} are too few for intervals of the "
            f"level {level:.4g}: it takes {fewest(level)}, or a level of "
            f"{trajectories / (trajectories + 1):.2f} or less."
        )


def _starts(model, start: str | None, data: Path | None, until: float | None, records: int):
    """Initial states, and the times to forecast at."""
    import numpy as np

    if data is not None and start is None:
        given = _read(data, model).on_one_grid()
        return given.states[:, 0], given.times
    if start is None or data is not None:
        raise ValueError("say where to start, with either --start or --data.")
    if until is None and model.calibration is not None:
        return [_state(model.names, start)], model.calibration.times
    if until is None or not 0 < until < float("inf"):
        raise ValueError("say until when to forecast: --until is a number above zero.")
    if not 2 <= records <= 10_000_000:
        raise ValueError(f"--records must be from 2 to ten million; it is {records}.")
    return [_state(model.names, start)], np.linspace(0, until, records)


def _state(names, text: str):
    """The state that 'q=1,p=0' speaks of."""
    import numpy as np

    try:
        pairs = [part.split("=") for part in text.split(",")]
        values = {name.strip(): float(value) for name, value in pairs}
    except ValueError:
        raise ValueError(
            f"--start must name every variable, such as '{','.join(f'{n}=0' for n in names)}'; "
            f"it is {text!r}."
        ) from None
    if len(values) != len(pairs) or set(values) != set(names):
        raise ValueError(f"--start must name each of {', '.join(names)} once; it is {text!r}.")
    return np.array([values[name] for name in names])
