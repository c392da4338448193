"""What is known of a system, and what is left to learn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

import numpy as np
from jaxtyping import PRNGKeyArray

from .generic import (
    BLOCKS,
    AbstractDomain,
    Blocks,
    Coordinates,
    KnownDissipation,
    KnownPoisson,
    KnownPotential,
    Point,
    learned_dissipation,
    learned_poisson,
    learned_potential,
)
from .networks import split


@dataclass(frozen=True)
class Physics:
    """What is known, as functions in the user's units, and which blocks are learned.

    A block with a function that is not in `learned` is taken as known; one that is in `learned` as
    well is known + learned. By default everything is learned, of a state without extent; on another
    `domain` the functions are those of its local states. Rows of `conserved` are coefficients of
    linear combinations of the variables that never change, such as atoms in a closed vessel.
    `entropy_of` lists the variables that a learned entropy reads, by name or by number; by default
    it reads them all. `spenn.read_physics` makes the common cases from a table of words and
    numbers.
    """

    energy: Callable | None = None
    entropy: Callable | None = None
    poisson: Callable | None = None
    dissipation: Callable | None = None
    learned: tuple[str, ...] = BLOCKS
    domain: AbstractDomain = Point()  # noqa: RUF009, immutable
    conserved: tuple[tuple[float, ...], ...] = ()
    entropy_of: tuple[str | int, ...] | None = None

    def __post_init__(self):
        """Refuse unknown names, empty energy or entropy, and an entropy of nothing."""
        if unknown := set(self.learned) - set(BLOCKS):
            raise ValueError(f"there is no block {sorted(unknown)[0]!r}; the blocks are {BLOCKS}.")
        for name in ("energy", "entropy"):
            if name not in self.learned and getattr(self, name) is None:
                raise ValueError(f"the {name} must be given, learned or both.")
        if self.conserved and not isinstance(self.domain, Point):
            raise ValueError("conserved combinations are those of a state without extent.")
        if self.entropy_of is not None:
            self._check_entropy_of()

    @property
    def known(self) -> tuple[str, ...]:
        """Blocks with a function, whether something is learned beside it or not."""
        return tuple(name for name in BLOCKS if getattr(self, name) is not None)

    def named(self, names: Sequence[str]) -> "Physics":
        """The same, with the numbers of variables in place of their names."""
        if self.entropy_of is None:
            return self
        numbers = (v if isinstance(v, int) else self._number(v, names) for v in self.entropy_of)
        return replace(self, entropy_of=tuple(numbers))

    def blocks(
        self, coordinates: Coordinates, size: int, width: int, depth: int, *, key: PRNGKeyArray
    ) -> Blocks:
        """Known parts in scaled coordinates and fresh networks for the learned ones."""
        domain = self._domain(coordinates, size)
        sizes, units = domain.sizes(size), domain.units(coordinates)
        reads = self._reads(sizes.entropy)
        shape = (width, depth)
        kinds = {
            "energy": (
                lambda f: KnownPotential(f, units.energy, units.energy_unit),
                lambda key: learned_potential(sizes.energy, *shape, key=key),
            ),
            "entropy": (
                lambda f: KnownPotential(f, units.entropy),
                lambda key: learned_potential(sizes.entropy, *shape, reads=reads, key=key),
            ),
            "poisson": (
                lambda f: KnownPoisson(f, coordinates, domain.directions),
                lambda key: learned_poisson(size, sizes.poisson, *shape, key=key),
            ),
            "dissipation": (
                lambda f: KnownDissipation(f, units.energy, domain.directions),
                lambda key: learned_dissipation(sizes.energy, sizes.force, *shape, key=key),
            ),
        }
        if self.poisson is not None and not sizes.poisson:
            raise ValueError("this domain has a Poisson operator of its own; leave it out.")

        def parts(name, key) -> tuple:
            if name == "poisson" and not sizes.poisson:
                return ()
            known, learned = kinds[name]
            function = getattr(self, name)
            given = () if function is None else (known(function),)
            drawn = (learned(key),) if name in self.learned else ()
            return given + drawn

        keys = split(key, len(BLOCKS))
        every = {name: parts(name, k) for name, k in zip(BLOCKS, keys, strict=True)}
        return Blocks(**every, domain=domain.scaled())

    def _domain(self, coordinates: Coordinates, size: int) -> AbstractDomain:
        if not self.conserved:
            return self.domain
        rows = np.atleast_2d(np.asarray(self.conserved, np.float64))
        if rows.shape[1] != size:
            raise ValueError(
                f"a conserved combination needs one coefficient for each of {size} variables."
            )
        return Point.keeping(rows * coordinates.on_host().scale)

    def _check_entropy_of(self):
        if not self.entropy_of or len(set(self.entropy_of)) != len(self.entropy_of):
            raise ValueError(
                "entropy_of must list at least one variable, and none twice; "
                f"it is {self.entropy_of}."
            )
        if "entropy" not in self.learned:
            raise ValueError(
                "entropy_of says what a learned entropy reads, and the entropy is not learned: "
                "leave one of the two out."
            )

    def _number(self, name: str, names: Sequence[str]) -> int:
        if not isinstance(self.domain, Point):
            raise ValueError(
                "entropy_of lists numbers of internal variables where a state has extent; "
                f"it names {name!r}."
            )
        return number_of(name, names, "entropy_of")

    def _reads(self, size: int) -> tuple[int, ...] | None:
        """The entries of a local state that a learned entropy reads, of `size` that there are."""
        reads: list[int] = []
        for variable in self.entropy_of or ():
            if isinstance(variable, str) or not 0 <= variable < size:
                raise ValueError(
                    f"entropy_of must list numbers from 0 to {size - 1}; it has {variable!r}."
                )
            reads.append(variable)
        return tuple(reads) or None


def number_of(name: str, names: Sequence[str], where: str) -> int:
    """The number of the variable of a name, which is given at the place `where`."""
    if name in names:
        return list(names).index(name)
    near = get_close_matches(str(name), names, 1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise ValueError(
        f"{where}: there is no variable {name!r}{hint}; the variables are {', '.join(names)}."
    )
