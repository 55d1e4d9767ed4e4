"""Hosts on AWS: found out about, launched, always taken down, and swept up after."""

from .lab import AwsLab
from .msk_resources import MskResources
from .sweep import sweep, unusable

LEASES = (AwsLab.kind, MskResources.cloud)
"""What leases of runs on AWS may hold as their cloud."""
__all__ = ["LEASES", "AwsLab", "sweep", "unusable"]
