"""
The offset between two clocks, from time stamps that were exchanged as NTP does.

The exchange with the shortest round trip says most: the offset is right to within half of it, wherever on the way the
time was spent (RFC 5905, section 8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Offset:
    """
    The target's clock less the source's.

    Attributes
    ----------
    offset_ms, error_ms : float or None
        The offset, and the most by which it may be wrong; None where it is not known.
    method : str
        How it was found.
    """

    offset_ms: float | None
    error_ms: float | None
    method: str

    def as_dict(self) -> dict:
        """The same in JSON types."""
        return asdict(self)


def nearest(stamps: Sequence[Sequence[int]]) -> Offset:
    """
    The offset from exchanges (sent, received there, answered there, received here), in ns: that of the shortest.

    >>> nearest([[0, 105_000_000, 105_000_000, 10_000_000], [0, 150_000_000, 150_000_000, 90_000_000]])
    Offset(offset_ms=100.0, error_ms=5.0, method='2 exchanges of time stamps, the shortest in 10 ms')
    """
    trips = [((t3 - t0) - (t2 - t1), ((t1 - t0) + (t2 - t3)) / 2) for t0, t1, t2, t3 in stamps]
    trip_ns, offset_ns = min(trips)
    method = f"{len(trips)} exchanges of time stamps, the shortest in {trip_ns / 1e6:.4g} ms"
    return Offset(offset_ns / 1e6, max(trip_ns, 0) / 2e6, method)


def joined(before: Offset, after: Offset) -> Offset:
    """
    One offset from two readings; its error covers both, and so a drift between them.

    >>> joined(Offset(10.0, 1.0, "a"), Offset(11.0, 2.0, "b"))
    Offset(offset_ms=11.0, error_ms=2.0, method='a; afterwards b')
    """
    if before.offset_ms is None or after.offset_ms is None:
        return before if after.offset_ms is None else after
    low = min(before.offset_ms - before.error_ms, after.offset_ms - after.error_ms)
    high = max(before.offset_ms + before.error_ms, after.offset_ms + after.error_ms)
    return Offset((low + high) / 2, (high - low) / 2, f"{before.method}; afterwards {after.method}")
