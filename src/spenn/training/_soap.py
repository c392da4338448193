"""SOAP: Adam in the eigenbasis of Shampoo's preconditioner, as an Optax transformation.

For a matrix parameter with gradient `G`, running averages `L` of `G G^T` and `R` of `G^T G` have
eigenvectors `U`, `V`. Adam acts on `U^T G V` and its step is turned back. The second moment is
updated every step; the momentum is kept in the original coordinates, so it turns with the basis;
the basis is refreshed every few steps by one step of orthogonal iteration. Vectors and scalars get
Adam.

Parameters of one shape are stacked and treated together, and so are all bases of about one size:
thirty tiny factorisations one by one cost more than the rest of a training step. The factorisation
is our own, by Householder reflections. LAPACK's, called for several stacks at once, waits for ever
on a CPU with two cores: every thread of XLA's pool ends up waiting for the others.

Reference: Vyas et al., SOAP: Improving and stabilizing Shampoo using Adam, arXiv:2409.11321.
"""

from itertools import accumulate
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int

SHIFT = 1e-6
SAME = 1e-4  # neighbours among eigenvalues this close, as a share, keep their order,
ROUNDING = 8  # and such as differ by no more than so many units of rounding of the largest
# A basis of a longer side costs more than it gains: its factorisation grows with the cube. The
# readout of a Poisson operator's epinet has hundreds of rows where there are ten variables.
LONGEST = 200


class MatrixState(NamedTuple):
    """Averages and bases of a stack of equally shaped matrices."""

    momentum: Float[Array, "g m n"]
    second_moment: Float[Array, "g m n"]
    left: Float[Array, "g m m"]
    right: Float[Array, "g n n"]
    left_basis: Float[Array, "g m m"]
    right_basis: Float[Array, "g n n"]


class VectorState(NamedTuple):
    """Adam's averages for everything that is not a matrix, in one vector."""

    momentum: Float[Array, " p"]
    second_moment: Float[Array, " p"]


class SoapState(NamedTuple):
    """State of `scale_by_soap`."""

    step: Int[Array, ""]
    matrices: dict[str, MatrixState]
    vectors: VectorState


def scale_by_soap(
    b1: float = 0.95, b2: float = 0.95, eps: float = 1e-8, refresh_every: int = 10
) -> optax.GradientTransformation:
    """Precondition gradients as SOAP does.

    **Arguments:** `b1`, `b2` decay rates of the averages; `eps` added to the root of the second
    moment; `refresh_every` steps between two refreshes of the bases.

    **Example:** `optax.chain(scale_by_soap(), optax.scale_by_learning_rate(3e-3))`
    """

    def init(params):
        matrices, vector = _gather(params)
        return SoapState(
            jnp.zeros((), jnp.int32),
            {shape: _matrix_state(stack) for shape, stack in matrices.items()},
            VectorState(jnp.zeros_like(vector), jnp.zeros_like(vector)),
        )

    def update(updates, state, params=None):
        del params
        gradients, vector = _gather(updates)
        step = state.step + 1
        correct = (1 - b1**step, 1 - b2**step)
        steps, matrices = {}, {}
        for shape, gradient in gradients.items():
            steps[shape], matrices[shape] = _matrix_step(
                gradient, state.matrices[shape], b1, b2, eps, correct
            )
        change, vectors = _vector_step(vector, state.vectors, b1, b2, eps, correct)
        matrices = lax.cond(
            state.step % refresh_every == 0,
            _refresh,
            lambda ms: ms,
            matrices,
        )
        return _scatter(updates, steps, change), SoapState(step, matrices, vectors)

    return optax.GradientTransformation(init, update)


def soap(learning_rate: optax.ScalarOrSchedule, **options) -> optax.GradientTransformation:
    """SOAP with a learning rate or a schedule; options as for `scale_by_soap`."""
    return optax.chain(scale_by_soap(**options), optax.scale_by_learning_rate(learning_rate))


def _matmul(*factors):
    out = factors[0]
    for factor in factors[1:]:
        out = jnp.matmul(out, factor, precision=lax.Precision.HIGHEST)
    return out


def _transpose(stack):
    return jnp.swapaxes(stack, -1, -2)


