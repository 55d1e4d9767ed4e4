"""Hosts on AWS: found out about, launched, always taken down, and swept up after."""

from .lab import AwsLab
from .sweep import sweep

__all__ = ["AwsLab", "sweep"]
