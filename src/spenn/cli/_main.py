"""`spenn`: commands, their help, and one clear sentence for every bad input.

JAX is imported inside the commands, so that `--help` answers at once.
"""

import os
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Annotated

import typer

from . import _data, _model
from ._session import Session, use_cores, working_in

INTERRUPTED = 130
DISTRIBUTED = "--distributed"
PATIENCE = 10.0
"""Seconds that a process waits for the first one to say what is wrong."""

app = typer.Typer(
    name="spenn",
    help="Learn dynamics that obey both laws of thermodynamics, and say how sure to be of them.",
    epilog="With --distributed, all processes that run a command share its work, under SLURM, "
    "Open MPI, Kubernetes or by hand; docs/scaling.md says how.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_model.register(app)
_data.register(app)


@app.command(
    epilog="Example:  spenn run oscillator --preset quick --methods all --out runs/oscillator"
)
def run(
    system: Annotated[str, typer.Argument(help="oscillator, chemical-motor or viscoplastic")],
    preset: Annotated[str, typer.Option(help="quick: two CPU cores; paper: a GPU.")] = "quick",
    reference: Annotated[
        str, typer.Option(help="Integrator of the data: paper or converged.")
    ] = "paper",
    methods: Annotated[
        str,
        typer.Option(
            help="spenn-half-normal, spenn-uniform, spenn-exponential, deep-ensemble, "
            "mc-dropout, several with commas, or all."
        ),
    ] = "spenn-half-normal",
    samples: Annotated[int | None, typer.Option(help="Realisations per trajectory.")] = None,
    seed: Annotated[int, typer.Option(help="Fixes data, training and samples.")] = 0,
    integrator: Annotated[
        str, typer.Option(help="rk4, midpoint, discrete-gradient, or adaptive, stiff (Diffrax).")
    ] = "rk4",
    out: Annotated[Path | None, typer.Option(help="Folder for the results.")] = None,
) -> None:
    """Run a system of the paper from data to calibrated scores."""
    from dataclasses import replace

    from ..experiment import METHODS
    from ..experiment import preset as sizes

    base = sizes(preset, system)
    chosen = METHODS if methods == "all" else tuple(m.strip() for m in methods.split(","))
    config = replace(
        base,
        reference=reference,
        methods=chosen,
        samples=base.samples if samples is None else samples,
        seed=seed,
        integrator=integrator,
    )
    out = Path("runs") / system if out is None else out
    _run(config, out)


@app.command(epilog="Example:  spenn reproduce --preset paper --out runs/paper")
def reproduce(
    preset: Annotated[str, typer.Option(help="quick: two CPU cores; paper: a GPU.")] = "paper",
    seed: Annotated[int, typer.Option(help="Fixes data, training and samples.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("runs/reproduce"),
) -> None:
    """Make all tables and figures of the paper, and one page that compares them with it.

    What is finished is not done again: after an interruption the same command goes on.
    """
    from dataclasses import replace

    from ..devices import from_process, on_first
    from ..experiment import METHODS, SYSTEMS
    from ..experiment import preset as sizes
    from ..experiment._write import compare, finished

    done = []
    for system in SYSTEMS:
        config = replace(sizes(preset, system), methods=METHODS, seed=seed)
        folder = out / system
        if from_process(finished(config, folder)):
            print(f"{system}: finished before, in {folder}.")
        else:
            _run(config, folder)
        done.append(folder)
        on_first(lambda: compare(done, out / "index.html"))
    print(f"Open {out / 'index.html'}.")


def _run(config, out: Path) -> None:
    from ..devices import on_first
    from ..experiment._run import run as run_experiment
    from ..experiment._write import write
    from ..report import print_tables

    with working_in(out), Session() as session:
        outcome = run_experiment(config, session.progress, out)
        on_first(lambda: write(outcome, config, out))
    print_tables(outcome.results, session.console)
    session.say(f"Open {out / 'report.html'}; numbers, models and figures are beside it.")


@app.command(
    epilog="Example:  spenn inverse kraichnan-orszag --method all --out runs/kraichnan-orszag"
)
def inverse(
    problem: Annotated[str, typer.Argument(help="kraichnan-orszag or kdv")],
    method: Annotated[str, typer.Option(help="epinet, hmc (needs spenn[hmc]) or all.")] = "epinet",
    data: Annotated[
        Path | None,
        typer.Option(help="Published measurements (.mat) in place of generated ones."),
    ] = None,
    samples: Annotated[int | None, typer.Option(help="Realisations of the field.")] = None,
    chains: Annotated[int, typer.Option(help="Chains of hmc, run at once.")] = 4,
    warm_up: Annotated[int, typer.Option(help="Steps of warm-up of each chain.")] = 1000,
    draws: Annotated[int, typer.Option(help="Draws kept of each chain.")] = 1000,
    seed: Annotated[int, typer.Option(help="Fixes data, training and samples.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the results.")] = None,
) -> None:
    """Infer unknown constants of an equation from noisy measurements, with intervals."""
    from ..devices import on_first
    from ..inverse._run import METHODS, InverseRun, run_inverse
    from ..inverse._write import write
    from ..report import print_inverse

    methods = METHODS if method == "all" else (method,)
    file = None if data is None else str(data)
    config = InverseRun(problem, methods, file, samples, chains, warm_up, draws, seed)
    out = Path("runs") / problem if out is None else out
    if "hmc" in methods:
        use_cores(chains)
    with working_in(out), Session() as session:
        view = run_inverse(config, session.progress)
        on_first(lambda: write(view, config, out))
    print_inverse(view.results, session.console)
    session.say(f"Open {out / 'report.html'}; numbers, samples and figures are beside it.")


def program() -> None:
    """`spenn` as typed; a forecast ends without the long second that taking JAX apart takes."""
    main()
    if sys.argv[1:2] == ["forecast"] and DISTRIBUTED not in sys.argv:
        with suppress(AttributeError, OSError):  # Python itself says that nobody listens
            sys.stdout.flush()
            os._exit(0)


def main() -> None:
    """Carry out a command: bad input ends with one sentence and exit code 2."""
    warnings.formatwarning = lambda message, *_, **__: f"spenn: {message}\n"
    arguments = [word for word in sys.argv[1:] if word != DISTRIBUTED]
    try:
        if DISTRIBUTED in sys.argv:
            _join()
        # Some versions of typer raise on Ctrl-C, others return the exit code.
        code = app(arguments, standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        if code:
            sys.exit(code)
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        kept = "what was reached is kept, the same command goes on from there."
        sentence = "nothing was written." if arguments[:1] == ["inverse"] else kept
        print(f"spenn: interrupted; {sentence}", file=sys.stderr, flush=True)
        # An orderly exit can crash in the middle of a compilation; there is nothing to put away.
        os._exit(INTERRUPTED)
    except ValueError as error:
        _fail(str(error), 2)
    except Exception as error:
        # Errors of the parser (unknown option, missing argument) know how to say what is wrong.
        sentence = getattr(error, "format_message", None)
        if sentence is None:
            raise
        _fail(sentence(), 2)


def _join() -> None:
    """Work with all other processes; the first one speaks."""
    from ..devices import first_process, start

    start()
    if not first_process():
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        warnings.simplefilter("ignore")


def _fail(sentence: str, code: int) -> None:
    def say():
        print(f"spenn: {sentence}", file=sys.stderr, flush=True)

    if _speaks():
        say()
    else:
        # The first process says the same at once, and all end; unless this one fails alone.
        later = Timer(PATIENCE, say)
        later.daemon = True
        later.start()
    sys.exit(code)


def _speaks() -> bool:
    if DISTRIBUTED not in sys.argv:
        return True
    from ..devices import first_process

    return first_process()
