"""
Read the JSON or text output of an iperf3 client, version 3.0 to 3.21, into tables transfers and intervals.

- Each direction is a row of transfers, and each stream and interval a row of intervals.
- The throughput is the receiver's. If the receiver never reported (interrupted test, dead server), the throughput is
  null, never 0, and `error` has the reason, from iperf3 if it printed one.
- Old versions print a single UDP summary for both ends. The bytes received are then the datagrams that were not lost,
  times their length.
- A test that failed before data flowed (connection refused) is a row with an error and without a throughput. iperf3 3.9
  prints the error after the JSON.
- Round-trip times and congestion windows are kept only from a sending client; those of a receiving client describe its
  idle socket.
- A file may hold several tests, one after the other; stream numbers continue across them.
- The intervals of an interrupted `--json-stream` are kept, and `error` says where the stream ends.
- Bytes, seconds and bits per second of each summary and interval must agree within 1 %, or within the rounding of text.
- Text output has no RTTs, and its figures have three digits.
"""

from datetime import UTC, datetime

from wanbench.errors import RawDataError

from .content import Source, read_text
from .iperf3_document import NOTHING, Document, Figures
from .iperf3_output import BEGINNING, LARGEST_BYTES, REVERSE, WANTED, has_json, is_text, json_documents, text_documents
from .json_values import Members, text, typed
from .rows import Row

TOLERANCE = 0.01
"""Allowed relative error of a rate: iperf3 reads the clock at slightly different times for rate and bytes."""


def read(source: Source) -> dict[str, list[Row]]:
    """
    Read iperf3's output, a path or bytes; return rows of the tables "transfers" and "intervals".

    The rows lack the columns run, test, regions and file. A RawDataError names what is missing, truncated, of the wrong
    type or impossible.

    >>> refused = b'{"start": {"version": "iperf 3.12"}, "end": {}, "error": "Connection refused"}'
    >>> [transfer] = read(refused)["transfers"]
    >>> transfer["tool_version"], transfer["throughput_bps"], transfer["error"]
    ('3.12', None, 'Connection refused')
    """
    path, printed = read_text(source, most_bytes=LARGEST_BYTES, otherwise="utf-8")
    transfers: list[Row] = []
    intervals: list[Row] = []
    first_stream = 0
    as_text = not has_json(printed) and is_text(printed)
    for line_number, document in (text_documents if as_text else json_documents)(path, printed):
        test = _Test(Members(path, line_number, document), as_text)
        more = test.intervals(first_stream)
        transfers += [test.transfer(direction, more) for direction in test.directions]
        intervals += more
        first_stream = max((row["stream"] + 1 for row in more), default=first_stream)
    if not transfers:
        raise RawDataError(path, None, printed.strip()[:80], BEGINNING)
    return {"transfers": transfers, "intervals": intervals}


