"""
What makes each claim of a source hold or not: one module per source. Imports `claims`, `gate`, `stats`, `wording`.

The rule of every verdict stands in the working, with the numbers it was applied to.
"""

from .across_clouds import throughput_across_clouds
from .private_link import private_vs_internet

__all__ = ["private_vs_internet", "throughput_across_clouds"]
