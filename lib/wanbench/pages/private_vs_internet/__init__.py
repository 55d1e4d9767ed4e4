"""
Compare Kafka over a private link with Kafka over the internet, and the effects of latency and bandwidth on throughput.
"""

from . import claims
from .fit import fit_factorial
from .rtt_table import rtt_table
from .traffic import traffic
from .two_links import compare_links

__all__ = ["claims", "compare_links", "fit_factorial", "rtt_table"]
__all__ += ["traffic"]
