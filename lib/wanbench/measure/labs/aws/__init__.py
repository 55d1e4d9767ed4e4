"""Hosts on AWS: found out about, launched, always taken down, and swept up after."""

from .lab import AwsLab
from .msk_estate import MskEstate
from .sweep import sweep, unusable

LEASES = (AwsLab.kind, MskEstate.cloud)
"""What leases of runs on AWS may hold as their cloud."""
__all__ = ["LEASES", "AwsLab", "sweep", "unusable"]
