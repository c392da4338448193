"""Benchmark runs: the paper's examples, whole."""

from ._config import METHODS as METHODS
from ._config import PRESETS as PRESETS
from ._config import REFERENCES as REFERENCES
from ._config import SYSTEMS as SYSTEMS
from ._config import RunConfig as RunConfig
from ._config import preset as preset
