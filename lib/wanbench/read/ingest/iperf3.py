"""
Read the JSON or text output of an iperf3 client, version 3.0 to 3.21, into tables transfers and intervals.

- Each direction is a row of transfers, and each stream and interval a row of intervals.
- The throughput is the receiver's. If the receiver never reported (interrupted test, dead server), the throughput is
  null, never 0, and `error` has the reason, from iperf3 if it printed one.
- Old versions print a single UDP summary for both ends. The bytes received are then the datagrams that were not lost,
  times their length.
- A test that failed before it began (connection refused) is a row with its error and little else. iperf3 3.9 prints the
  error after its JSON.
- Round-trip times and congestion windows are kept only from a sending client; those of a receiving client describe its
  idle socket.
- A file may hold several tests, one after the other; stream numbers continue across them.
- The intervals of an interrupted `--json-stream` are kept, and `error` says where the stream ends.
- Bytes, seconds and bits per second of each summary and interval must agree within 1 %, or within the rounding of text.
- Text output has no RTTs, and its figures have three digits.
"""

from datetime import UTC, datetime

from wanbench.errors import RawDataError

from .content import read_text
from .iperf3_output import BEGINNING, LARGEST_BYTES, WANTED, has_json, is_text, json_documents, text_documents
from .json_values import Members

TOLERANCE = 0.01
"""Allowed relative error of a rate: iperf3 reads the clock at slightly different times for rate and bytes."""

REVERSE = "_bidir_reverse"


def read(source) -> dict[str, list[dict]]:
    """
    Read iperf3's output, given as a path or bytes, into rows of tables transfers and intervals without context columns.

    A RawDataError names what is missing, truncated, of the wrong type or impossible.

    >>> refused = b'{"start": {"version": "iperf 3.12"}, "end": {}, "error": "Connection refused"}'
    >>> [transfer] = read(refused)["transfers"]
    >>> transfer["tool_version"], transfer["throughput_bps"], transfer["error"]
    ('3.12', None, 'Connection refused')
    """
    path, text = read_text(source, most_bytes=LARGEST_BYTES, otherwise="utf-8")
    transfers: list[dict] = []
    intervals: list[dict] = []
    first_stream = 0
    printed_as_text = not has_json(text) and is_text(text)
    for line_number, document in (text_documents if printed_as_text else json_documents)(path, text):
        test = _Test(Members(path, line_number, document), printed_as_text)
        more = test.intervals(first_stream)
        transfers += [test.transfer(direction, more) for direction in test.directions]
        intervals += more
        first_stream = max((row["stream"] + 1 for row in more), default=first_stream)
    if not transfers:
        raise RawDataError(path, None, text.strip()[:80], BEGINNING)
    return {"transfers": transfers, "intervals": intervals}


