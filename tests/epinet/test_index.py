"""Reference distributions against SciPy's."""

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy import stats

from spenn.epinet import INDICES

REFERENCES = {
    "half-normal": (stats.halfnorm(), np.inf),
    "uniform": (stats.uniform(0, 5), 5.0),
    "exponential": (stats.truncexpon(5), 5.0),
}


def test_every_law_has_a_reference():
    assert set(REFERENCES) == set(INDICES)


@pytest.mark.parametrize("name", REFERENCES)
def test_law(name):
    reference, top = REFERENCES[name]
    law = INDICES[name]()
    draws = np.asarray(law.draw((200, 100), key=jax.random.key(3)))
    assert draws.shape == (200, 100)
    assert draws.min() >= 0 and draws.max() <= top * (1 + 1e-6)
    np.testing.assert_allclose(law.mean, reference.mean(), rtol=1e-6)
    np.testing.assert_allclose(draws.mean(), law.mean, atol=5 * reference.std() / draws.size**0.5)
    assert stats.kstest(draws.ravel(), reference.cdf).pvalue > 1e-3
    levels = [0.01, 0.1, 0.5, 0.9, 0.99]
    np.testing.assert_allclose(np.quantile(draws, levels), reference.ppf(levels), rtol=0.1)


def test_one_program_serves_all_laws():
    traces = []

    @eqx.filter_jit
    def draw(law, key):
        traces.append(law)
        return law.draw((3,), key=key)

    for name in REFERENCES:
        law, key = INDICES[name](), jax.random.key(0)
        np.testing.assert_allclose(draw(law, key), law.draw((3,), key=key), rtol=1e-6)
    assert len(traces) == 1


@pytest.mark.parametrize("name", REFERENCES)
def test_draws_follow_the_key(name):
    law = INDICES[name]()
    first, again, other = (law.draw((5,), key=jax.random.key(s)) for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.all(first != other)
