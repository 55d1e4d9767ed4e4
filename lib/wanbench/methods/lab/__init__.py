"""Checks of the emulated lab: requested against delivered, drops, utilisation."""

from .network import network
from .verdicts import Verdicts

__all__ = ["Verdicts", "network"]
