"""SOAP against a plain re-derivation, and against Adam where the two must agree or differ."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from spenn.training import _soap, scale_by_soap, soap
from spenn.training._soap import _largest_first, householder

B1, B2, EPS, REFRESH = 0.9, 0.8, 1e-8, 5
STEPS = 25


class PlainSoap:
    """Algorithm 3 of arXiv:2409.11321 for one matrix, in NumPy, one line per line."""

    def __init__(self, left, right):
        self.left, self.right = left.copy(), right.copy()
        self.basis_left, self.basis_right = np.eye(len(left)), np.eye(len(right))
        self.momentum = np.zeros((len(left), len(right)))
        self.second = np.zeros_like(self.momentum)
        self.count = 0

    def update(self, gradient):
        self.count += 1
        turned = self.basis_left.T @ gradient @ self.basis_right
        self.momentum = B1 * self.momentum + (1 - B1) * gradient
        self.second = B2 * self.second + (1 - B2) * turned**2
        mean = self.basis_left.T @ self.momentum @ self.basis_right / (1 - B1**self.count)
        root = np.sqrt(self.second / (1 - B2**self.count))
        step = self.basis_left @ (mean / (root + EPS)) @ self.basis_right.T
        self.left = B2 * self.left + (1 - B2) * gradient @ gradient.T
        self.right = B2 * self.right + (1 - B2) * gradient.T @ gradient
        if (self.count - 1) % REFRESH == 0:
            self.basis_left, rows = self._refreshed(self.left, self.basis_left)
            self.basis_right, columns = self._refreshed(self.right, self.basis_right)
            self.second = self.second[np.ix_(rows, columns)]
        return step

    @staticmethod
    def _refreshed(average, basis):
        eigenvalues = np.diag(basis.T @ average @ basis)
        order = np.argsort(-eigenvalues)
        shift = 1e-6 * np.trace(average) / len(average)
        return np.linalg.qr((average + shift * np.eye(len(average))) @ basis[:, order])[0], order


class PlainAdam:
    def __init__(self, shape):
        self.momentum, self.second, self.count = np.zeros(shape), np.zeros(shape), 0

    def update(self, gradient):
        self.count += 1
        self.momentum = B1 * self.momentum + (1 - B1) * gradient
        self.second = B2 * self.second + (1 - B2) * gradient**2
        root = np.sqrt(self.second / (1 - B2**self.count))
        return self.momentum / (1 - B1**self.count) / (root + EPS)


SHAPES = {"square": (4, 4), "another": (4, 4), "tall": (5, 2), "stack": (3, 2, 3), "bias": (4,)}


def _gradients(rng):
    return {
        name: rng.normal(size=shape) * 10.0 ** rng.integers(-1, 2) for name, shape in SHAPES.items()
    }


def _definite(rng, size):
    """One stack of averages per shape: full rank, so that no basis is left to rounding."""
    root = rng.normal(size=(*size[:-1], size[-1], size[-1]))
    return root @ np.swapaxes(root, -1, -2) + np.eye(size[-1])


def test_against_plain_soap_and_adam(x64):
    """Updates, not bases: the sign of an eigenvector is free and cancels in the update."""
    rng = np.random.default_rng(0)
    optimiser = scale_by_soap(B1, B2, EPS, REFRESH)
    state = optimiser.init({name: jnp.zeros(shape) for name, shape in SHAPES.items()})
    # Leaves are visited in alphabetical order, so that "another" is before "square".
    members = {"4x4": ("another", "square"), "5x2": ("tall",), "2x3": ("stack",) * 3}
    assert set(state.matrices) == set(members)
    plain, matrices = {}, {}
    for shape, names in members.items():
        m, n = state.matrices[shape].momentum.shape[1:]
        left, right = _definite(rng, (len(names), m)), _definite(rng, (len(names), n))
        matrices[shape] = state.matrices[shape]._replace(
            left=jnp.asarray(left), right=jnp.asarray(right)
        )
        for name, a, b in zip(names, left, right, strict=True):
            plain.setdefault(name, []).append(PlainSoap(a, b))
    state = state._replace(matrices=matrices)
    adam = PlainAdam(SHAPES["bias"])
    update = jax.jit(optimiser.update)

    for _ in range(STEPS):
        gradients = _gradients(rng)
        updates, state = update(jax.tree.map(jnp.asarray, gradients), state)
        np.testing.assert_allclose(updates["bias"], adam.update(gradients["bias"]), rtol=1e-12)
        for name, references in plain.items():
            slices = gradients[name].reshape(-1, *SHAPES[name][-2:])
            expected = [r.update(g) for r, g in zip(references, slices, strict=True)]
            ours = updates[name].reshape(slices.shape)
            np.testing.assert_allclose(ours, expected, rtol=1e-8, atol=1e-10)


def test_square_matrix_from_a_fresh_start(x64):
    rng = np.random.default_rng(1)
    optimiser = scale_by_soap(B1, B2, EPS, REFRESH)
    state = optimiser.init(jnp.zeros((4, 4)))
    plain = PlainSoap(np.zeros((4, 4)), np.zeros((4, 4)))
    for _ in range(STEPS):
        gradient = rng.normal(size=(4, 4))
        ours, state = jax.jit(optimiser.update)(jnp.asarray(gradient), state)
        np.testing.assert_allclose(ours, plain.update(gradient), rtol=1e-7, atol=1e-9)


def test_rounding_does_not_choose_between_equal_eigenvalues(x64):
    """Opposite rows, as of a difference, beside a much larger one: which comes first shows."""
    rng = np.random.default_rng(4)
    optimiser = scale_by_soap(B1, B2, EPS, REFRESH)
    states = [optimiser.init(jnp.zeros((3, 4))) for _ in range(2)]
    update = jax.jit(optimiser.update)
    for _ in range(STEPS):
        row, large = rng.normal(size=(2, 4))
        gradient = np.stack([row, -row, 1e3 * large])
        one, states[0] = update(jnp.asarray(gradient), states[0])
        rounded = gradient * [[1], [1 + 1e-15], [1]]
        other, states[1] = update(jnp.asarray(rounded), states[1])
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


def test_equal_eigenvalues_keep_their_order_whatever_they_are():
    """In single precision: a pair at any size, each larger in turn by its last digits."""
    sizes = np.exp(np.random.default_rng(0).uniform(-20, 20, (20_000, 1))).astype(np.float32)
    for first, second in ((1, 1 + 2e-6), (1 + 2e-6, 1)):
        pairs = jnp.asarray(sizes * np.array([first, 7.0, second, 1e-3], np.float32))
        np.testing.assert_array_equal(_largest_first(pairs), [[1, 0, 2, 3]] * len(sizes))


def test_eigenvalues_below_the_rounding_of_the_largest_keep_their_order():
    """Directions that no gradient had: what is seen there is rounding, of either sign."""
    rng = np.random.default_rng(0)
    noise = rng.uniform(-3e-7, 3e-7, (1000, 3)).astype(np.float32)
    values = jnp.asarray(np.insert(noise, 1, 1.0, 1))
    np.testing.assert_array_equal(_largest_first(values), [[1, 0, 2, 3]] * len(noise))


def test_eigenvalues_are_put_in_order():
    values = jnp.array([[0.5, 3.0, 0.0, 2.0, -1e-9], [1.0, 1.00005, 1.0001, 5.0, 0.9]])
    np.testing.assert_array_equal(_largest_first(values)[0], [1, 3, 0, 2, 4])
    np.testing.assert_array_equal(_largest_first(values)[1], [3, 0, 1, 2, 4])


class ShortSides(PlainSoap):
    """A long side keeps the basis it starts with."""

    @staticmethod
    def _refreshed(average, basis):
        if len(average) > 3:
            return basis, np.arange(len(average))
        return PlainSoap._refreshed(average, basis)


@pytest.mark.parametrize("shape", [(5, 2), (2, 5), (4, 4)])
def test_long_sides_are_not_turned(x64, monkeypatch, shape):
    monkeypatch.setattr(_soap, "LONGEST", 3)
    rng = np.random.default_rng(3)
    optimiser = scale_by_soap(B1, B2, EPS, REFRESH)
    state = optimiser.init(jnp.zeros(shape))
    plain = ShortSides(*(np.zeros((k, k)) for k in shape))
    for _ in range(STEPS):
        gradient = rng.normal(size=shape)
        ours, state = jax.jit(optimiser.update)(jnp.asarray(gradient), state)
        np.testing.assert_allclose(ours, plain.update(gradient), rtol=1e-7, atol=1e-9)


def test_is_adam_where_there_is_nothing_to_turn(x64):
    """One by one matrices: fails where the second moment waits for the next refresh."""
    rng = np.random.default_rng(2)
    ours, adam = scale_by_soap(B1, B2, EPS, 7), optax.scale_by_adam(B1, B2, EPS)
    parameter = jnp.zeros((1, 1))
    states = [o.init(parameter) for o in (ours, adam)]
    for _ in range(STEPS):
        gradient = jnp.asarray(rng.normal(size=(1, 1)) * 10.0 ** rng.integers(-2, 3))
        one, states[0] = ours.update(gradient, states[0])
        other, states[1] = adam.update(gradient, states[1])
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_second_moment_moves_every_step(x64):
    optimiser = scale_by_soap(refresh_every=1000)
    state = optimiser.init(jnp.zeros((3, 3)))
    seen = []
    for step in range(4):
        _, state = optimiser.update(jnp.full((3, 3), 10.0**step), state)
        seen.append(float(jnp.sum(state.matrices["3x3"].second_moment)))
    # The sum of squares does not depend on the basis.
    expected, average = [], 0.0
    for step in range(4):
        average = 0.95 * average + 0.05 * 9 * 100.0**step
        expected.append(average)
    np.testing.assert_allclose(seen, expected, rtol=1e-10)


def _steps_to_converge(optimiser, limit=3000):
    """Steps to 1e-6 of the first loss, on a badly scaled quadratic that is turned off the axes."""
    rng = np.random.default_rng(0)
    turns = [np.linalg.qr(rng.normal(size=(8, 8)))[0] for _ in range(2)]
    scales = 10.0 ** np.linspace(0, 3, 8)
    left, right = (jnp.asarray(t @ np.diag(scales**0.5) @ t.T) for t in turns)
    target = jnp.asarray(rng.normal(size=(8, 8)))

    def loss(w):
        return jnp.sum((left @ (w - target) @ right) ** 2)

    def body(carry, _):
        w, state = carry
        value, gradient = jax.value_and_grad(loss)(w)
        update, state = optimiser.update(gradient, state, w)
        return (optax.apply_updates(w, update), state), value

    start = jnp.zeros((8, 8))
    _, losses = jax.lax.scan(body, (start, optimiser.init(start)), None, length=limit)
    done = np.asarray(losses < 1e-6 * losses[0])
    return int(np.argmax(done)) if done.any() else limit


def test_beats_adam_on_a_badly_scaled_quadratic(x64):
    rates = [0.3, 0.1, 0.03, 0.01]
    decay = lambda rate: optax.cosine_decay_schedule(rate, 3000)  # noqa: E731
    ours = min(_steps_to_converge(soap(decay(r))) for r in rates)
    adam = min(_steps_to_converge(optax.adam(decay(r), b1=0.95, b2=0.95)) for r in rates)
    assert ours < 0.7 * adam


@pytest.mark.parametrize("shapes", [[(3, 3)], [(4,)], [()], [(2, 3), (3, 2), (2,), ()]])
def test_updates_have_the_shapes_of_the_parameters(shapes):
    parameters = [jnp.ones(s) for s in shapes]
    optimiser = soap(0.1)
    updates, _ = optimiser.update(parameters, optimiser.init(parameters))
    assert [u.shape for u in updates] == shapes
    assert all(np.all(u < 0) for u in updates)


def test_zero_gradients_move_nothing():
    parameters = {"w": jnp.ones((3, 2)), "b": jnp.ones(2)}
    optimiser = soap(0.1)
    state = optimiser.init(parameters)
    for _ in range(3):
        updates, state = optimiser.update(jax.tree.map(jnp.zeros_like, parameters), state)
        jax.tree.map(lambda u: np.testing.assert_array_equal(u, 0), updates)


@pytest.mark.parametrize("scale", [1.0, 1e-25])
def test_householder_is_the_factor_of_qr(scale):
    """Up to signs, which are free; also for averages whose squares are zero in float32."""
    stack = np.random.default_rng(0).normal(size=(4, 6, 6)) * scale
    ours, theirs = np.asarray(householder(jnp.asarray(stack))), np.linalg.qr(stack)[0]
    signs = np.sign(np.sum(ours * theirs, -2, keepdims=True))
    np.testing.assert_allclose(ours * signs, theirs, atol=1e-5)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_householder_is_orthonormal_where_a_rank_is_lost(rank):
    rng = np.random.default_rng(1)
    stack = rng.normal(size=(4, 6, rank)) @ rng.normal(size=(4, rank, 6))
    basis = householder(jnp.asarray(stack))
    gram = np.einsum("gki,gkj->gij", basis, basis)
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(6), gram.shape), atol=2e-6)


def test_householder_is_orthonormal_where_a_column_is_almost_a_copy():
    """What is left of the copy has a square too small to divide by, where it is not zero."""
    stack = np.eye(6, dtype=np.float32)
    stack[:, 3] = stack[:, 0] + 1e-20 * np.array([0, 0, 0, 0, 1, 2])
    basis = np.asarray(householder(jnp.asarray(stack)[None]))[0]
    np.testing.assert_allclose(basis.T @ basis, np.eye(6), atol=2e-6)
