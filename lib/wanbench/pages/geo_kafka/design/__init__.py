"""What this page measures."""

from .one_at_a_time import at_level, bandwidth_delay_bytes, one_at_a_time
from .together import together

__all__ = ["at_level", "bandwidth_delay_bytes", "one_at_a_time", "together"]
