"""Checks of the emulated lab: requested against delivered, drops, utilisation."""

from .cut_figure import cut_timeline
from .network import network
from .verdicts import Verdicts

__all__ = ["Verdicts", "cut_timeline", "network"]
