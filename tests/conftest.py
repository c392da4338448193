"""Settings of all tests; random models are in `support.py`."""

import gc

import jax
import pytest
from hypothesis import settings

settings.register_profile("spenn", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("spenn")


@pytest.fixture(scope="module", autouse=True)
def forget_programs():
    """Compiled programs go with the module that used them: a process can map only so many."""
    yield
    jax.clear_caches()
    gc.collect()


@pytest.fixture
def x64():
    """Everything in the test is float64."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    """The test runs once in each floating type."""
    with jax.enable_x64(request.param == "float64"):
        yield jax.numpy.dtype(request.param)