class _Test:
    """One test, from a JSON document or converted from text, whose numbers are rounded."""

    def __init__(self, top: Members, is_text: bool):
        self.is_text = is_text
        self.top, self.start, self.end = top, top.members("start"), top.members("end")
        self.test, self.cpu = self.start.members("test_start"), self.end.members("cpu_utilization_percent")
        self.error = top.text("error")
        known = any(name in self.start.values for name in ("version", "connected", "test_start", "cookie"))
        if not known and (self.error is None or top.values.get("intervals") != []):
            top.refuse(", ".join(map(str, top.values)) or "{}", WANTED)
        if "accepted_connection" in self.start.values:
            top.refuse("start.accepted_connection", "output of the client (this is the server's)")
        self.protocol = self.test.text("protocol", ("TCP", "UDP", "SCTP"))
        sums = [name for name in self.end.values if name.startswith("sum")]
        if self.error is None and not sums:
            top.refuse("end without a summary", "end.sum_received, or end.sum, or an error")
        if self.test.count("bidir") or any(name.endswith(REVERSE) for name in sums):
            self.directions = ("forward", "reverse")
        elif self.test.values:
            self.directions = ("reverse" if self.test.count("reverse") else "forward",)
        else:
            self.directions = (None,)

    def intervals(self, first_stream: int) -> list[dict]:
        """Return a row per interval and stream; streams are numbered from `first_stream`."""
        numbers = {part.count("socket"): n for n, part in enumerate(self.start.list("connected"))}
        rows = []
        for interval in self.top.list("intervals"):
            for stream in interval.list("streams"):
                number = numbers.setdefault(stream.count("socket"), len(numbers))
                rows.append(self._interval(stream) | {"stream": first_stream + number})
        return rows

    def transfer(self, direction: str | None, intervals: list[dict]) -> dict:
        suffix = REVERSE if len(self.directions) == 2 and direction == "reverse" else ""
        sent, received, both = (self.end.members(name + suffix) for name in ("sum_sent", "sum_received", "sum"))
        times = [time for time in (sent.number("seconds"), *self._sender_seconds()) if time]
        row = self._about() | {"direction": direction, "error": self.error}
        for summary in (sent, received, both):
            _check_rate(summary, times, self.is_text)
        row |= _udp_counts(sent, received, both) if self.protocol == "UDP" else {}
        remote = self.cpu.number("remote_total")
        if not (sent.values or received.values) and both.values and self.protocol == "UDP":
            unreported = self.error and not remote and direction == "forward"
            sent, received = both, Members.none(self.top) if unreported else self._received_of(both, row)
            row |= {"lost_packets": None, "jitter_ms": None} if unreported else {}
        sent_bytes, received_bytes = sent.count("bytes"), received.count("bytes")
        remote = remote or (self.is_text and received.count("packets"))  # text has no CPU, but counts what was lost
        if received_bytes == 0 and (self.error or (sent_bytes and not remote)):
            received = Members.none(self.top)
            row["error"] = self.error or "no result from the server"
            row |= {"lost_packets": None, "jitter_ms": None}
        if sent_bytes == 0 and (received_bytes or self.error):
            sent = Members.none(self.top)
        if row["error"] and not remote:
            row["cpu_remote_percent"] = None
        row |= {"bytes": received.count("bytes"), "retransmits": sent.count("retransmits", unknown=-1)}
        row |= {"throughput_bps": _rate(received), "sent_throughput_bps": _rate(sent)}
        row["duration_s"] = (received if received.values else sent).number("seconds")
        return row | (self._path(intervals) if direction == "forward" else {})

    def _about(self):
        version = self.start.text("version")
        return {
            "protocol": self.protocol,
            "ip_version": next((_ip_version(part.text("local_host")) for part in self.start.list("connected")), None),
            "streams": self.test.count("num_streams"),
            "congestion_control": self.end.text("sender_tcp_congestion"),
            "mss_bytes": self.start.count("tcp_mss", unknown=0) or self.start.count("tcp_mss_default", unknown=0),
            "window_bytes": self.start.count("sock_bufsize", unknown=0),
            "block_bytes": self.test.count("blksize", unknown=0),
            "target_bitrate_bps": self.test.number("target_bitrate", unknown=0)
            or self.start.number("target_bitrate", unknown=0),
            "tool_version": version and version.removeprefix("iperf "),
            "cpu_local_percent": self.cpu.number("host_total"),
            "cpu_remote_percent": self.cpu.number("remote_total"),
            "started_at_utc": self._started(),
        }

    def _started(self):
        stamp = self.start.members("timestamp")
        seconds, milliseconds = stamp.number("timesecs", most=2**33), stamp.number("timemillisecs", most=2**43)
        seconds = seconds if milliseconds is None else milliseconds / 1000
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()

    def _ends(self, part):
        return [stream.members(part) for stream in self.end.list("streams") if part in stream.values]

    def _sender_seconds(self):
        return [part.number("seconds") for part in (*self._ends("sender"), *self._ends("udp"))]

    def _received_of(self, both, row):
        """Derive the receiver's summary from the single UDP summary of old iperf3 versions."""
        packets, lost, length = row["packets"], row["lost_packets"], row["block_bytes"]
        size, seconds = both.count("bytes"), both.number("seconds")
        counts_fit = None not in (packets, lost, length, size, seconds) and packets * length <= (1 + TOLERANCE) * size
        if not counts_fit:  # the receiver does not count datagrams lost at the end
            return Members.none(self.top)
        return both.of({"bytes": max(packets - lost, 0) * length, "seconds": seconds})

    def _path(self, intervals):
        senders = [part for part in self._ends("sender") if part.flag("sender") is not False]
        path = {}
        for name, summary in (("min", min), ("mean", lambda rtts: sum(rtts) / len(rtts)), ("max", max)):
            rtts = [rtt for part in senders if (rtt := part.number(f"{name}_rtt", unknown=0))]
            path[f"{name}_rtt_ms"] = summary(rtts) / 1000 if rtts else None
        windows = [size for part in senders if (size := part.count("max_snd_cwnd", unknown=0))]
        windows = windows or [row["cwnd_bytes"] for row in intervals if row["cwnd_bytes"] and not row["omitted"]]
        return path | {"max_cwnd_bytes": max(windows, default=None)}

    def _interval(self, stream):
        _check_rate(stream, [], self.is_text)
        start, end, size = stream.number("start"), stream.number("end"), stream.count("bytes")
        if None in (start, end, size):
            stream.refuse(f"{stream.where} with {', '.join(map(str, stream.values))}", "start, end and bytes")
        direction = self.directions[0] or "forward"
        if len(self.directions) == 2:
            direction = "reverse" if stream.flag("sender") is False else "forward"
        sends = direction == "forward"
        rtt, rttvar = (stream.number(name, unknown=0) if sends else None for name in ("rtt", "rttvar"))
        row = {"direction": direction, "start_s": start, "end_s": end, "bytes": size, "throughput_bps": _rate(stream)}
        return row | {
            "retransmits": stream.count("retransmits", unknown=-1),
            "cwnd_bytes": stream.count("snd_cwnd", unknown=0) if sends else None,
            "rtt_ms": None if rtt is None else rtt / 1000,
            "rttvar_ms": None if rtt is None or rttvar is None else rttvar / 1000,
            "packets": stream.count("packets"),
            "lost_packets": stream.count("lost_packets", minimum=None),
            "jitter_ms": stream.number("jitter_ms"),
            "omitted": bool(stream.flag("omitted")),
        }


