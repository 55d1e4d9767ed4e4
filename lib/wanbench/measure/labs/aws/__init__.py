"""
Rent hosts on AWS: check what is available, launch hosts, always delete them, and find what earlier runs left behind.
"""

from .lab import AwsLab
from .teardown import MskResources, sweep, unusable

LEASES = (AwsLab.kind, MskResources.cloud)  # Names of the cloud in leases of runs on AWS.
lab_class = AwsLab
__all__ = ["LEASES", "AwsLab", "lab_class", "sweep", "unusable"]
