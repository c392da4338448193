"""Progress: a bar on a terminal, plain lines in a pipe."""

import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars


class Progress:
    """Shows stages of known length: what, how far, loss, rate, time left."""

    def __init__(self, console: Console):
        """Draw bars if the console is a terminal, print a line per quarter if it is not."""
        self.console = console
        self.bars = Bars(
            TextColumn("{task.description:<26}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[detail]:>28}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self.tasks: dict[str, TaskID] = {}
        self.done: dict[str, int] = {}
        self.start: dict[str, float] = {}
        self.first: dict[str, int] = {}

    def __enter__(self) -> "Progress":
        """Start drawing."""
        self.bars.start()
        return self

    def __exit__(self, *_) -> None:
        """Leave the last state on the screen."""
        self.bars.stop()

    def __call__(self, stage: str, steps: int, total: int, loss: float) -> None:
        """Advance a stage by some steps; a stage that is full starts again."""
        if stage not in self.tasks or self.done[stage] >= total:
            self.tasks[stage] = self.bars.add_task(stage, total=total, detail="")
            # The first report comes after compilation, so the rate is counted from there.
            self.done[stage], self.start[stage], self.first[stage] = 0, time.perf_counter(), steps
        before = self.done[stage]
        self.done[stage] += steps
        seconds = time.perf_counter() - self.start[stage]
        rate = (self.done[stage] - self.first[stage]) / max(seconds, 1e-9)
        detail = ("" if before == 0 else f"{rate:.3g}/s") + (
            "" if loss != loss else f"  loss {loss:.1e}"
        )
        self.bars.update(self.tasks[stage], advance=steps, detail=detail)
        quarters = 4 * self.done[stage] // total, 4 * before // total
        if self.bars.disable and quarters[0] > quarters[1]:
            self.console.print(f"{stage}: {self.done[stage]}/{total}  {detail}")
