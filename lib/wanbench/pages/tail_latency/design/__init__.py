"""Plan and run the measurements of page 08."""

from .kafka_rate_search import KafkaRateSearch, rate_searches
from .openmessaging import OpenMessaging
from .openmessaging_files import read_driver, read_workload
from .openmessaging_open_loop import driver_of, to_open_loop, workload_of
from .systems import read_systems, systems_by_steps

__all__ = ["KafkaRateSearch", "OpenMessaging", "driver_of", "rate_searches", "read_driver", "read_systems"]
__all__ += ["read_workload", "systems_by_steps", "to_open_loop", "workload_of"]