class _Test:
    """One test, from a JSON document or converted from text, whose numbers are rounded."""

    def __init__(self, top: Members, is_text: bool):
        self.top, self.is_text = top, is_text
        start, sums = top.members("start").values, [name for name in top.members("end").values if name[:3] == "sum"]
        known = any(name in start for name in ("version", "connected", "test_start", "cookie"))
        if not known and (top.text("error") is None or top.values.get("intervals") != []):
            top.refuse(", ".join(map(str, top.values)) or "{}", WANTED)
        if "accepted_connection" in start:
            top.refuse("start.accepted_connection", "output of the client (this is the server's)")
        self.document = typed(top, Document)
        self.start, self.end, self.error = self.document.start, self.document.end, _utf8(self.document.error)
        self.test, self.cpu = self.start.test_start, self.end.cpu_utilization_percent
        self.protocol = self.test.protocol
        if self.error is None and not sums:
            top.refuse("end without a summary", "end.sum_received, or end.sum, or an error")
        if self.test.bidir or any(name.endswith(REVERSE) for name in sums):
            self.directions = ("forward", "reverse")
        elif start.get("test_start"):
            self.directions = ("reverse" if self.test.reverse else "forward",)
        else:
            self.directions = (None,)

    def intervals(self, first_stream: int) -> list[Row]:
        """Return a row per interval and stream; streams are numbered from `first_stream`."""
        numbers = {part.socket: n for n, part in enumerate(self.start.connected)}
        both, only = len(self.directions) == 2, self.directions[0] or "forward"
        rows = []
        for n, interval in enumerate(self.document.intervals):
            for m, stream in enumerate(interval.streams):
                start, end, size, rtt = stream.start, stream.end, stream.bytes, stream.rtt
                if start is None or end is None or size is None:
                    part = self.top.list("intervals")[n].list("streams")[m]
                    part.refuse(f"{part.where} with {', '.join(map(str, part.values))}", "start, end and bytes")
                if not self._fits(stream, []):
                    self._refuse_rate(stream, f"intervals[{n}].streams[{m}]")
                direction = ("reverse" if stream.sender is False else "forward") if both else only
                sends = direction == "forward"
                number = numbers.setdefault(stream.socket, len(numbers))
                row = {
                    "stream": first_stream + number,
                    "direction": direction,
                    "start_s": start,
                    "end_s": end,
                    "bytes": size,
                    "throughput_bps": _rate(stream),
                    "retransmits": _known(stream.retransmits),
                    "cwnd_bytes": (stream.snd_cwnd or None) if sends else None,
                    "rtt_ms": rtt / 1000 if sends and rtt else None,
                    "rttvar_ms": stream.rttvar / 1000 if sends and rtt and stream.rttvar else None,
                    "packets": stream.packets,
                    "lost_packets": _known(stream.lost_packets),
                    "jitter_ms": stream.jitter_ms,
                    "omitted": bool(stream.omitted),
                }
                rows.append(row)
        return rows

    def transfer(self, direction: str | None, intervals: list[Row]) -> Row:
        suffix = REVERSE if len(self.directions) == 2 and direction == "reverse" else ""
        names = [name + suffix for name in ("sum_sent", "sum_received", "sum")]
        sent, received, both = (getattr(self.end, name) for name in names)
        row = self._about() | {"direction": direction, "error": self.error}
        times = [part.seconds for stream in self.end.streams for part in (stream.sender, stream.udp) if part]
        for name, summary in zip(names, (sent, received, both), strict=True):
            if not self._fits(summary, [sent.seconds, *times]):
                self._refuse_rate(summary, f"end.{name}")
        row |= _udp_counts(sent, received, both) if self.protocol == "UDP" else {}
        remote = self.cpu.remote_total
        if sent == received == NOTHING != both and self.protocol == "UDP":
            unreported = self.error and not remote and direction == "forward"
            sent, received = both, NOTHING if unreported else _received_of(both, row)
            row |= {"lost_packets": None, "jitter_ms": None} if unreported else {}
        remote = remote or (self.is_text and received.packets)  # text has no CPU, but counts what was lost
        if received.bytes == 0 and (self.error or (sent.bytes and not remote)):
            received = NOTHING
            row["error"] = self.error or "no result from the server"
            row |= {"lost_packets": None, "jitter_ms": None}
        if sent.bytes == 0 and (received.bytes or self.error):
            sent = NOTHING
        if row["error"] and not remote:
            row["cpu_remote_percent"] = None
        row |= {"bytes": received.bytes, "retransmits": _known(sent.retransmits)}
        row |= {"throughput_bps": _rate(received), "sent_throughput_bps": _rate(sent)}
        row["duration_s"] = (sent if received == NOTHING else received).seconds
        return row | (self._path(intervals) if direction == "forward" else {})

    def _about(self) -> Row:
        start, test, version = self.start, self.test, _utf8(self.start.version)
        address = next((part.local_host for part in start.connected), None)
        return {
            "protocol": self.protocol,
            "ip_version": (6 if ":" in address else 4) if address else None,
            "streams": test.num_streams,
            "congestion_control": _utf8(self.end.sender_tcp_congestion),
            "mss_bytes": start.tcp_mss or start.tcp_mss_default or None,
            "window_bytes": start.sock_bufsize or None,
            "block_bytes": test.blksize or None,
            "target_bitrate_bps": test.target_bitrate or start.target_bitrate or None,
            "tool_version": version and version.removeprefix("iperf "),
            "cpu_local_percent": self.cpu.host_total,
            "cpu_remote_percent": self.cpu.remote_total,
            "started_at_utc": self._started(),
        }

    def _started(self) -> datetime | None:
        stamp = self.start.timestamp
        seconds = stamp.timesecs if stamp.timemillisecs is None else stamp.timemillisecs / 1000
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)

    def _path(self, intervals: list[Row]) -> Row:
        senders = [stream.sender for stream in self.end.streams if stream.sender]
        senders = [part for part in senders if part.sender is not False]
        path = {}
        for name, summary in (("min", min), ("mean", lambda rtts: sum(rtts) / len(rtts)), ("max", max)):
            rtts = [rtt for part in senders if (rtt := getattr(part, f"{name}_rtt"))]
            path[f"{name}_rtt_ms"] = summary(rtts) / 1000 if rtts else None
        windows = [part.max_snd_cwnd for part in senders if part.max_snd_cwnd]
        windows = windows or [row["cwnd_bytes"] for row in intervals if row["cwnd_bytes"] and not row["omitted"]]
        return path | {"max_cwnd_bytes": max(windows, default=None)}

    def _fits(self, figures: Figures, times: list[float | None]) -> bool:
        """Return whether a rate fits its bytes over one of the durations; old versions mix the clocks of both ends."""
        size, rate = figures.bytes, figures.bits_per_second
        if size is None or rate is None:
            return True
        rounding = 0.01 * rate + 0.12 * size if self.is_text else rate * 1e-6 + 8  # times have two decimals, or six
        most = TOLERANCE * size * 8 + rounding
        if figures.seconds and abs(size * 8 - rate * figures.seconds) <= most:  # as nearly always
            return True
        lengths = [seconds for seconds in (figures.seconds, _length(figures), *times) if seconds]
        return not lengths or any(abs(size * 8 - rate * seconds) <= most for seconds in lengths)

    def _refuse_rate(self, figures: Figures, where: str) -> None:
        found = f"{where}: {figures.bytes} bytes in {figures.seconds or _length(figures) or 0:g} s"
        expected = "bytes x 8 / seconds within 1 % of bits_per_second"
        self.top.refuse(f"{found} at {figures.bits_per_second:g} bit/s", expected)


