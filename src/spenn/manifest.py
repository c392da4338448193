"""The manifest of a model file: everything that is not an array, as plain data.

One dataclass says what a manifest holds. A model is turned into it, it is turned into JSON and
back, every type and bound is checked on the way, and from it come the shapes of all arrays.
"""

import json
from dataclasses import asdict, dataclass, fields, is_dataclass
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import equinox as eqx
import jax
import jax.numpy as jnp

from .baselines import DeepEnsemble, MCDropout
from .config import FitConfig
from .data import check_names
from .declared import Canonical, Quadratic
from .epinet import SPENN
from .fitting import check
from .generic import (
    BLOCKS,
    AbstractDomain,
    AbstractMethod,
    Bar,
    Coordinates,
    Deterministic,
    KnownDissipation,
    KnownPoisson,
    KnownPotential,
    LearnedPotential,
    Point,
    is_learned,
)
from .model import Model, Provenance
from .physics import Physics
from .training import attach_epinets

FORMAT = 5
KINDS = {
    "base": Deterministic,
    "spenn": SPENN,
    "deep-ensemble": DeepEnsemble,
    "mc-dropout": MCDropout,
}
DECLARED = {"energy": Quadratic, "entropy": Quadratic, "poisson": Canonical}
KNOWN = (KnownDissipation, KnownPoisson, KnownPotential)
LARGEST_INTEGER, LARGEST_NUMBER, LONGEST_WORD = 2**63 - 1, 1e300, 200


@dataclass(frozen=True)
class BarShape:
    """Cells of a bar, and the internal variables of each."""

    cells: int
    internal_variables: int


