"""
What to run on a pair of hosts: an `Experiment` leaves raw files in the run folder.

Only measuring code imports it, never analysing code. The module of the same name in `ingest` reads the files.
"""

from .base import ConcurrentExperiment, Experiment, ExperimentError
from .broker_actions import BrokerAction, BrokerActions
from .broker_metrics import BrokerMetrics
from .broker_processors import BrokerProcessors
from .cut import Cut
from .detection import Detection
from .host_metrics import HostMetrics
from .iperf3 import Iperf3
from .kafka_fault import KafkaFault
from .kafka_load import KafkaLoad
from .kafka_open_loop import KafkaOpenLoop
from .kafka_rate_search import KafkaRateSearch
from .kafka_trial import KafkaTrial
from .link_samples import LinkSamples
from .openmessaging import OpenMessaging
from .ping import Ping
from .processor_use import ProcessorUse
from .shorten import Shorten

__all__ = [
    "BrokerAction",
    "BrokerActions",
    "BrokerMetrics",
    "BrokerProcessors",
    "ConcurrentExperiment",
    "Cut",
    "Detection",
    "Experiment",
    "ExperimentError",
    "HostMetrics",
    "Iperf3",
    "KafkaFault",
    "KafkaLoad",
    "KafkaOpenLoop",
    "KafkaRateSearch",
    "KafkaTrial",
    "LinkSamples",
    "OpenMessaging",
    "Ping",
    "ProcessorUse",
    "Shorten",
]
