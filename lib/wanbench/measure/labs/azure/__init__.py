"""Hosts on Azure: found out about, launched, always taken down, and swept up after."""

from .lab import AzureLab
from .teardown import sweep, unusable

__all__ = ["AzureLab", "sweep", "unusable"]
