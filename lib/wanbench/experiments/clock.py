"""
The offset between the clocks of two hosts, measured by exchanging time stamps over their path, as NTP does.

The exchange with the shortest round trip says most: the offset is right to within half of it, wherever on the way the
time was spent (RFC 5905, section 8).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ..errors import CommandError
from ..labs.base import Host
from ..labs.programs import program_command
from ..runs import RawFile
from . import clock_echo
from .base import ExperimentError, keep, last_line, run_to_end

EXCHANGES = 30
"""Only the shortest counts: of so many, one seldom waits in a queue."""
INTERVAL_S = 0.01
FIRST_PORT, PORTS = 9500, 200
"""Above the ports of brokers and, by default, of iperf3, which may run at the same time."""
ONE_CLOCK = "one machine, one clock"
UNKNOWN = "not known"
_MARGIN_S = 15.0
"""For Python to start on a busy host."""
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


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


def one_clock(source: Host, target: Host) -> bool:
    """Whether both hosts are the same running kernel, and so have the same clock: its boot id says."""
    boot_ids = set()
    for host in (source, target):
        done = host.run(["cat", _BOOT_ID], timeout_s=30, ok=None)
        if done.returncode:
            return False
        boot_ids.add(done.stdout.strip())
    return len(boot_ids) == 1


def exchange(
    source: Host, target: Host, folder: Path, experiment: str, stem: str, *, shift_ms: float = 0.0
) -> tuple[Offset, list[RawFile]]:
    """
    Exchange time stamps over UDP; leave <experiment>/<stem>.clock.txt, and stderr if there is any.

    Parameters
    ----------
    shift_ms : float
        To test the exchange: the target's program reads a clock that is ahead by this much.

    Raises
    ------
    ExperimentError
        If nothing comes back: the hosts must reach each other by UDP, ports `FIRST_PORT` on.
    """
    port = FIRST_PORT + zlib.crc32(stem.encode()) % PORTS
    here, there = (program_command(host, Path(clock_echo.__file__)) for host in (source, target))
    server = target.start([*there, "answer", target.address, str(port), repr(float(shift_ms))])
    try:
        server.wait_for_output("listening", _MARGIN_S)
        asking = [*here, "ask", target.address, str(port), str(EXCHANGES), repr(INTERVAL_S)]
        done, reason = run_to_end(source, asking, EXCHANGES * INTERVAL_S + _MARGIN_S)
    except CommandError as error:
        raise ExperimentError(
            f"the clock of {target.name} cannot be asked: {error}",
            keep(folder, experiment, stem, "clock.txt", server.stop()),
        ) from error
    finally:
        server.stop()
    files = keep(folder, experiment, stem, "clock.txt", done)
    whole = done.stdout[: done.stdout.rfind(b"\n") + 1]  # the last line of a stopped program may lack its end
    stamps = [json.loads(line) for line in whole.splitlines()]
    if not stamps:
        raise ExperimentError(
            reason or f"the clock of {target.name} did not answer: {last_line(done)}", files
        )
    return nearest(stamps), files


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