@dataclass(frozen=True)
class Manifest:
    """What a model file says about its arrays.

    `given` are blocks with a function that only Python can hold; `energy`, `entropy` and `poisson`
    are functions that are data; `moving` is the number of directions in which a state moves, if
    some combinations are conserved.
    """

    format: int
    kind: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    time_unit: str
    longest_step: float | None
    provenance: Provenance
    config: FitConfig
    learned: tuple[str, ...]
    given: tuple[str, ...]
    energy: Quadratic | None
    entropy: Quadratic | None
    poisson: Canonical | None
    entropy_of: tuple[int, ...] | None
    moving: int | None
    bar: BarShape | None
    calibrated: bool

    def __post_init__(self):
        """Refuse what types do not rule out."""
        size = len(self.names)
        check_names(self.names)
        if len(self.units) not in (0, size):
            raise ValueError(f"it has {len(self.units)} units for {size} variables")
        if self.longest_step is not None and not self.longest_step > 0:
            raise ValueError(f"its longest step is {self.longest_step:g}")
        if self.kind not in KINDS:
            raise ValueError(f"there is no kind {self.kind!r}")
        check(self.config, self.provenance.seed)
        if unknown := set(self.provenance.contradicted) - set(self.names):
            raise ValueError(f"there is no variable {sorted(unknown)[0]!r}")
        for block in (*self.learned, *self.given):
            if block not in BLOCKS:
                raise ValueError(f"there is no block {block!r}")
        for block in DECLARED:
            if block in self.given and getattr(self, block) is not None:
                raise ValueError(f"its {block} is given twice")
        for potential in (self.energy, self.entropy):
            if potential is not None and len(potential.slope) != size:
                raise ValueError(f"a potential is not one of {size} variables")
        if self.poisson is not None and max(map(max, self.poisson.pairs)) >= size:
            raise ValueError(f"a canonical pair is not one of {size} variables")
        if self.moving is not None and not 0 < self.moving < size:
            raise ValueError(f"{self.moving} of {size} directions move")
        if self.bar is not None and min(self.bar.cells, self.bar.internal_variables) < 1:
            raise ValueError("a bar has at least one cell and one internal variable")

    @classmethod
    def of(cls, model: Model) -> "Manifest":
        """The manifest of a model."""
        kind = _kind(model.method)
        parts = {name: getattr(model.blocks, name) for name in BLOCKS}
        functions = {
            name: part.function
            for name in BLOCKS
            for part in parts[name]
            if isinstance(part, KNOWN)
        }
        declared: dict[str, Any] = {
            name: function
            for name, function in functions.items()
            if isinstance(function, DECLARED.get(name, ()))
        }
        directions = model.blocks.domain.directions
        return cls(
            format=FORMAT,
            kind=kind,
            names=tuple(model.names),
            units=tuple(model.units),
            time_unit=model.time_unit,
            longest_step=model.longest_step,
            provenance=model.provenance,
            config=model.config,
            learned=tuple(n for n in BLOCKS if any(not isinstance(p, KNOWN) for p in parts[n])),
            given=tuple(n for n in functions if n not in declared),
            energy=declared.get("energy"),
            entropy=declared.get("entropy"),
            poisson=declared.get("poisson"),
            entropy_of=_reads(model),
            moving=None if directions is None else directions.shape[1],
            bar=_bar(model.blocks.domain),
            calibrated=model.calibration is not None,
        )

    @classmethod
    def parse(cls, text: str) -> "Manifest":
        """The manifest that a text holds, checked."""
        version = version_of(text)
        if version != FORMAT:
            way_out = "update spenn" if version > FORMAT else "fit and save the model again"
            raise ValueError(
                f"has format {version} and this spenn reads format {FORMAT}: {way_out}"
            )
        try:
            return _typed(cls, json.loads(text, parse_constant=_refuse), "the manifest")
        except (ValueError, RecursionError) as error:
            raise ValueError(_not_a_model(error)) from None

    def text(self) -> str:
        """The manifest as JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    def physics(self, given: Physics | None) -> Physics:
        """What is known and what is learned, with functions that were given again."""
        if missing := [n for n in self.given if given is None or getattr(given, n) is None]:
            raise ValueError(
                f"holds a model with a known {' and '.join(missing)}: pass the functions again, "
                "as spenn.load(path, physics=...)"
            )
        functions: dict[str, Any] = {n: getattr(given, n) for n in self.given}
        for name in DECLARED:
            functions.setdefault(name, getattr(self, name))
        try:
            return Physics(
                **functions, learned=self.learned, domain=self._domain(), entropy_of=self.entropy_of
            )
        except ValueError as error:
            raise ValueError(_not_a_model(error)) from None

    def shapes(self, physics: Physics) -> "Arrays":
        """The arrays of the model, as shapes; nothing is allocated."""
        try:
            return eqx.filter_eval_shape(self._arrays, physics)
        except Exception as error:  # whatever goes wrong in there, the manifest is the reason
            raise ValueError(_not_a_model(error)) from None

    def _domain(self) -> AbstractDomain:
        if self.bar is not None:
            return Bar.of(self.bar.cells, 1.0, 1.0, self.bar.internal_variables)
        if self.moving is None:
            return Point()
        shape: Any = jax.ShapeDtypeStruct((len(self.names), self.moving), jnp.result_type(float))
        return Point(basis=shape)

    def _arrays(self, physics: Physics) -> "Arrays":
        config, key = self.config, jax.random.key(0)
        coordinates = Coordinates.identity(len(self.names))
        widths = {
            "deep-ensemble": max(config.member_widths[: config.members]),
            "mc-dropout": config.dropout_width,
        }
        width = widths.get(self.kind, config.width)
        blocks = physics.blocks(coordinates, len(self.names), width, config.depth, key=key)
        match self.kind:
            case "base":
                method = Deterministic(blocks)
            case "spenn":
                method = attach_epinets(blocks, 0.0, config, key=key)
            case "mc-dropout":
                method = MCDropout(blocks, config.dropout)
            case _:
                one, shared = eqx.partition(blocks, is_learned(blocks))
                every = jax.tree.map(lambda a: jnp.broadcast_to(a, (config.members, *a.shape)), one)
                method = DeepEnsemble(eqx.combine(every, shared), config.members)
        return Arrays(coordinates, method)


class Arrays(NamedTuple):
    """What a model file holds arrays for."""

    coordinates: Coordinates
    method: AbstractMethod


def version_of(text: str) -> int:
    """The format that a manifest states, whatever else is in it."""
    try:
        version = json.loads(text)["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        version = None
    if type(version) is not int or not 0 < version < 10**6:
        raise ValueError("is not a spenn model file")
    return version


def _not_a_model(error: Exception) -> str:
    """What is wrong with a manifest, of which something else complained."""
    first = (str(error).splitlines() or [""])[0]
    return f"does not describe a model: {first[:200].rstrip('.')}"


def _kind(method: AbstractMethod) -> str:
    """The name under which a file remembers a method."""
    for kind, known in KINDS.items():
        if isinstance(method, known):
            return kind
    raise ValueError(f"a {type(method).__name__} cannot be saved: spenn cannot rebuild it.")


def _reads(model: Model) -> tuple[int, ...] | None:
    for part in model.blocks.entropy:
        if isinstance(part, LearnedPotential):
            return part.reads
    return None


def _bar(domain: AbstractDomain) -> BarShape | None:
    match domain:
        case Bar(cells=cells, internal_variables=count):
            return BarShape(cells, count)
    return None


def _typed(kind: Any, value: Any, name: str) -> Any:
    """The value that JSON holds for an annotated one: a dataclass, a tuple, a number, a word."""
    arguments = get_args(kind)
    if get_origin(kind) is UnionType:
        return None if value is None else _typed(arguments[0], value, name)
    if is_dataclass(kind) and isinstance(value, dict):
        return _record(kind, value, name)
    if get_origin(kind) is tuple and isinstance(value, list):
        if arguments[-1] is ...:
            arguments = (arguments[0],) * len(value)
        if len(value) == len(arguments):
            return tuple(_typed(k, v, name) for k, v in zip(arguments, value, strict=True))
    if kind in PLAIN and PLAIN[kind](value):
        return value
    raise ValueError(f"{name} cannot be {str(value)[:40]!r}")


# A bool is an int in Python, and JSON has integers where numbers are due.
PLAIN = {
    bool: lambda value: type(value) is bool,
    int: lambda value: type(value) is int and 0 <= value <= LARGEST_INTEGER,
    float: lambda value: type(value) in (int, float) and abs(value) <= LARGEST_NUMBER,
    str: lambda value: type(value) is str and len(value) <= LONGEST_WORD and value.isprintable(),
}


def _record(kind: Any, values: dict[str, Any], name: str) -> Any:
    hints = get_type_hints(kind)
    expected = [field.name for field in fields(kind)]
    if odd := set(expected) ^ set(values):
        word = "lacks" if (first := min(odd)) in expected else "has an unknown"
        raise ValueError(f"{name} {word} {first[:40]!r}")
    return kind(**{key: _typed(hints[key], values[key], key) for key in expected})


def _refuse(constant: str):
    raise ValueError(f"{constant} is not a number")
