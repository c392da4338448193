"""Physics in words: the common cases, as data rather than functions.

A table of words and numbers becomes a `Physics` whose functions are objects that hold nothing but
numbers. A model file keeps those, so that it needs no Python to come back. Nothing is evaluated.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .generic import BLOCKS
from .physics import Physics, number_of

KEYS = (
    "canonical",
    "conserved",
    "elastic_energy",
    "entropy",
    "entropy_of",
    "internal_energy",
    "kinetic_energy",
    "learned",
)
LARGEST_FILE = 1_000_000
LARGEST_NUMBER = 1e30  # the square of a state times this is still a number in single precision


@dataclass(frozen=True)
class Quadratic:
    """A potential `sum_i slope_i x_i + stiffness_i (x_i - rest_i)^2 / 2`, in the user's units."""

    slope: tuple[float, ...]
    stiffness: tuple[float, ...]
    rest: tuple[float, ...]

    def __post_init__(self):
        """Refuse what is not a potential."""
        if not len(self.slope) == len(self.stiffness) == len(self.rest):
            raise ValueError("slopes, stiffnesses and rests are as many as there are variables.")
        for number in (*self.slope, *self.stiffness, *self.rest):
            if not abs(number) <= LARGEST_NUMBER:
                raise ValueError(f"a potential cannot have the coefficient {number}.")

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """Value at one state."""
        slope, stiffness, rest = (
            jnp.asarray(a, x.dtype) for a in (self.slope, self.stiffness, self.rest)
        )
        return jnp.sum(slope * x + stiffness * (x - rest) ** 2 / 2)


@dataclass(frozen=True)
class Canonical:
    """The Poisson operator of pairs `(q, p)`: `dq/dt = dE/dp` and `dp/dt = -dE/dq`."""

    pairs: tuple[tuple[int, int], ...]

    def __post_init__(self):
        """Refuse a variable that is in two pairs."""
        every = [number for pair in self.pairs for number in pair]
        if len(set(every)) != len(every) or not every:
            raise ValueError("every variable of canonical pairs is in one pair, and in one only.")

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "d d"]:
        """Matrix at one state."""
        first, second = np.transpose(self.pairs)
        upper = np.zeros((x.size, x.size))
        upper[first, second] = 1
        return jnp.asarray(upper - upper.T, x.dtype)


