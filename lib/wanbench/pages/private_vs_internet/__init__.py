"""Compare Kafka over a private link and over the internet, and latency with bandwidth in a factorial experiment."""

from . import claims
from .fit import fit_factorial
from .rtt_table import rtt_table
from .scales import compare_scales
from .thesis_limits import explain
from .traffic import traffic

__all__ = ["claims", "compare_scales", "explain", "fit_factorial", "rtt_table", "traffic"]
