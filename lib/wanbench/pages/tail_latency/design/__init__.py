"""What this page measures."""

from .kafka_rate_search import KafkaRateSearch, rate_searches
from .openmessaging import OpenMessaging
from .openmessaging_files import Driver, Workload, read_driver, read_workload
from .openmessaging_open_loop import driver_of, to_open_loop, workload_of
from .systems import System, read_systems, systems_by_steps

__all__ = [
    "Driver",
    "KafkaRateSearch",
    "OpenMessaging",
    "System",
    "Workload",
    "driver_of",
    "rate_searches",
    "read_driver",
    "read_systems",
    "read_workload",
    "systems_by_steps",
    "to_open_loop",
    "workload_of",
]
