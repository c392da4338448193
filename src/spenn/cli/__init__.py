"""The command line."""

from ._main import main as main
from ._main import program as program
