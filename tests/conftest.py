"""Settings of all tests; random models are in `support.py`."""

import gc
import os
import shutil
import tempfile

import jax
import pytest
from hypothesis import settings

settings.register_profile("spenn", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("spenn")

CACHE = "JAX_COMPILATION_CACHE_DIR"
# Programs are compiled as users have them where rounding is what a test is about, and where they
# run for longer than that takes. Elsewhere the compiler takes less care and time.
ROUNDING = ("epinet", "generic", "integrate", "test_devices", "test_laws_check", "test_soap")
RUNNING = ("test_docs", "test_reproduce", "test_resume", "test_run", "test_run_bar")


def pytest_configure(config):
    """What is compiled once serves all tests, their processes too, and leaves no trace."""
    if CACHE not in os.environ:
        config.made_cache = os.environ[CACHE] = tempfile.mkdtemp(prefix="spenn-tests-")
    jax.config.update("jax_compilation_cache_dir", os.environ[CACHE])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def pytest_unconfigure(config):
    """Take the compiled programs away, in the process that made room for them."""
    if made := getattr(config, "made_cache", None):
        shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module", autouse=True)
def programs(request):
    """Compiled programs go with the module that used them: a process can map only so many."""
    quickly = not {request.path.parent.name, request.path.stem} & {*ROUNDING, *RUNNING}
    jax.config.update("jax_disable_most_optimizations", quickly)
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = str(int(quickly))  # for processes of tests
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
