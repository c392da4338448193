"""The loop compiles once, can be cut anywhere, and gives the same result for the same key."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spenn.training import Samples, _loop
from spenn.training._loop import advance, begin, keep, member, stack

RNG = np.random.default_rng(0)
ARRAYS = (jnp.asarray(RNG.normal(size=(64, 2)), jnp.float32) for _ in range(3))
SAMPLES = Samples(*ARRAYS, jnp.arange(64) // 8)
START = {"w": jnp.eye(2)[None], "b": jnp.zeros((1, 2))}


CHUNK = 10


@pytest.fixture(autouse=True)
def _short_chunks(monkeypatch):
    monkeypatch.setattr(_loop, "CHUNK", CHUNK)


def _loss():
    """A loss, and the list that grows by one whenever it is traced."""
    traces = []

    def loss(parameters, samples, key):
        traces.append(1)
        noise = jax.random.normal(key, samples.states.shape)
        residual = samples.states @ parameters["w"] + parameters["b"] - samples.velocities
        return jnp.mean((residual + 0.1 * noise) ** 2)

    return loss, traces


def _run(loss, progress, until, total=3 * CHUNK, seed=0, rate=1e-2, report=lambda *_: None):
    return advance(
        loss,
        progress,
        {"w": None, "b": None},
        SAMPLES,
        until=until,
        total=total,
        batch=16,
        learning_rate=rate,
        key=jax.random.key(seed),
        report=report,
    )


def test_later_chunks_do_not_compile_again():
    loss, traces = _loss()
    progress, _ = _run(loss, begin(START), CHUNK)
    once = len(traces)
    assert once > 0
    progress, _ = _run(loss, progress, 3 * CHUNK)
    _run(loss, begin(START), CHUNK, total=50 * CHUNK, rate=3e-3, seed=7)
    assert len(traces) == once


def test_a_run_can_be_cut_anywhere():
    loss, _ = _loss()
    whole, _ = _run(loss, begin(START), 20)
    first, _ = _run(loss, begin(START), 5)
    resumed, _ = _run(loss, first, 20)
    jax.tree.map(np.testing.assert_array_equal, whole, resumed)
    assert int(whole.step) == 20


def test_same_key_same_weights_bit_for_bit():
    loss, _ = _loss()
    one, again, other = (_run(loss, begin(START), 20, seed=s)[0] for s in (1, 1, 2))
    jax.tree.map(np.testing.assert_array_equal, one.trainable, again.trainable)
    assert np.any(one.trainable["w"] != other.trainable["w"])


def _assert_close(one, other):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6), one, other)


def test_members_side_by_side_end_where_each_ends_alone():
    loss, _ = _loss()
    starts = [jax.tree.map(lambda a, c=c: c * a[0] + c, START) for c in (0.5, 1.0, 2.0)]
    together, losses = _run(loss, begin(stack(starts)), 25)
    for i, start in enumerate(starts):
        alone, last = _run(loss, begin(stack([start])), 25)
        _assert_close(member(together.trainable, i), member(alone.trainable, 0))
        np.testing.assert_allclose(losses[i], last[0], rtol=1e-5)


def test_one_member_can_go_on_alone():
    loss, _ = _loss()
    starts = stack([jax.tree.map(lambda a, c=c: c * a[0], START) for c in (1.0, 2.0)])
    half, _ = _run(loss, begin(starts), 15)
    alone, _ = _run(loss, keep(half, np.array([1])), 25)
    together, _ = _run(loss, half, 25)
    _assert_close(member(alone.trainable, 0), member(together.trainable, 1))


@pytest.mark.parametrize("source", ["batch", "key"])
def test_every_step_has_its_own_batch_and_its_own_key(monkeypatch, source):
    monkeypatch.setattr(_loop, "CHUNK", 1)

    def loss(parameters, samples, key):
        drawn = samples.states if source == "batch" else jax.random.normal(key, (3,))
        return jnp.mean(drawn) + 0 * jnp.sum(parameters["w"])

    seen = []
    _run(loss, begin(START), 6, report=lambda _, value: seen.append(value))
    assert len(set(seen)) == 6


def test_reports_every_step_once():
    reported = []
    loss, _ = _loss()
    progress, last = _run(loss, begin(START), 25, report=lambda *r: reported.append(r))
    assert [steps for steps, _ in reported] == [10, 10, 5]
    assert reported[-1][1] == last
    # Nothing is left to do: nothing changes.
    same, _ = _run(loss, progress, 25)
    jax.tree.map(np.testing.assert_array_equal, same, progress)


def test_loss_falls_and_rate_ends_at_zero():
    """The rate rises, then falls as a cosine: weights stand still at the end."""
    loss, _ = _loss()
    losses, total = [], 400
    report = lambda _, value: losses.append(value)  # noqa: E731
    seen = {}
    progress = begin(START)
    for until in (190, 200, 390, 400):
        progress, _ = _run(loss, progress, until, total=total, rate=5e-2, report=report)
        seen[until] = progress.trainable["w"]
    assert losses[-1] < 0.8 * losses[0]
    middle, end = np.abs(seen[200] - seen[190]).max(), np.abs(seen[400] - seen[390]).max()
    assert end < 0.05 * middle
