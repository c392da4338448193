"""Commands about data: look at a file, split it, or make one to start from."""

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

SETS = ("train", "calibration", "test")
FILE = typer.Argument(help="Trajectories: .nc, .h5, .npz or .csv; docs/data.md shows each.")


def inspect(file: Annotated[Path, FILE]) -> None:
    """Say in words what a file of trajectories holds, and what is doubtful about it."""
    from ..data import _inspect

    print(_inspect.inspect(file))


def split(
    data: Annotated[Path, FILE],
    out: Annotated[Path, typer.Option(help="Folder for the files train, calibration and test.")],
    shares: Annotated[
        str, typer.Option(help="Shares of the trajectories, in that order.")
    ] = "0.6,0.2,0.2",
    seed: Annotated[int, typer.Option(help="Fixes which trajectory goes where.")] = 0,
) -> None:
    """Split a file into whole trajectories to learn from, to calibrate with and to test on."""
    from ..data import read
    from ..data._inspect import split_sizes

    _check_seed(seed)
    wanted = _shares(shares)
    whole = read(data)
    sizes = split_sizes(len(whole), wanted)
    parts = dict(zip(SETS, whole.split(*sizes, seed=seed), strict=True))
    suffix = data.suffix.lower()
    _write_together(parts, out, suffix if suffix in _suffixes() else ".nc")
    counts = ", ".join(f"{name} {len(part)}" for name, part in parts.items())
    print(f"Wrote {counts} trajectories to {out}.")


def example(
    file: Annotated[Path, typer.Argument(help="What to write: a name in .nc, .h5, .npz or .csv.")],
    trajectories: Annotated[int, typer.Option(help="How many, at least 3.")] = 60,
    noise: Annotated[
        float, typer.Option(help="Standard deviation of noise, as a share of each range.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Fixes initial states and noise.")] = 0,
) -> None:
    """Write a file to try things on: a damped oscillator in a heat bath."""
    from ..data import write
    from ..data._write import check_writable

    _check_seed(seed)
    if trajectories < 3:
        raise ValueError(f"trajectories must be at least 3, but are {trajectories}.")
    if not 0 <= noise < 1:
        raise ValueError(f"noise must be a share from 0 to 1, but is {noise}.")
    check_writable(file)
    write(_oscillators(trajectories, noise, seed), file)
    print(f"Wrote {trajectories} trajectories to {file}.")


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command(epilog="Example:  spenn inspect cases.nc")(inspect)
    app.command(epilog="Example:  spenn split cases.nc --out cases")(split)
    app.command(epilog="Example:  spenn example cases.nc --trajectories 100")(example)


def _check_seed(seed: int) -> None:
    if seed < 0:
        raise ValueError(f"seed must be at least 0, but is {seed}.")


def _shares(text: str) -> tuple[float, ...]:
    try:
        shares = tuple(float(word) for word in text.split(","))
    except ValueError:
        shares = ()
    if len(shares) != len(SETS):
        raise ValueError(
            f"shares must be three numbers with commas, such as 0.6,0.2,0.2, but are {text!r}."
        )
    return shares


def _suffixes() -> tuple[str, ...]:
    from ..data._write import FORMATS

    return tuple(FORMATS)


def _write_together(parts, out: Path, suffix: str) -> None:
    """All files or none: they are made in a folder of their own and moved at the end."""
    from ..data import write
    from ..folders import prepare

    prepare(out)
    made = Path(tempfile.mkdtemp(dir=out, prefix=".partial-"))
    try:
        for name, part in parts.items():
            write(part, made / f"{name}{suffix}")
        for path in made.iterdir():
            path.replace(out / path.name)
    except OSError as error:
        raise ValueError(f"cannot write to {out}: {error.strerror}.") from None
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _oscillators(count: int, noise: float, seed: int):
    """Trajectories with units and without derivatives, as most data come; every fifth record."""
    import numpy as np

    from ..data import Trajectories
    from ..systems import OSCILLATOR

    rng = np.random.default_rng(seed)
    states = _motion(OSCILLATOR.times[::5], OSCILLATOR.draw(rng, count))
    spread = np.ptp(states, axis=(0, 1))
    states = states + noise * spread * rng.standard_normal(states.shape)
    return Trajectories(
        OSCILLATOR.times[::5],
        states,
        names=OSCILLATOR.names,
        units=("m", "kg m/s", "J"),
        time_unit="s",
    )


def _motion(times, initial):
    """Exact states (trajectory, time, 3): position and momentum move linearly, energy stays."""
    import numpy as np
    from scipy.linalg import expm

    from ..systems._oscillator import DAMPING, MASS, STIFFNESS, energy

    rates = np.array([[0, 1 / MASS], [-STIFFNESS, -DAMPING / MASS]])
    moved = np.stack([expm(rates * t) for t in times])
    motion = np.einsum("tij,nj->nti", moved, initial[:, :2])
    empty = np.zeros_like(motion[..., :1])
    lost = energy(initial.T)[:, None] - energy(np.concatenate([motion, empty], 2).T).T
    return np.concatenate([motion, lost[..., None]], axis=2)
