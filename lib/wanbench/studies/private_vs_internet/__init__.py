"""Private link against the internet: RTT table, scaling down, limits of each trial."""

from .rtt_table import rtt_table
from .scales import compare_scales
from .thesis_limits import explain
from .traffic import traffic

__all__ = ["compare_scales", "explain", "rtt_table", "traffic"]
