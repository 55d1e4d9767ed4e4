"""
Rent hosts on Google Cloud: check what is available, launch and always delete hosts, and find what runs left behind.
"""

from .lab import GcpLab
from .teardown import sweep, unusable

lab_class = GcpLab
__all__ = ["GcpLab", "lab_class", "sweep", "unusable"]