def read_physics(source: str | Path | Mapping[str, Any], names: Sequence[str]) -> Physics:
    """Physics of the variables `names`, from the table `[physics]` of a TOML file or from a table.

    | key | means |
    |---|---|
    | `canonical = [["q", "p"]]` | `dq/dt = dE/dp`, `dp/dt = -dE/dq`, nothing else is reversible |
    | `kinetic_energy = {p = 2.0}` | `p^2 / (2 * 2.0)` is a part of the energy |
    | `elastic_energy = {q = 3.0}` | `3.0 q^2 / 2` is; `{q = {stiffness = 3.0, rest = 1.0}}` |
    | `internal_energy = {eps = 1.0}` | `1.0 eps` is |
    | `entropy = {eps = 0.5}` | the entropy is `0.5 eps` |
    | `entropy_of = ["s1", "s2"]` | the learned entropy reads these variables alone |
    | `conserved = [{n1 = 1, n3 = 1}]` | `n1 + n3` never changes |
    | `learned = ["energy"]` | the blocks that are learned, on top of what is given of them |

    Everything is learned that is not given: by default the entropy is not if `entropy` is there,
    the Poisson operator is not if `canonical` is, and energies are parts of one that is learned.
    With `canonical`, a learned entropy reads the other variables unless `entropy_of` says more,
    because motion alone makes no entropy.

    **Example:** `spenn.fit(train, physics=spenn.read_physics("physics.toml", train.names))`
    """
    where, table = _table(source)
    for key in table:
        if key not in KEYS:
            near = get_close_matches(str(key), KEYS, 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ValueError(f"{where} has no {key!r}{hint}; choose from {', '.join(KEYS)}.")
    words = _Words(where, table, tuple(names))
    given: dict[str, Any] = {
        "energy": words.energy(),
        "entropy": words.entropy(),
        "poisson": words.canonical(),
    }
    given["learned"] = words.learned(given)
    given["conserved"] = words.conserved()
    given["entropy_of"] = words.entropy_of(given["poisson"], "entropy" in given["learned"])
    try:
        return Physics(**given)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _table(source: str | Path | Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Where a table is, in words, and what it holds."""
    if isinstance(source, Mapping):
        return "the physics", source
    path = Path(source)
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError(f"{path} is too large for a table of physics.")
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not a TOML file: {str(error).splitlines()[0]}.") from None
    if not isinstance(content.get("physics"), dict):
        raise ValueError(f"{path} has no table [physics].")
    return f"{path}: [physics]", content["physics"]


@dataclass(frozen=True)
class _Words:
    """A table, and what its words mean for variables of some names."""

    where: str
    table: Mapping[str, Any]
    names: tuple[str, ...]

    def energy(self) -> Quadratic | None:
        """The known part of the energy."""
        masses = self._numbers("kinetic_energy", self.table.get("kinetic_energy", {}))
        springs = self._items("elastic_energy", self.table.get("elastic_energy", {}))
        springs = {number: self._spring(value) for number, value in springs.items()}
        if twice := sorted(set(masses) & set(springs)):
            raise ValueError(
                f"{self.where}: {self.names[twice[0]]!r} cannot have a kinetic and an elastic "
                "energy; one is of a momentum, the other of a position."
            )
        for number, mass in masses.items():
            if mass <= 0:
                raise ValueError(
                    f"{self.where} kinetic_energy: the mass of {self.names[number]!r} must be "
                    f"positive; it is {mass}."
                )
        parts = {n: (1 / mass, 0.0) for n, mass in masses.items()} | springs
        slopes = self._numbers("internal_energy", self.table.get("internal_energy", {}))
        if not parts and not slopes:
            return None
        stiffness, rest = zip(
            *(parts.get(n, (0.0, 0.0)) for n in range(len(self.names))), strict=True
        )
        return self._made(Quadratic, self._spread(slopes), stiffness, rest)

    def entropy(self) -> Quadratic | None:
        """A linear combination of variables."""
        if "entropy" not in self.table:
            return None
        none = self._spread({})
        return self._made(
            Quadratic, self._combination("entropy", self.table["entropy"]), none, none
        )

    def canonical(self) -> Canonical | None:
        """The Poisson operator."""
        if "canonical" not in self.table:
            return None
        pairs = [
            self._variables("canonical", pair) for pair in self._list("canonical", "pairs of names")
        ]
        if not all(len(pair) == 2 for pair in pairs):
            raise ValueError(f'{self.where} canonical must list pairs such as ["q", "p"].')
        return self._made(Canonical, tuple(pairs))

    def conserved(self) -> tuple[tuple[float, ...], ...]:
        """Rows of coefficients."""
        if "conserved" not in self.table:
            return ()
        tables = self._list("conserved", "tables such as {n1 = 1, n2 = 1}")
        return tuple(self._combination("conserved", table) for table in tables)

    def entropy_of(self, poisson: Canonical | None, learned: bool) -> tuple[int, ...] | None:
        """What a learned entropy reads."""
        if "entropy_of" in self.table:
            return self._variables("entropy_of", self.table["entropy_of"])
        if poisson is None or not learned:
            return None
        moving = {number for pair in poisson.pairs for number in pair}
        others = tuple(n for n in range(len(self.names)) if n not in moving)
        if not others:
            raise ValueError(
                f"{self.where} canonical: every variable is in a pair, and none is left for the "
                "entropy: list its variables as entropy_of."
            )
        return others

    def learned(self, given: Mapping[str, Any]) -> tuple[str, ...]:
        """The blocks that have a network."""
        if "learned" not in self.table:
            whole = ("entropy", "poisson")
            return tuple(b for b in BLOCKS if b not in whole or given[b] is None)
        blocks = self._list("learned", f"some of {', '.join(BLOCKS)}")
        for block in blocks:
            if block not in BLOCKS:
                raise ValueError(
                    f"{self.where} learned: there is no block {block!r}; choose from "
                    f"{', '.join(BLOCKS)}."
                )
        return tuple(b for b in BLOCKS if b in blocks)

    def _combination(self, key: str, table: Any) -> tuple[float, ...]:
        """Coefficients of all variables, not all of them 0."""
        numbers = self._numbers(key, table)
        if not any(numbers.values()):
            raise ValueError(f"{self.where} {key} must name a variable that is not times 0.")
        return self._spread(numbers)

    def _numbers(self, key: str, table: Any) -> dict[int, float]:
        items = self._items(key, table)
        return {number: self._number(key, value) for number, value in items.items()}

    def _items(self, key: str, table: Any) -> dict[int, Any]:
        if not isinstance(table, Mapping):
            raise ValueError(
                f"{self.where} {key} must be a table such as {{{self.names[0]} = 1.0}}; "
                f"it is {table!r}."
            )
        return {number_of(n, self.names, f"{self.where} {key}"): v for n, v in table.items()}

    def _spring(self, value: Any) -> tuple[float, float]:
        if not isinstance(value, Mapping):
            return self._number("elastic_energy", value), 0.0
        if not {"stiffness"} <= set(value) <= {"stiffness", "rest"}:
            raise ValueError(
                f"{self.where} elastic_energy: a spring is {{stiffness = 3.0, rest = 1.0}}; "
                f"it is {dict(value)}."
            )
        stiffness, rest = value["stiffness"], value.get("rest", 0.0)
        return self._number("elastic_energy", stiffness), self._number("elastic_energy", rest)

    def _number(self, key: str, value: Any) -> float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not abs(value) <= LARGEST_NUMBER:
            raise ValueError(f"{self.where} {key}: {str(value)[:40]} is not a number of any size.")
        return float(value)

    def _list(self, key: str, of: str) -> list:
        value = self.table[key]
        if not isinstance(value, list | tuple):
            raise ValueError(f"{self.where} {key} must be a list of {of}; it is {value!r}.")
        return list(value)

    def _variables(self, key: str, value: Any) -> tuple[int, ...]:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{self.where} {key} must be a list of names; it is {value!r}.")
        return tuple(number_of(name, self.names, f"{self.where} {key}") for name in value)

    def _spread(self, numbers: Mapping[int, float]) -> tuple[float, ...]:
        """One number per variable, 0 where none is given."""
        return tuple(numbers.get(n, 0.0) for n in range(len(self.names)))

    def _made(self, kind: Any, *values: Any) -> Any:
        try:
            return kind(*values)
        except ValueError as error:
            raise ValueError(f"{self.where}: {error}") from None
