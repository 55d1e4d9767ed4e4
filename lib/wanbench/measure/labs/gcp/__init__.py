"""Hosts on Google Cloud: found out about, launched, always taken down, and swept up after."""

from .lab import GcpLab
from .teardown import sweep, unusable

lab_class = GcpLab
__all__ = ["GcpLab", "lab_class", "sweep", "unusable"]
