"""Checks of a lab: whether emulated links delivered what was requested, and how full links were."""

from .network import network
from .verdicts import Verdicts

__all__ = ["Verdicts", "network"]
