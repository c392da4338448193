"""SOAP: Adam in the eigenbasis of Shampoo's preconditioner, as an Optax transformation.

For a matrix parameter with gradient `G`, running averages `L` of `G G^T` and `R` of `G^T G` have
eigenvectors `U`, `V`. Adam acts on `U^T G V` and its step is turned back. The second moment is
updated every step; the momentum is kept in the original coordinates, so it turns with the basis;
the basis is refreshed every few steps by one step of orthogonal iteration. Vectors and scalars get
Adam.

Parameters of one shape are stacked and treated together: thirty tiny factorisations one by one cost
more than the rest of a training step.

Reference: Vyas et al., SOAP: Improving and stabilizing Shampoo using Adam, arXiv:2409.11321.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int


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
            lambda ms: {shape: _refresh(m) for shape, m in ms.items()},
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
    left, right = (jnp.zeros((g, k, k), stack.dtype) for k in (m, n))
    bases = (jnp.broadcast_to(jnp.eye(k, dtype=stack.dtype), (g, k, k)) for k in (m, n))
    return MatrixState(zeros, zeros, left, right, *bases)


def _matrix_step(gradient, state, b1, b2, eps, correct):
    momentum = b1 * state.momentum + (1 - b1) * gradient
    turned = _matmul(_transpose(state.left_basis), gradient, state.right_basis)
    second_moment = b2 * state.second_moment + (1 - b2) * turned**2
    direction = _matmul(_transpose(state.left_basis), momentum, state.right_basis) / correct[0]
    scaled = direction / (jnp.sqrt(second_moment / correct[1]) + eps)
    step = _matmul(state.left_basis, scaled, _transpose(state.right_basis))
    left = b2 * state.left + (1 - b2) * _matmul(gradient, _transpose(gradient))
    right = b2 * state.right + (1 - b2) * _matmul(_transpose(gradient), gradient)
    return step, state._replace(
        momentum=momentum, second_moment=second_moment, left=left, right=right
    )


def _vector_step(gradient, state, b1, b2, eps, correct):
    momentum = b1 * state.momentum + (1 - b1) * gradient
    second_moment = b2 * state.second_moment + (1 - b2) * gradient**2
    step = (momentum / correct[0]) / (jnp.sqrt(second_moment / correct[1]) + eps)
    return step, VectorState(momentum, second_moment)


def _refresh(state: MatrixState) -> MatrixState:
    left_basis, left_order = _iterate(state.left, state.left_basis)
    right_basis, right_order = _iterate(state.right, state.right_basis)
    second_moment = jnp.take_along_axis(state.second_moment, left_order[..., :, None], -2)
    second_moment = jnp.take_along_axis(second_moment, right_order[..., None, :], -1)
    return state._replace(
        second_moment=second_moment, left_basis=left_basis, right_basis=right_basis
    )


def _iterate(average, basis):
    """One step of orthogonal iteration, largest eigenvalue first, and the order it put them in."""
    image = _matmul(average, basis)
    eigenvalues = jnp.sum(basis * image, -2)
    order = jnp.argsort(-eigenvalues, -1)
    image = jnp.take_along_axis(image, order[..., None, :], -1)
    return jnp.linalg.qr(image)[0], order


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
