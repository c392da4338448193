"""What commands share: progress and plain lines, places to write to, compiled programs kept."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Session:
    """One piece of work on a console: bars or lines of progress while it lasts, then a few words.

    JAX is set up to keep compiled programs between runs, where the user has not said otherwise.
    """

    def __init__(self):
        """Open the console."""
        from rich.console import Console

        from ._progress import Progress

        console = Console()
        self.console = console if console.is_terminal else Console(width=110)
        self.progress = Progress(self.console)
        _compile_once()

    def __enter__(self) -> "Session":
        """Start drawing."""
        self.progress.__enter__()
        return self

    def __exit__(self, *error) -> None:
        """Leave the last state on the screen."""
        self.progress.__exit__(*error)

    def say(self, *sentences: str) -> None:
        """Print sentences, one a line."""
        for sentence in sentences:
            print(sentence)

    def warn(self, sentence: str) -> None:
        """Print a sentence where it does not mix with results."""
        from ..devices import first_process

        if first_process():
            print(f"spenn: {sentence}", file=sys.stderr)


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Be alone in a folder that can be written to; of several processes, the first is there.

    One that did not exist goes again if the work fails and has left nothing in it.
    """
    from ..devices import on_first

    with ExitStack() as stack:
        on_first(lambda: stack.enter_context(_alone_in(folder)))
        yield


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    from ..folders import locked, prepare

    existed = folder.exists()
    prepare(folder)
    try:
        with locked(folder):
            yield
    except BaseException as error:
        if not existed:
            with suppress(OSError):  # a folder that something was put into meanwhile stays
                folder.rmdir()
        if isinstance(error, OSError) and error.errno in FULL:
            raise ValueError(
                f"cannot write to {folder}: {error.strerror}. What was kept before stays: make "
                "room, and the same command goes on from there."
            ) from None
        raise


def check_file(path: Path) -> None:
    """Refuse a place where no file can be written, before any work is done."""
    from ..devices import on_first

    on_first(lambda: _check_file(path))


def _check_file(path: Path) -> None:
    from ..folders import prepare

    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file.")
    if not path.parent.is_dir():
        raise ValueError(f"{path} cannot be written: there is no folder {path.parent}.")
    prepare(path.parent)


def use_cores(rows: int) -> None:
    """One device of JAX per core, for so many samples or chains beside each other.

    Nothing changes where JAX is in use already, or where the user has said how many.
    """
    import jax

    from ..machine import cores

    said = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if not said and "JAX_NUM_CPU_DEVICES" not in os.environ:
        with suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", max(1, min(cores(), rows)))


def _compile_once() -> None:
    """Keep compiled programs between runs, where the user has not said otherwise."""
    import jax

    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        jax.config.update("jax_compilation_cache_dir", str(home / "spenn" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