def _ip_version(address):
    return (6 if ":" in address else 4) if address else None


def _udp_counts(sent, received, both):
    """Return datagrams sent and lost, and jitter; the loss is the receiver's if there are two summaries."""
    packets = [n for part in (sent, received, both) if (n := part.count("packets", unknown=0))]
    receiver = received if received.values else both
    counts = {"packets": next(iter(packets), None), "lost_packets": receiver.count("lost_packets", minimum=None)}
    return counts | {"jitter_ms": receiver.number("jitter_ms")}


def _rate(summary):
    size, seconds, rate = summary.count("bytes"), summary.number("seconds"), summary.number("bits_per_second")
    if rate is not None:
        return rate if seconds else None
    return size * 8 / seconds if size is not None and seconds else None


def _check_rate(summary, times, is_text):
    """Reject a rate that matches its bytes over none of the durations; old versions mix the clocks of both ends."""
    size, rate = summary.count("bytes"), summary.number("bits_per_second")
    start, end = summary.number("start"), summary.number("end")
    times = [summary.number("seconds"), *times, None if None in (start, end) else end - start]
    times = [seconds for seconds in times if seconds]
    if None in (size, rate) or not times:
        return
    rounding = 0.01 * rate + 0.12 * size if is_text else rate * 1e-6 + 8  # times have two decimals, or six
    if not any(abs(size * 8 - rate * seconds) <= TOLERANCE * size * 8 + rounding for seconds in times):
        found = f"{summary.where}: {size} bytes in {times[0]:g} s at {rate:g} bit/s"
        summary.refuse(found, "bytes x 8 / seconds within 1 % of bits_per_second")