def _received_of(both: Figures, row: Row) -> Figures:
    """Derive the receiver's summary from the single UDP summary of old iperf3 versions."""
    packets, lost, length = row["packets"], row["lost_packets"], row["block_bytes"]
    size, seconds = both.bytes, both.seconds
    if None in (packets, lost, length, seconds) or size is None or packets * length > (1 + TOLERANCE) * size:
        return NOTHING  # the receiver does not count datagrams lost at the end
    return Figures(bytes=max(packets - lost, 0) * length, seconds=seconds)


def _udp_counts(sent: Figures, received: Figures, both: Figures) -> Row:
    """Return datagrams sent and lost, and jitter; the loss is the receiver's if there are two summaries."""
    packets = [part.packets for part in (sent, received, both) if part.packets]
    receiver = both if received == NOTHING else received
    counts = {"packets": next(iter(packets), None), "lost_packets": _known(receiver.lost_packets)}
    return counts | {"jitter_ms": receiver.jitter_ms}


def _rate(figures: Figures) -> float | None:
    size, seconds, rate = figures.bytes, figures.seconds, figures.bits_per_second
    if rate is not None:
        return rate if seconds else None
    return size * 8 / seconds if size is not None and seconds else None


def _length(figures: Figures) -> float | None:
    return None if figures.start is None or figures.end is None else figures.end - figures.start


def _known(number: int | None) -> int | None:
    return number if number is None or number >= 0 else None


def _utf8(value: str | None) -> str | None:
    return None if value is None else text(value)
