"""
What to run on a pair of hosts; each leaves raw files in the run folder. Measuring bank: imports `errors`,
`runs`, `labs.base`; analysing code never imports it, and reads what is left with the module of the same name
in `ingest`.
"""

from .base import ExperimentError
from .cut import Cut
from .iperf3 import Iperf3
from .ping import Ping

__all__ = ["Cut", "ExperimentError", "Iperf3", "Ping"]
