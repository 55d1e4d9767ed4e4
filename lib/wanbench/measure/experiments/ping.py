"""Measure round-trip times by ICMP echo. Read by `wanbench.read.ingest.ping`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from wanbench.measure.labs.base import Host
from wanbench.runs import RawFile

from .base import PROCESS_S, ExperimentError, address_of, bounded, check_declared, ended_with, keep, one_of, run_to_end

_HEADERS_BYTES = {4: 28, 6: 48}  # by IP version: 8 bytes of ICMP, and 20 of IPv4 or 40 of IPv6
_MARGIN_S = 10.0  # added to the longest duration of a ping; then the ping counts as hung
_WAKES_S = 0.01
"""
At shorter intervals, ping wakes only when a reply arrives or after this time. It then sends one due echo, or all due
echoes with its option ``-l``.
"""
_SLOWER = 1.1  # below `_WAKES_S` ping counts whole milliseconds, and takes this many times as long as requested
_TICKS_S = 0.005  # from `_WAKES_S` on, the kernel rounds the interval up by one or two timer ticks: see `expected_s`
_SLOWEST_REPLY_S = 0.5  # timeout per echo; paths between clouds are faster


@dataclass(frozen=True)
class Ping:
    """
    Measure the round-trip time of each ICMP echo.

    Parameters
    ----------
    interval_s : float
        Time between echo requests. Users other than root need 0.002 s or more, and 0.2 s or more with iputils from
        before 2021. Requests do not wait for replies. At intervals of 0.01 s or more they are sent one at a time; at
        shorter intervals, all that are due are sent together.
    payload_bytes : int
        Size without headers (8 bytes ICMP; 20 IPv4 or 40 IPv6). At least 16, because ping stores the time in it.
    wait_s : float
        Timeout if no reply arrives at all. (After at least one reply, ping waits for two round trips.)
    ip_version : int
        4 or 6: which addresses of the hosts to use. The column `target` of table `echoes` shows such an address.

    Examples
    --------
    >>> round(Ping(count=5, interval_s=0.1).expected_s(100.0), 1)
    0.5
    """

    count: int = bounded(20, 1, 10_000_000)
    interval_s: float = bounded(0.1, 0.001, 3600)
    payload_bytes: int = bounded(56, 16, 65_507)
    wait_s: float = bounded(2.0, 0.1, 600)
    ip_version: int = one_of(4, (4, 6))

    name: ClassVar[str] = "ping"

    def __post_init__(self):
        check_declared(self)

    def __str__(self) -> str:
        by = " by IPv6" if self.ip_version == 6 else ""
        return f"ping{by}: {self.count} echoes every {self.interval_s:g} s, {self.payload_bytes} bytes"

    def command(self, address: str) -> list[str]:
        """
        Return the command; its option ``-l`` lets ping send all due echoes at once, instead of waiting for replies.
        """
        often = self.interval_s < _WAKES_S
        preload = ["-l", str(math.ceil(_WAKES_S / self.interval_s) + 1)] if often else []
        return [
            "ping", "-D", "-n",
            "-c", str(self.count),
            "-i", f"{self.interval_s:g}",
            *preload,
            "-s", str(self.payload_bytes),
            "-W", f"{self.wait_s:g}",
            address,
        ]  # fmt: skip

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """
        Ping `target` from `source`; leave ping/<stem>.txt in the run folder.

        Getting no reply at all (status 1) is a result. Raise ExperimentError, with the output, on any other status, a
        timeout, or an output that does not count all echoes, as of a ping that was killed.
        """
        timeout_s = self.count * max(self.interval_s, _SLOWEST_REPLY_S) + self.wait_s + _MARGIN_S
        done, stopped = run_to_end(source, self.command(address_of(target, self.ip_version)), timeout_s)
        files = keep(folder, self.name, stem, "txt", done)
        if stopped or done.returncode not in (0, 1):
            raise ExperimentError(stopped or ended_with(f"ping on {source.name}", done), files)
        # A ping that is interrupted ends with status 0, and one that is killed can end with 1, as `unshare` runs it.
        if b"\n%d packets transmitted" % self.count not in done.stdout:
            raise ExperimentError(f"ping on {source.name} ended before it had sent {self.count} echoes", files)
        return files

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """
        Return the expected duration in s if no echo is lost.

        From 10 ms on, the kernel rounds the interval up by one or two timer ticks, as measured with ``ping -q -c 30 -i
        <interval> 127.0.0.1``. Over a link of 40 ms, echoes every 1, 2 and 5 ms took longer than requested by factors
        of 1.09 to 1.13, 1.1 and 1.06.
        """
        is_often = self.interval_s < _WAKES_S
        each_s = self.interval_s * _SLOWER if is_often else self.interval_s + _TICKS_S
        return (self.count - 1) * each_s + rtt_ms / 1000 + PROCESS_S

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Return the bytes on the wire, for requests and replies."""
        return 2.0 * self.count * (self.payload_bytes + _HEADERS_BYTES[self.ip_version])
