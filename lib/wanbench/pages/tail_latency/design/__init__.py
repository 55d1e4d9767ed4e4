"""What this page measures."""

from .kafka_rate_search import KafkaRateSearch, rate_searches
from .openmessaging import OpenMessaging
from .openmessaging_files import Driver, Workload, read_driver, read_workload
from .systems import System, systems, systems_by_steps

__all__ = [
    "Driver",
    "KafkaRateSearch",
    "OpenMessaging",
    "System",
    "Workload",
    "rate_searches",
    "read_driver",
    "read_workload",
    "systems",
    "systems_by_steps",
]
