"""The command line."""

from ._main import main as main
