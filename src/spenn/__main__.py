"""`python -m spenn`."""

from .cli import main

main()
