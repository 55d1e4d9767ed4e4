"""
What to run on a pair of hosts; each leaves raw files in the run folder. Measuring bank: imports `errors`,
`runs`, `labs.base`, `links`, `kafka`; analysing code never imports it, and reads what is left with the module of the
same name in `ingest`.
"""

from .base import ExperimentError
from .broker_metrics import BrokerMetrics
from .cut import Cut
from .host_metrics import HostMetrics
from .iperf3 import Iperf3
from .kafka_load import KafkaLoad
from .kafka_probe import KafkaProbe
from .kafka_trial import KafkaTrial
from .link_samples import LinkSamples
from .ping import Ping
from .shorten import Shorten

__all__ = [
    "BrokerMetrics",
    "Cut",
    "ExperimentError",
    "HostMetrics",
    "Iperf3",
    "KafkaLoad",
    "KafkaProbe",
    "KafkaTrial",
    "LinkSamples",
    "Ping",
    "Shorten",
]
