"""
Experiments, which run on a pair of hosts and leave raw files in the run folder.

Only measuring code imports this package. Most modules have a counterpart of the same name in `wanbench.read.ingest`,
which reads their files.
"""

from .base import ConcurrentExperiment, Experiment, ExperimentError
from .broker_actions import BrokerAction, BrokerActions
from .host_metrics import HostMetrics
from .iperf3 import Iperf3
from .kafka_fault import KafkaFault
from .kafka_load import KafkaLoad
from .kafka_open_loop import KafkaOpenLoop
from .kafka_trial import KafkaTrial
from .ping import Ping
from .sampling import BrokerMetrics, BrokerProcessors, LinkSamples, ProcessorUse

__all__ = ["ConcurrentExperiment", "Experiment", "ExperimentError", "Iperf3", "Ping"]
__all__ += ["BrokerAction", "BrokerActions", "KafkaFault", "KafkaLoad", "KafkaOpenLoop", "KafkaTrial"]
__all__ += ["BrokerMetrics", "BrokerProcessors", "HostMetrics", "LinkSamples", "ProcessorUse"]
