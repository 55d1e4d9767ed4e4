"""Hosts on Google Cloud: check what is available, launch, always delete, and find what runs left behind."""

from .lab import GcpLab
from .teardown import sweep, unusable

lab_class = GcpLab
__all__ = ["GcpLab", "lab_class", "sweep", "unusable"]
