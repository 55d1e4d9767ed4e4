"""Private link against the internet: RTT table, scaling down, limits of each trial."""

from . import claims
from .fit import fit_factorial
from .rtt_table import rtt_table
from .scales import compare_scales
from .thesis_limits import explain
from .traffic import traffic

__all__ = ["claims", "compare_scales", "explain", "fit_factorial", "rtt_table", "traffic"]
