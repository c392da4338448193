"""Both laws over a million random (network, state, index) triples of each method.

    python benchmarks/laws.py [--triples 1000000]

Networks, states and indices are drawn at random, nothing is trained, amplitudes are large. The
backward error is the residual over the norms that enter it, in units of machine epsilon.
"""

import argparse
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp

from spenn.baselines import MCDropout
from spenn.epinet import INDICES, Shape, attach
from spenn.generic import Coordinates, irreversible, rows_without, without
from spenn.physics import Physics

STATES = 1000


def residuals(model, x, index):
    """Both laws and both degeneracies at one state, and the largest entry of L + L^T."""
    field = model.realise(index)
    energy_slope, entropy_slope = jax.grad(field.energy)(x), jax.grad(field.entropy)(x)
    part = field.blocks.poisson[0]
    operator = part.operator(x, entropy_slope)
    # The operator is a product of factors; its own norm may be small by cancellation.
    raw = part.raw(x)
    factors = _norm(rows_without(part.tensor, entropy_slope)) ** 2 * _norm(raw - raw.T)
    reversible = field.poisson(x, entropy_slope, energy_slope)
    force = without(energy_slope, entropy_slope)
    slope, rest = (field.dissipation_slope(x, y) for y in (force, jnp.zeros_like(x)))
    given = irreversible(energy_slope, entropy_slope, lambda y: field.dissipation_slope(x, y))
    energy, entropy, slopes = _norm(energy_slope), _norm(entropy_slope), _norm(slope) + _norm(rest)
    return jnp.stack(
        [
            jnp.abs(jnp.sum(energy_slope * reversible)) / (factors * energy**2),
            jnp.abs(jnp.sum(energy_slope * given)) / (energy * slopes),
            _norm(part(x, entropy_slope, entropy_slope)) / (factors * entropy),
            -jnp.sum(entropy_slope * given) / (entropy * slopes),
            jnp.max(jnp.abs(operator + operator.T)),
        ]
    )


def _norm(array):
    return jnp.sqrt(jnp.sum(array**2))


@eqx.filter_jit
def worst(model, key):
    """Largest residuals over many states and indices of one network."""
    state_key, index_key = jax.random.split(key)
    size = model.base.poisson[0].tensor.shape[0]
    states = 2 * jax.random.normal(state_key, (STATES, size))
    indices = model.draw(STATES, key=index_key)
    return jnp.max(jax.vmap(lambda x, z: residuals(model, x, z))(states, indices), 0)


def spenn(base, key):
    """An S-PENN with large perturbations."""
    return attach(base, INDICES["half-normal"](), Shape(5, 5, 5, 1), amplitude=0.3, key=key)


def dropout(base, key):
    """Dropout at the paper's rate."""
    del key
    return MCDropout(base, 0.2)


def audit(make, size: int, networks: int) -> jax.Array:
    """Largest residuals over many networks, in units of machine epsilon."""
    out = jnp.zeros(5)
    for seed in range(networks):
        key = jax.random.key(seed)
        base = Physics().blocks(Coordinates.identity(size), size, 20, 2, key=key)
        model = make(base, key)
        model = jax.tree.map(lambda a: 1.5 * a if eqx.is_inexact_array(a) else a, model)
        out = jnp.maximum(out, worst(model, key))
    return out / jnp.finfo(out.dtype).eps


def main() -> None:
    """Print one row per dimension and precision."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--triples", type=int, default=1_000_000)
    networks = -(-parser.parse_args().triples // STATES)
    print(f"{networks * STATES} triples each; backward errors in machine epsilons")
    print("| method | d | precision | DE.L DE | DE.irreversible | L DS | -production | L + L^T |")
    print("|---" * 8 + "|")
    for make, size, x64 in itertools.product((spenn, dropout), (3, 6, 16), (False, True)):
        with jax.enable_x64(x64):
            row = " | ".join(f"{float(v):.2f}" for v in audit(make, size, networks))
        print(f"| {make.__name__} | {size} | float{64 if x64 else 32} | {row} |", flush=True)


if __name__ == "__main__":
    main()
