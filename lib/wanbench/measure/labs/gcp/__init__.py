"""Hosts on Google Cloud: found out about, launched, always taken down, and swept up after."""

from .lab import GcpLab
from .teardown import sweep, unusable

__all__ = ["GcpLab", "sweep", "unusable"]
