"""Hosts on AWS: found out about, launched, always taken down, and swept up after."""

from ..rented import leases
from .lab import AwsLab
from .sweep import sweep, unusable

__all__ = ["AwsLab", "leases", "sweep", "unusable"]