def _matrix_state(stack):
    g, m, n = stack.shape
    zeros = jnp.zeros_like(stack)
    m, n = (0 if k > LONGEST else k for k in (m, n))  # no basis: the side stays as it is
    left, right = (jnp.zeros((g, k, k), stack.dtype) for k in (m, n))
    bases = (jnp.broadcast_to(jnp.eye(k, dtype=stack.dtype), (g, k, k)) for k in (m, n))
    return MatrixState(zeros, zeros, left, right, *bases)


def _matrix_step(gradient, state, b1, b2, eps, correct):
    momentum = b1 * state.momentum + (1 - b1) * gradient
    left_basis, right_basis = state.left_basis, state.right_basis
    turned = _turn(_transpose(left_basis), gradient, right_basis)
    second_moment = b2 * state.second_moment + (1 - b2) * turned**2
    direction = _turn(_transpose(left_basis), momentum, right_basis) / correct[0]
    scaled = direction / (jnp.sqrt(second_moment / correct[1]) + eps)
    step = _turn(left_basis, scaled, _transpose(right_basis))
    left, right = state.left, state.right
    if left.size:
        left = b2 * left + (1 - b2) * _matmul(gradient, _transpose(gradient))
    if right.size:
        right = b2 * right + (1 - b2) * _matmul(_transpose(gradient), gradient)
    return step, state._replace(
        momentum=momentum, second_moment=second_moment, left=left, right=right
    )


def _turn(left, matrix, right):
    """`left @ matrix @ right`; a side without a basis is not turned."""
    matrix = _matmul(left, matrix) if left.size else matrix
    return _matmul(matrix, right) if right.size else matrix


def _vector_step(gradient, state, b1, b2, eps, correct):
    momentum = b1 * state.momentum + (1 - b1) * gradient
    second_moment = b2 * state.second_moment + (1 - b2) * gradient**2
    step = (momentum / correct[0]) / (jnp.sqrt(second_moment / correct[1]) + eps)
    return step, VectorState(momentum, second_moment)


def _refresh(states: dict[str, MatrixState]) -> dict[str, MatrixState]:
    """One step of orthogonal iteration for all bases, largest eigenvalue first."""
    images, orders = {}, {}
    for shape, state in states.items():
        for side in ("left", "right"):
            average, basis = getattr(state, side), getattr(state, f"{side}_basis")
            if not basis.size:
                continue
            image = _matmul(average, basis) + _shift(average) * basis
            order = _largest_first(jnp.sum(basis * image, -2))
            orders[shape, side] = order
            images[shape, side] = jnp.take_along_axis(image, order[..., None, :], -1)
    bases = _orthonormalise(images)

    def refreshed(shape, state):
        moment, changed = state.second_moment, {}
        for side, axis in (("left", -2), ("right", -1)):
            if (shape, side) in bases:
                order = jnp.expand_dims(orders[shape, side], -3 - axis)
                moment = jnp.take_along_axis(moment, order, axis)
                changed[f"{side}_basis"] = bases[shape, side]
        return state._replace(second_moment=moment, **changed)

    return {shape: refreshed(shape, state) for shape, state in states.items()}


def _largest_first(eigenvalues):
    """The order of eigenvalues, of which those in a run of nearly equal ones stay as they are.

    Opposite rows of a gradient, as of what enters through a difference, and directions that no
    gradient has had have the same eigenvalue, up to rounding. Which of them comes first decides how
    they are told apart, and must not be left to rounding.
    """
    order = jnp.argsort(-eigenvalues, -1)
    falling = jnp.take_along_axis(eigenvalues, order, -1)
    rounding = ROUNDING * jnp.finfo(eigenvalues.dtype).eps * falling[..., :1]
    gaps = falling[..., :-1] - falling[..., 1:] > SAME * jnp.abs(falling[..., 1:]) + rounding
    runs = jnp.cumsum(jnp.pad(gaps, [(0, 0)] * (gaps.ndim - 1) + [(1, 0)]), -1)
    return lax.sort((runs, order), num_keys=2)[1]


