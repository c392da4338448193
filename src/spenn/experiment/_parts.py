"""Finished parts of a run, one per method, kept until the whole is written.

A part is a calibrated model, its entry in `results.json` and the arrays that figures and page show.
A run that is cut short leaves its parts behind, and the next one with the same configuration in the
same folder goes on from there.
"""

import hashlib
import io
import json
import shutil
import warnings
import zipfile
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from .. import __version__
from ..devices import everywhere, first_process
from ..files import load
from ..folders import write_atomically
from ..model import Model
from ..report import PageMethod
from ._config import RunConfig

FOLDER, TRAINING = ".parts", "training"


@dataclass(frozen=True, eq=False)
class Part:
    """What is known of one method once it is trained, forecast and scored."""

    entry: dict
    shown: PageMethod
    draws: np.ndarray | None = None
    """(few, time, entry): some rollouts of the first test trajectory."""


class Parts:
    """The parts in a folder; without a folder nothing is kept."""

    def __init__(self, out: Path | None, config: RunConfig):
        """Open the parts of a run; those of another configuration are thrown away."""
        self.folder = None if out is None else out / FOLDER
        # Parts serve every choice of methods.
        plain = json.dumps(asdict(replace(config, methods=config.methods[:1])), sort_keys=True)
        self.fingerprint = hashlib.sha256(f"{__version__} {plain}".encode()).hexdigest()

    def get(self, name: str) -> tuple[Model, Part] | None:
        """A finished part, if there is one, for every process."""
        found = self._read(name)
        return found if everywhere(found is not None) else None

    def _read(self, name: str) -> tuple[Model, Part] | None:
        if self.folder is None or not self._are_ours():
            return None
        folder = self.folder / name
        try:
            entry = json.loads((folder / "entry.json").read_text())
            with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
                found = {key: arrays[key] for key in arrays.files}
            model = load(folder / "model.spenn")
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
            return None  # cut short while it was written, or damaged: made again
        draws = found.pop("draws", None)
        return model, Part(entry, PageMethod(name=name, **found), draws)

    def training(self, name: str) -> Path | None:
        """Where the training of a part keeps what it has reached, until the part is finished."""
        return None if self.folder is None else self.folder / TRAINING / name

    def put(self, name: str, model: Model, part: Part) -> None:
        """Keep a part, in place of what its training kept; if it cannot be, the run goes on."""
        if self.folder is None or not first_process():
            return
        try:
            self._claim(self.folder)
            self._write(self.folder / name, model, part)
        except OSError as error:
            warnings.warn(f"cannot keep {name} in {self.folder}: {error.strerror}.", stacklevel=2)
            return
        training = self.folder / TRAINING
        shutil.rmtree(training / name, ignore_errors=True)
        with suppress(OSError):  # others are still in it
            training.rmdir()

    def _claim(self, folder: Path) -> None:
        """Throw parts of another configuration away; what training keeps knows whose it is."""
        folder.mkdir(exist_ok=True)
        if self._are_ours():
            return
        for path in folder.iterdir():
            if path.is_dir() and path.name != TRAINING:
                shutil.rmtree(path)
        write_atomically(folder / "fingerprint", self.fingerprint.encode())

    def _write(self, folder: Path, model: Model, part: Part) -> None:
        """The entry is written last: where that is, all is."""
        folder.mkdir(exist_ok=True)
        arrays = {k: v for k, v in vars(part.shown).items() if isinstance(v, np.ndarray)}
        arrays |= {} if part.draws is None else {"draws": part.draws}
        model.save(folder / "model.spenn")
        packed = io.BytesIO()
        np.savez(packed, allow_pickle=False, **arrays)
        write_atomically(folder / "arrays.npz", packed.getvalue())
        write_atomically(folder / "entry.json", json.dumps(part.entry).encode())

    def clear(self) -> None:
        """Throw all parts away."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _are_ours(self) -> bool:
        try:
            assert self.folder is not None
            return (self.folder / "fingerprint").read_text() == self.fingerprint
        except OSError:
            return False
