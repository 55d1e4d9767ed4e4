"""
Rent hosts on Azure: check what is available, launch hosts, always delete them, and find what earlier runs left behind.
"""

from .lab import AzureLab
from .teardown import sweep, unusable

lab_class = AzureLab
__all__ = ["AzureLab", "lab_class", "sweep", "unusable"]
