"""Measure TCP or UDP throughput by iperf3. Read by `wanbench.read.ingest.iperf3`."""

from __future__ import annotations

import json
import re
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from wanbench.checks import refusal
from wanbench.errors import CommandError, ParameterError
from wanbench.measure.labs.base import Completed, Host
from wanbench.runs import RawFile

from .base import PROCESS_S, ExperimentError, address_of, bounded, check_declared, keep, last_line, one_of, run_to_end

HANDSHAKE_RTTS = 7.5
"""
Round trips that a test takes in addition to sending: those of the control connection, of messages before and after, and
half a round trip until the server has ended. Measured as the slope of the duration of ``Iperf3(duration_s=1).run``
(iperf3 3.12) over the RTT, from 1 to 300 ms on a local lab without a rate limit: 7.46 round trips, of which the client
takes 6.96; the intercept was 0.04 s.
"""
_PORTS = 3800  # number of ports from `first_port` on; by default they end below 9092, the first port of Kafka's brokers
_MARGIN_S = 30.0  # added to the transfer's duration for control messages on a bad path; then the client counts as hung


@dataclass(frozen=True)
class Iperf3:
    """
    Measure throughput from `source` (client) to `target` (server), or from `target` to `source` with `reverse`.

    Parameters
    ----------
    duration_s : float
        Whole seconds to send (iperf3 reads 0.5 as 0, which means forever).
    rate_bps : float or None
        Maximum rate per stream; required with `udp`.
    window_bytes, congestion_control
        Size of the socket buffer, and algorithm such as "cubic" or "bbr"; None stands for the host's default.
    block_bytes : int or None
        Bytes per write; for UDP, per datagram.
    interval_s : float
        Interval between reports, 0.1 s or more; 0 means no reports.
    omit_s : float
        Whole seconds at the start that the result leaves out; the test lasts that much longer.
    connect_timeout_s : float
        Timeout for the start of the server, and for the control connection.
    timeout_s : float or None
        Timeout of the client. None stands for 30 s more than `duration_s` + `omit_s`.
    first_port : int
        Lowest port. Each attempt at a test uses a different port from this one on, so that a server left by a failed
        test does not disturb the next test.
    ip_version : int
        4 or 6: which addresses of the hosts to use. Table `transfers` has a column of this name.

    Examples
    --------
    >>> Iperf3(duration_s=2.0).expected_bytes(80.0, rate_bps=100e6)
    25000000.0
    """

    duration_s: float = bounded(2.0, 1, 86_400)
    streams: int = bounded(1, 1, 128)
    reverse: bool = False
    udp: bool = False
    rate_bps: float | None = bounded(None, 1, 1e13)
    window_bytes: int | None = bounded(None, 1024, 2**29)
    congestion_control: str | None = None
    block_bytes: int | None = bounded(None, 16, 2**20)
    interval_s: float = bounded(0.5, 0, 60)
    omit_s: float = bounded(0, 0, 60)
    connect_timeout_s: float = bounded(5.0, 0.1, 600)
    timeout_s: float | None = bounded(None, 0.1, 1e6)
    first_port: int = bounded(5201, 1024, 65_535 - _PORTS)
    ip_version: int = one_of(4, (4, 6))

    name: ClassVar[str] = "iperf3"

    def __post_init__(self):
        check_declared(self)
        for name in ("duration_s", "omit_s"):
            if (value := getattr(self, name)) != int(value):
                raise refusal(f"Iperf3 {name}", value, "whole seconds, as iperf3 does not accept fractions")
        if 0 < self.interval_s < 0.1:
            raise refusal("Iperf3 interval_s", self.interval_s, "0, or at least 0.1")
        if self.udp and self.rate_bps is None:
            raise ParameterError("Iperf3 with udp needs rate_bps, because UDP has no congestion control.")
        if self.congestion_control is not None and (
            self.udp or not re.fullmatch(r"[a-z][a-z0-9_]{0,14}", str(self.congestion_control))
        ):
            raise refusal("Iperf3 congestion_control", self.congestion_control, "a name such as 'cubic', with TCP only")

    def __str__(self) -> str:
        more = [f"{self.streams} streams"] if self.streams > 1 else []
        more += ["reverse"] if self.reverse else []
        more += [f"at {self.rate_bps / 1e6:g} Mbit/s"] if self.rate_bps else []
        more += [f"window {self.window_bytes} bytes"] if self.window_bytes else []
        more += [self.congestion_control] if self.congestion_control else []
        more += ["IPv6"] if self.ip_version == 6 else []
        return ", ".join([f"iperf3: {'UDP' if self.udp else 'TCP'} for {self.duration_s:g} s", *more])

    def port(self, stem: str) -> int:
        """Return the server's port for one attempt at a test, which the attempt's `stem` determines."""
        return self.first_port + zlib.crc32(stem.encode()) % _PORTS

    def client_command(self, address: str, source_address: str, port: int) -> list[str]:
        connect_ms = str(round(self.connect_timeout_s * 1000))
        command = ["iperf3", "-J", "-c", address, "-B", source_address, "-p", str(port)]
        command += ["--connect-timeout", connect_ms, "-i", f"{self.interval_s:g}"]
        for flag, value in (
            ("-t", f"{self.duration_s:g}"),
            ("-P", self.streams if self.streams > 1 else None),
            ("-b", None if self.rate_bps is None else round(self.rate_bps)),
            ("-w", self.window_bytes),
            ("-C", self.congestion_control),
            ("-l", self.block_bytes),
            ("-O", f"{self.omit_s:g}" if self.omit_s else None),
        ):
            command += [] if value is None else [flag, str(value)]
        return command + (["-R"] if self.reverse else []) + (["-u"] if self.udp else [])

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """
        Run a server on `target` and a client on `source`; keep the client's output in iperf3/<stem>.json and the
        server's in iperf3/<stem>.server.txt.

        The server is always stopped. Raise ExperimentError, with the output so far, if the server does not listen, the
        client takes too long, or iperf3 reports an error.
        """
        port = self.port(stem)
        address, source_address = (address_of(host, self.ip_version) for host in (target, source))
        one_test = ["iperf3", "-s", "-1", "--forceflush", "-B", address, "-p", str(port)]
        server = target.start(one_test)
        files: list[RawFile] = []
        reason = None
        try:
            server.wait_for_output("listening", self.connect_timeout_s)
            client = self.client_command(address, source_address, port)
            timeout_s = self.omit_s + self.duration_s + _MARGIN_S if self.timeout_s is None else self.timeout_s
            done, reason = run_to_end(source, client, timeout_s)
            files += keep(folder, self.name, stem, "json", done)
            reason = reason or _error_of(done, source)
            if reason is None:
                with suppress(CommandError):
                    server.wait(self.connect_timeout_s)
        except CommandError as error:
            reason = str(error)
        finally:
            ended = server.stop()
        files += keep(folder, self.name, stem, "server.txt", ended)
        if reason:
            raise ExperimentError(reason, files)
        return files

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Return the expected duration in s: sending, `HANDSHAKE_RTTS` round trips, and starting two programs."""
        return self.duration_s + self.omit_s + HANDSHAKE_RTTS * rtt_ms / 1000 + 2 * PROCESS_S

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float | None:
        """Return the bytes sent, without headers and control messages; None if they depend on an unknown rate."""
        rates = [rate for rate in (rate_bps, self.rate_bps and self.rate_bps * self.streams) if rate]
        return min(rates) * (self.duration_s + self.omit_s) / 8 if rates else None


def _error_of(done: Completed, source: Host) -> str | None:
    """Return why a client failed (the error in its JSON output, or else its last line); return None if it succeeded."""
    try:
        report = json.loads(done.stdout)
    except (ValueError, RecursionError):
        report = None
    # iperf3 may write -nan, which is not JSON; output that ends with a brace is nevertheless complete.
    is_whole = report is not None or done.stdout.rstrip().endswith(b"}")
    error = report.get("error") if isinstance(report, dict) else None
    if error is None and done.returncode == 0 and is_whole:
        return None
    error = last_line(done) if error is None else str(error)[:300]
    return f"iperf3 on {source.name} ended with status {done.returncode}: {error}"
