"""Physics in words: it means what it says, keeps both laws, and refuses what it does not know."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spenn
from spenn.config import FitConfig
from spenn.generic import BLOCKS, Coordinates, Generic, is_learned
from spenn.systems import OSCILLATOR
from spenn.training import attach_epinets
from support import assert_lawful, law_errors, randomised

NAMES = ("q", "p", "s1", "s2", "n1", "n2")
UNITS = Coordinates.of([0.1, 0, 1, 2, 0.5, 0.5], [1.0, 2.0, 0.5, 3.0, 0.1, 1.0], 2.0)
CANONICAL = {"canonical": [["q", "p"]]}
ENERGIES = {
    "kinetic_energy": {"p": 2.0},
    "elastic_energy": {"q": {"stiffness": 3.0, "rest": 0.5}},
    "internal_energy": {"s1": 1.0},
}
CASES = {
    "entropy of some": {"entropy_of": ["s1", "s2"]},
    "canonical": CANONICAL,
    "canonical and an entropy of all": CANONICAL | {"entropy_of": list(NAMES)},
    "energies": CANONICAL | ENERGIES,
    "entropy": {"entropy": {"s1": 1.0, "s2": 0.5}},
    "everything but dissipation": CANONICAL
    | ENERGIES
    | {"entropy": {"s1": 1.0}, "learned": ["dissipation"]},
}
CONFIG = FitConfig(epinet_width=5, prior_width=5, dimension=3)
NETWORKS, STATES = 40, 40


def _random_spenns(table):
    """Random weights and epinets on declared physics: stacked, and a function to put one back."""
    physics = spenn.read_physics(table, NAMES)
    base = physics.blocks(UNITS, len(NAMES), 8, 2, key=jax.random.key(0))
    model = attach_epinets(base, 0.5, CONFIG, key=jax.random.key(1))
    mask = jax.tree.map(eqx.is_inexact_array, model)
    mask = eqx.tree_at(lambda m: m.base, mask, is_learned(base))
    weights, fixed = eqx.partition(model, mask)
    return randomised(lambda: weights, count=NETWORKS), lambda one: eqx.combine(one, fixed)


def _map(function, table):
    """A function of (realisation, state) over random networks, states and indices."""
    weights, whole = _random_spenns(table)
    rng = np.random.default_rng(0)
    states = jnp.asarray(rng.normal(size=(NETWORKS, STATES, len(NAMES))))
    indices = jnp.asarray(np.abs(rng.normal(size=(NETWORKS, STATES, CONFIG.dimension))))

    @eqx.filter_jit
    @eqx.filter_vmap
    def every(weights, states, indices):
        model = whole(weights)
        return jax.vmap(lambda x, z: function(model.realise(z), x))(states, indices)

    return every(weights, states, indices)


@pytest.mark.parametrize("name", CASES)
def test_both_laws_for_all_weights(name):
    assert_lawful(_map(law_errors, CASES[name]))


def test_both_laws_in_double_precision(x64):
    errors = _map(law_errors, CASES["energies"])
    assert errors.energy.dtype == "float64"
    assert_lawful(errors)


@pytest.mark.parametrize("name", ["energies", "entropy of some"])
def test_conserved_combinations_beside_other_words(x64, name):
    table = CASES[name] | {"conserved": [{"n1": 1, "n2": 2}]}

    def check(field, x):
        rates, entropy_slope = field.rates(x), jax.grad(field.entropy)(x)
        return rates, jnp.linalg.norm(rates.energy_slope), jnp.linalg.norm(entropy_slope)

    rates, energy_size, entropy_size = _map(check, table)
    speed = np.linalg.norm(rates.velocity, axis=-1)
    assert np.median(speed) > 1e-3
    assert np.all(np.abs(rates.energy_rate) <= 1e-12 * energy_size * (speed + 1))
    assert np.all(rates.entropy_rates[..., 0] >= -1e-12 * entropy_size * (speed + 1))
    atoms = UNITS.unscaled_velocity(rates.velocity) @ np.array([0, 0, 0, 0, 1.0, 2.0])
    np.testing.assert_allclose(atoms, 0, atol=1e-11 * speed.max())


def test_canonical_motion_is_what_the_energy_says(x64):
    """Without dissipation, `dq/dt = dE/dp` and `dp/dt = -dE/dq`, in the user's units."""
    table = CASES["energies"] | {"learned": ["energy", "entropy"]}

    def compare(field, x):
        slope = jax.grad(field.energy)(x) / UNITS.scale
        return UNITS.unscaled_velocity(field.velocity(x)), slope

    velocity, slope = _map(compare, table)
    np.testing.assert_allclose(velocity[..., 0], slope[..., 1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(velocity[..., 1], -slope[..., 0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(velocity[..., 2:], 0, atol=1e-12)


def test_the_oscillator_in_words_is_the_oscillator(x64):
    table = {
        "canonical": [["q", "p"]],
        "kinetic_energy": {"p": 1.0},
        "elastic_energy": {"q": 1.2},
        "internal_energy": {"eps": 1.0},
        "entropy": {"eps": 1.0},
        "learned": ["dissipation"],
    }
    physics = spenn.read_physics(table, OSCILLATOR.names)
    assert physics.learned == ("dissipation",) and physics.entropy_of is None
    states = jnp.asarray(OSCILLATOR.draw(np.random.default_rng(0), 10)) + 0.1
    for name in ("energy", "entropy", "poisson"):
        given, exact = (jax.vmap(getattr(p, name))(states) for p in (physics, OSCILLATOR))
        np.testing.assert_allclose(given, exact, rtol=1e-14)
    physics = replace(physics, dissipation=OSCILLATOR.dissipation, learned=())
    units = Coordinates.of([0.1, 0.2, 1.0], [0.5, 2.0, 0.1], 0.7)
    field = Generic(physics.blocks(units, 3, 4, 1, key=jax.random.key(0)))
    velocities = units.unscaled_velocity(jax.jit(jax.vmap(field.velocity))(units.scaled(states)))
    q, p, _ = states.T
    exact = np.stack([p, -1.2 * q - 0.4 * p, 0.4 * p**2], 1)
    np.testing.assert_allclose(velocities, exact, rtol=1e-9)


def test_what_is_learned_and_what_entropy_reads():
    def read(table):
        return spenn.read_physics(table, NAMES)

    assert read({}) == spenn.Physics()
    assert read(CANONICAL).learned == ("energy", "entropy", "dissipation")
    assert read(CANONICAL).entropy_of == (2, 3, 4, 5)
    assert read(CANONICAL | {"entropy_of": ["q", "s1"]}).entropy_of == (0, 2)
    assert read(CASES["entropy"]).learned == ("energy", "poisson", "dissipation")
    assert read(ENERGIES).learned == BLOCKS
    assert read({"learned": ["dissipation", "energy", "entropy"]}).poisson is None
    assert read({"conserved": [{"n1": 1, "n2": 1}]}).conserved == ((0, 0, 0, 0, 1, 1),)


FILE = """
[fit]
width = 10

[physics]
canonical = [["q", "p"]]
kinetic_energy = {p = 2}
entropy_of = ["s1", "s2"]
conserved = [{n1 = 1, n2 = 1}]
"""


def test_a_file(tmp_path):
    path = tmp_path / "physics.toml"
    path.write_text(FILE)
    physics = spenn.read_physics(path, NAMES)
    assert physics == spenn.read_physics(str(path), NAMES)
    assert physics.entropy_of == (2, 3)
    assert physics.energy is not None and physics.energy(jnp.arange(6.0)) == 1 / 4
    assert hash(physics.energy) == hash(spenn.read_physics(path, NAMES).energy)


def test_the_table_in_the_documentation():
    text = (Path(__file__).parents[1] / "docs" / "physics.md").read_text()
    (table,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    names = ("q", "p", "s1", "s2", "n1", "n2", "n3")
    physics = spenn.read_physics(tomllib.loads(table)["physics"], names)
    assert physics.entropy_of == (2, 3) and len(physics.conserved) == 2


WRONG = {
    "kinetic_enery = {p = 2.0}": r"no 'kinetic_enery' \(did you mean 'kinetic_energy'\?\)",
    "kinetic_energy = {P = 2.0}": r"kinetic_energy: there is no variable 'P'",
    "kinetic_energy = 2.0": r"must be a table such as \{q = 1.0\}; it is 2.0",
    'kinetic_energy = {p = "2"}': r"2 is not a number",
    "kinetic_energy = {p = true}": r"True is not a number",
    "kinetic_energy = {p = nan}": r"nan is not a number",
    f"kinetic_energy = {{p = 1{'0' * 400}}}": r"is not a number",
    "kinetic_energy = {p = 0.0}": r"mass of 'p' must be positive; it is 0.0",
    "kinetic_energy = {p = -1}": r"mass of 'p' must be positive; it is -1.0",
    "kinetic_energy = {p = 1e-200}": r"cannot have the coefficient",
    "kinetic_energy = {p = 1.0}\nelastic_energy = {p = 1.0}": r"a kinetic and an elastic",
    "elastic_energy = {q = {stifness = 1.0}}": r"a spring is \{stiffness = 3.0, rest = 1.0\}",
    "elastic_energy = {q = {stiffness = 1.0, rest = []}}": r"\[\] is not a number",
    'canonical = ["q", "p"]': r"must be a list of names; it is 'q'",
    'canonical = [["q", "p", "s1"]]': r"must list pairs such as",
    'canonical = [["q", "q"]]': r"in one pair, and in one only",
    'canonical = [["q", "p"], ["p", "s1"]]': r"in one pair, and in one only",
    "canonical = []": r"in one pair, and in one only",
    'canonical = "q, p"': r"must be a list of pairs of names",
    'canonical = [["q", 1]]': r"there is no variable 1",
    'canonical = [["q", "p"], ["s1", "s2"], ["n1", "n2"]]': r"none is left for the entropy",
    "entropy = {}": r"a variable that is not times 0",
    "entropy = {s1 = 0}": r"a variable that is not times 0",
    'entropy = ["s1"]': r"must be a table",
    'entropy = {s1 = 1}\nentropy_of = ["s1"]': r"the entropy is not learned",
    'entropy_of = "s1"': r"must be a list of names; it is 's1'",
    "entropy_of = []": r"at least one variable",
    'entropy_of = ["s1", "s1"]': r"none twice",
    'entropy_of = [["s1"]]': r"there is no variable \['s1'\]",
    "conserved = {n1 = 1}": r"must be a list of tables",
    "conserved = [{}]": r"a variable that is not times 0",
    'learned = "energy"': r"must be a list of some of energy",
    'learned = ["energie", "entropy"]': r"there is no block 'energie'",
    'learned = ["energy"]': r"the entropy must be given, learned or both",
    "energy = 2024-01-01": r"no 'energy'",
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_wrong_words_name_file_and_place(tmp_path, text):
    path = tmp_path / "physics.toml"
    path.write_text(f"[physics]\n{text}\n")
    with pytest.raises(ValueError, match=WRONG[text]) as caught:
        spenn.read_physics(path, NAMES)
    message = str(caught.value)
    assert message.startswith(f"{path}: [physics]") and message.endswith(".")
    assert "\n" not in message and len(message) < 400 and message.count("[physics]") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[physics\n", "is not a TOML file"),
        (b"\xff\xfe", "is not a TOML file"),
        (b"x = " + b"[" * 5000, "is not a TOML file"),
        (b"[fit]\n", r"has no table \[physics\]"),
        (b"physics = 3\n", r"has no table \[physics\]"),
        (b"#" * 2_000_000, "too large"),
    ],
)
def test_wrong_files(tmp_path, content, message):
    path = tmp_path / "physics.toml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"physics.toml.*{message}") as caught:
        spenn.read_physics(path, NAMES)
    assert "\n" not in str(caught.value)


def test_missing_file_and_folder(tmp_path):
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(ValueError, match="cannot be read"):
            spenn.read_physics(path, NAMES)