def _shift(average):
    """A small multiple of the mean eigenvalue: what lies far below it keeps its old directions.

    Without it, directions that no gradient has had would be new at every refresh, made of rounding
    errors, and two devices would train two different models.
    """
    mean = jnp.trace(average, axis1=-2, axis2=-1) / average.shape[-1]
    return SHIFT * mean[..., None, None]


def _orthonormalise(stacks: dict) -> dict:
    """Orthonormal bases of stacks of square matrices; those of similar size are done together."""
    buckets: dict[int, list] = {}
    for name, stack in stacks.items():
        buckets.setdefault(1 << (stack.shape[-1] - 1).bit_length(), []).append(name)
    out = {}
    for names in buckets.values():
        size = max(stacks[name].shape[-1] for name in names)
        together = householder(jnp.concatenate([_pad(stacks[name], size) for name in names]))
        ends = list(accumulate(len(stacks[name]) for name in names))
        for name, piece in zip(names, jnp.split(together, ends[:-1]), strict=True):
            n = stacks[name].shape[-1]
            out[name] = piece[:, :n, :n]
    return out


def _pad(stack, size):
    """A unit matrix in the corner that is added: the factorisation leaves it alone."""
    missing = size - stack.shape[-1]
    padded = jnp.pad(stack, ((0, 0), (0, missing), (0, missing)))
    return padded + jnp.diag((jnp.arange(size) >= size - missing).astype(stack.dtype))


def householder(stack: Float[Array, "g n n"]) -> Float[Array, "g n n"]:
    """The factor `Q` of `Q R` for a stack of matrices: orthonormal also where a rank is lost."""
    n = stack.shape[-1]
    rows = jnp.arange(n)

    def unit(vectors):
        # By the largest entry first: the square of a small number is zero, or so small that one
        # over it is infinite.
        largest = jnp.max(jnp.abs(vectors), -1, keepdims=True)
        vectors = vectors / jnp.where(largest > 0, largest, 1)
        length = jnp.sqrt(jnp.sum(vectors**2, -1, keepdims=True))
        return vectors / jnp.where(length > 0, length, 1)

    def reflect(k, carry):
        r, q = carry
        column = unit(jnp.where(rows >= k, r[:, :, k], 0))
        sign = jnp.where(column[:, k, None] < 0, -1, 1)
        # A column of zeros makes no mirror: it stays as it is.
        mirror = unit(column + jnp.where(rows == k, sign * jnp.any(column, -1, keepdims=True), 0))
        mirror = mirror * 2**0.5
        r = r - mirror[:, :, None] * jnp.sum(mirror[:, :, None] * r, 1, keepdims=True)
        q = q - jnp.sum(q * mirror[:, None, :], 2, keepdims=True) * mirror[:, None, :]
        return r, q

    eye = jnp.broadcast_to(jnp.eye(n, dtype=stack.dtype), stack.shape)
    return lax.fori_loop(0, n, reflect, (stack, eye))[1]


def _gather(tree):
    """Matrices stacked by shape, and one vector of everything else."""
    stacks: dict[str, list] = {}
    rest = []
    for leaf in jax.tree.leaves(tree):
        if leaf.ndim >= 2:
            stacks.setdefault(_shape(leaf), []).append(leaf.reshape(-1, *leaf.shape[-2:]))
        else:
            rest.append(leaf.ravel())
    matrices = {shape: jnp.concatenate(stack) for shape, stack in stacks.items()}
    return matrices, jnp.concatenate(rest) if rest else jnp.zeros(0)


def _scatter(tree, matrices, vector):
    """Undo `_gather`."""
    leaves, structure = jax.tree.flatten(tree)
    used = dict.fromkeys(matrices, 0)
    position, out = 0, []
    for leaf in leaves:
        if leaf.ndim >= 2:
            shape, count = _shape(leaf), leaf.size // (leaf.shape[-1] * leaf.shape[-2])
            piece = matrices[shape][used[shape] : used[shape] + count]
            used[shape] += count
        else:
            piece = vector[position : position + leaf.size]
            position += leaf.size
        out.append(piece.reshape(leaf.shape))
    return jax.tree.unflatten(structure, out)


def _shape(leaf) -> str:
    return "x".join(map(str, leaf.shape[-2:]))
