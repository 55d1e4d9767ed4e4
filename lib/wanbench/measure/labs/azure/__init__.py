"""Hosts on Azure: found out about, launched, always taken down, and swept up after."""

from .lab import AzureLab
from .teardown import sweep, unusable

lab_class = AzureLab
__all__ = ["AzureLab", "lab_class", "sweep", "unusable"]
