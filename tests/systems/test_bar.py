"""The viscoplastic bar: closed forms, references, and a short training."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spenn
from spenn.forecast import evaluate
from spenn.generic import Coordinates, Deterministic, Generic
from spenn.systems import VISCOPLASTIC, simulate
from spenn.systems._bar import CELLS, DENSITY, HEAT, LENGTH, MODULUS, VISCOSITY, YIELD

TARGETS = np.array([[0.01], [0.02]])
NODES = CELLS + 1


@pytest.fixture(scope="module")
def references():
    return {name: simulate(VISCOPLASTIC, TARGETS, name) for name in ("paper", "converged")}


def _fields(x):
    parts = np.split(np.asarray(x), np.cumsum([NODES, NODES, CELLS]), -1)
    return dict(zip(VISCOPLASTIC.names, parts, strict=True))


def test_velocity_agrees_with_the_closed_forms(references):
    states = references["converged"].states[:, ::25].reshape(-1, 4 * CELLS + 2)
    with jax.enable_x64(True):
        rates = _fields(jax.jit(jax.vmap(VISCOPLASTIC.exact().velocity))(jnp.asarray(states)))
    x = _fields(states)
    width = LENGTH / CELLS
    stress = MODULUS * (np.diff(x["u"]) / width - x["eps_vp"])
    flow = np.maximum(np.abs(stress) - YIELD, 0) * np.sign(stress) / VISCOSITY
    assert np.max(flow) > 0.1  # it does yield
    np.testing.assert_allclose(rates["u"], x["p"] / DENSITY, rtol=1e-12)
    force = np.diff(stress) / width
    np.testing.assert_allclose(rates["p"][:, 1:-1], force, rtol=1e-9, atol=1e-9 * np.max(force))
    np.testing.assert_allclose(rates["eps_vp"], flow, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rates["theta"], stress * flow / HEAT, rtol=1e-9, atol=1e-6)


def test_references_differ_by_the_error_of_the_papers_integrator(references):
    error = _fields(np.abs(references["paper"].states - references["converged"].states))
    floors = {"u": 8.8e-8, "p": 417, "eps_vp": 6.9e-8, "theta": 0.19}
    for name, floor in floors.items():
        assert 0.5 * floor < error[name].mean() < 2 * floor


def test_the_papers_integrator_converges(references):
    """Forward Euler for the cells: half the step, half the error."""

    def error(factor):
        finer = replace(
            VISCOPLASTIC,
            dt=VISCOPLASTIC.dt / factor,
            records=(VISCOPLASTIC.records - 1) * factor + 1,
        )
        states = simulate(finer, TARGETS, "paper").states[:, ::factor]
        return np.abs(_fields(states - references["converged"].states)["eps_vp"]).mean()

    assert 1.7 < error(1) / error(2) < 2.3


def test_temperature_and_viscoplastic_strain_only_grow_under_tension(references):
    for reference in references.values():
        theta = _fields(reference.states)["theta"]
        assert np.min(np.diff(theta, axis=1)) >= 0


def test_exact_physics_keeps_the_balance_of_energy(references):
    data = references["converged"]
    units = Coordinates.identity(data.states.shape[-1])
    exact = Deterministic(VISCOPLASTIC.exact().blocks)
    audit = evaluate(exact, units, data, jnp.zeros((1, 0))).summary.audit
    scale = audit.energy_high.max() - audit.energy_low.min()
    assert audit.energy_drift.max() < 1e-5 * scale
    assert audit.entropy_rate.min() >= 0


def test_known_densities_move_the_same_way_in_scaled_coordinates(references):
    data = references["converged"]
    size = data.states.shape[-1]
    flat = data.states.reshape(-1, size), data.derivatives.reshape(-1, size)
    with jax.enable_x64(True):
        domain = VISCOPLASTIC.domain()
        units = domain.coordinates(*flat)
        physics = spenn.Physics(
            VISCOPLASTIC.energy,
            VISCOPLASTIC.entropy,
            None,
            VISCOPLASTIC.dissipation,
            learned=(),
            domain=domain,
        )
        field = Generic(physics.blocks(units, size, 4, 1, key=jax.random.key(0)))
        states = jnp.asarray(flat[0][::40])
        velocities = jax.vmap(field.velocity)(units.scaled(states))
        free = domain.free(size)
        np.testing.assert_allclose(
            units.unscaled_velocity(velocities)[:, free],
            flat[1][::40][:, free],
            rtol=1e-6,
            atol=1e-9 * np.abs(flat[1]).max(),
        )
        assert np.all(np.abs(velocities[:, free]) < 50)
