"""Hosts on AWS: found out about, launched, always taken down, and swept up after."""

from .lab import AwsLab
from .teardown import MskResources, sweep, unusable

LEASES = (AwsLab.kind, MskResources.cloud)  # What leases of runs on AWS may hold as their cloud.
lab_class = AwsLab
__all__ = ["LEASES", "AwsLab", "lab_class", "sweep", "unusable"]
