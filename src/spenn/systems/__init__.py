"""Benchmark systems: exact physics, protocol and data."""

from ._bar import VISCOPLASTIC as VISCOPLASTIC
from ._motor import CHEMICAL_MOTOR as CHEMICAL_MOTOR
from ._oscillator import OSCILLATOR as OSCILLATOR
from ._system import REFERENCES as REFERENCES
from ._system import System as System
from ._system import simulate as simulate

SYSTEMS = {system.name: system for system in (OSCILLATOR, CHEMICAL_MOTOR, VISCOPLASTIC)}
