"""`python -m spenn`."""

from .cli import program

program()
