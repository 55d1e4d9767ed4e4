"""A rate and the drop-tail queue in front of it: of one link, or shared by all links that leave a region. Pure."""

from __future__ import annotations

import math


class Bottleneck:
    """
    Rate limiter and queue of packets. Times are seconds of any one clock.

    Attributes
    ----------
    bytes_per_s : float or None
        None: nothing ever waits.
    queue_bytes : float
        How much may wait; infinity has no limit.
    free_at : float
        When the last byte that was let in will have passed.
    """

    __slots__ = ("bytes_per_s", "free_at", "queue_bytes")

    def __init__(self):
        self.bytes_per_s, self.queue_bytes, self.free_at = None, math.inf, 0.0

    def set(self, rate_bps: float | None, queue_bytes: int | None, now: float) -> None:
        """Apply a rate and a queue (None: no limit). Queued packets keep their place and continue at the new rate."""
        backlog_bytes = self.backlog_bytes(now)
        self.bytes_per_s = None if rate_bps is None else rate_bps / 8
        self.queue_bytes = math.inf if queue_bytes is None else queue_bytes
        self.free_at = now + backlog_bytes / self.bytes_per_s if self.bytes_per_s else now

    def backlog_bytes(self, now: float) -> float:
        """Queued bytes, including the packet in transmission."""
        return max(0.0, self.free_at - now) * self.bytes_per_s if self.bytes_per_s else 0.0
