"""Hosts on Azure: check what is available, launch, always delete, and find what runs left behind."""

from .lab import AzureLab
from .teardown import sweep, unusable

lab_class = AzureLab
__all__ = ["AzureLab", "lab_class", "sweep", "unusable"]
