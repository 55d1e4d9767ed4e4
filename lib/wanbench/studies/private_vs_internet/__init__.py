"""Private link against the internet: RTT table, shares of producers, scaling down, limits of each trial."""

from .producer_shares import producer_shares
from .rtt_table import rtt_table
from .scales import compare_scales
from .thesis_limits import explain
from .traffic import traffic

__all__ = ["compare_scales", "explain", "producer_shares", "rtt_table", "traffic"]
