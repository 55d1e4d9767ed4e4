"""
Turn iperf3's plain text into the documents that its option -J prints, as far as the text has their values.

Text has three significant digits, times two decimals; congestion windows are those of intervals. Version, start, block
length and CPU are there with -V only. UDP of versions before 3.2 has one summary: what was received is the part of the
bytes that was not lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.utils import parsedate_to_datetime

from wanbench.errors import RawDataError

from .kafka_load.lines import lines

WANTED = "a line of iperf3's intervals or summaries"
BEGINNING = "'Connecting to host', which begins each test"
_N = r"[0-9]{1,15}(?:\.[0-9]{1,6})?"
_LINE = re.compile(
    rf"\[ *+(?P<stream>[0-9]{{1,9}}|SUM)\](?:\[(?P<role>[TR]X)-C\])? ++(?P<start>{_N})- *+(?P<end>{_N}) ++sec ++"
    rf"(?P<size>{_N}) (?P<size_unit>[KMGT]?Bytes) ++(?P<rate>{_N}) (?P<rate_unit>[KMGT]?(?:bits|Bytes))/sec\s*+"
    r"(?:(?P<jitter>[0-9]{1,9}\.[0-9]{1,6}) ms ++(?P<lost>-?[0-9]{1,15})/(?P<total>[0-9]{1,15}) \([^()]{1,20}\)|"
    rf"(?P<count>[0-9]{{1,15}})(?: ++(?P<cwnd>{_N}) (?P<cwnd_unit>[KMGT]?Bytes))?)?\s*+"
    r"(?P<of>sender|receiver)?\s*+(?P<omitted>\(omitted\))?\s*+$"
)
_ABOUT = re.compile(
    rf"\biperf (?P<version>3[\w.+-]{{1,40}})|Time: (?P<time>.{{1,40}} GMT)|TCP MSS: (?P<mss>[0-9]{{1,9}})|"
    rf"Target Bitrate: (?P<target>[0-9]{{1,15}})|Starting Test: protocol: (?P<protocol>[A-Z]{{1,9}}), [0-9]+ streams, "
    rf"(?P<block>[0-9]{{1,9}}) byte|CPU Utilization: [a-z/]+ (?P<host>{_N})%[^,]*, [a-z/]+ (?P<remote>{_N})%|"
    r"snd_tcp_congestion (?P<congestion>\w{1,40})"
)
_CONNECTING = re.compile(r"Connecting to host ")
_CONNECTED = re.compile(r"\[ *([0-9]{1,9})\] local \S+ port [0-9]+ connected to ")
_ERROR = re.compile(r"iperf3: ((?:error|interrupt) - .*)")
_OF_SERVER = re.compile(r"Server listening on |Accepted connection from ")
_HEADING = r"\[ ID\](?:\[Role\])? Interval {11}Transfer"  # iperf2 has fewer spaces
_RECOGNISED = re.compile(f"{_CONNECTING.pattern}|{_OF_SERVER.pattern}|{_ERROR.pattern}|{_HEADING}")
_NOT_CONNECTED = "unable to connect"


def is_text(text: str) -> bool:
    """Whether iperf3 may have printed this without -J."""
    return _RECOGNISED.search(text) is not None


def documents(path, text: str) -> Iterator[tuple[int, dict]]:
    """The tests in a text, each with the number of its first line, as `iperf3_documents.documents` gives them."""
    test, about, error, is_of_server = None, {}, None, False
    for number, line, _, is_whole, _ in lines(path, text):
        if found := _ERROR.search(line):
            message = found[1].removeprefix("error - ")
            if test is None and _NOT_CONNECTED in message:
                yield number, {"start": {}, "intervals": [], "end": {}, "error": message}
            elif test is None:  # stderr may come before what stdout holds back
                error = message
            else:
                test.error = message
        elif _CONNECTING.search(line):
            if test:
                yield test.whole()
            test, about, error, is_of_server = _Test(number, about, error), {}, None, False
        elif line.startswith("Server output:"):
            is_of_server = test is not None
        elif "iperf Done." in line and test:
            yield test.whole()
            test = None
        elif is_of_server:
            continue
        elif _OF_SERVER.search(line):
            raise RawDataError(path, number, line, "output of the client (this is the server's)")
        elif found := _ABOUT.search(line):
            if found["version"] and test:
                yield test.whole()
                test = None
            values = {name: value for name, value in found.groupdict().items() if value}
            (about if test is None else test.about).update(values)
        elif " sec " in line and "Bytes" in line and (is_whole or line.endswith(("sender", "receiver"))):
            figures = _LINE.search(line)
            if test is None or figures is None:
                raise RawDataError(path, number, line.strip(), WANTED if test else BEGINNING)
            test.add(figures)
        elif test:
            test.read(line)
    if test:
        yield test.whole()
    elif error:
        yield 1, {"start": {}, "intervals": [], "end": {}, "error": error}


class _Test:
    """One test, as it is read."""

    def __init__(self, line_number: int, about: dict[str, str], error: str | None):
        self.line_number, self.about, self.error = line_number, about, error
        self.is_reverse = self.is_bidir = self.is_udp = self.in_summary = False
        self.sockets: list[int] = []
        self.intervals: list[dict] = []
        self.sums: dict[str, dict] = {}

    def read(self, line: str) -> None:
        """Take in a line without figures."""
        if connected := _CONNECTED.search(line):
            self.sockets.append(int(connected[1]))
        elif "[ ID]" in line:
            self.is_udp |= "Datagrams" in line
            self.is_bidir |= "[Role]" in line
            self.in_summary = bool(self.intervals)
        else:
            self.is_reverse |= "Reverse mode, " in line

    def add(self, line: re.Match) -> None:
        """Add the figures of an interval, or of a summary: iperf3 prints a heading before both."""
        start, end = float(line["start"]), float(line["end"])
        row = {"start": start, "end": end, "seconds": end - start}
        row["bytes"] = round(_bits(line["size"], line["size_unit"]) / 8)
        row["bits_per_second"] = _bits(line["rate"], line["rate_unit"])
        if line["total"]:
            counts = {"lost_packets": int(line["lost"]), "packets": int(line["total"])}
            row |= counts | {"jitter_ms": float(line["jitter"])}
        elif line["count"]:
            row["packets" if self.is_udp else "retransmits"] = int(line["count"])
        if self.in_summary or line["of"]:
            self._add_sum(line, row)
        elif line["stream"] != "SUM":
            row |= {"socket": int(line["stream"]), "omitted": line["omitted"] is not None}
            row |= {"sender": line["role"] != "RX"} if line["role"] else {}
            row |= {"snd_cwnd": round(_bits(line["cwnd"], line["cwnd_unit"]) / 8)} if line["cwnd"] else {}
            self.intervals.append({"streams": [row]})

    def _add_sum(self, line, row):
        """Keep the sum of all streams, which comes after those of single ones."""
        row["is_sum"] = line["stream"] == "SUM"
        suffix = "_bidir_reverse" if line["role"] == "RX" else ""
        if line["of"] != "receiver":
            self.sums["sum_sent" + suffix] = row
        if line["of"] != "sender":
            self.sums["sum_received" + suffix] = row
        if not line["of"] and row.get("packets"):
            arrived = min(max(1 - row["lost_packets"] / row["packets"], 0), 1)
            both = {name: round(row[name] * arrived) for name in ("bytes", "bits_per_second")}
            self.sums["sum_received" + suffix] = row | both

    def whole(self) -> tuple[int, dict]:
        """The document; its error says so if the summary is missing."""
        about = self.about
        n = max(len(self.sockets) // (1 + self.is_bidir), 1)
        sums = {name: row for name, row in self.sums.items() if n == 1 or row["is_sum"]}
        test = {"protocol": about.get("protocol", "UDP" if self.is_udp else "TCP"), "num_streams": n}
        test |= {"reverse": int(self.is_reverse), "bidir": int(self.is_bidir)}
        test["blksize"] = int(about.get("block", 0))
        start = {"connected": [{"socket": socket} for socket in self.sockets], "test_start": test}
        start |= {"version": about.get("version"), "target_bitrate": int(about.get("target", 0))}
        start |= {"tcp_mss": int(about.get("mss", 0)), "timestamp": {"timesecs": _unix_s(about.get("time"))}}
        cpu = {f"{name}_total": float(about[name]) for name in ("host", "remote") if name in about}
        end = sums | {"cpu_utilization_percent": cpu, "sender_tcp_congestion": about.get("congestion")}
        error = self.error or (None if sums else "the output ends before the summary")
        return self.line_number, {"start": start, "intervals": self.intervals, "end": end, "error": error}


def _bits(figure: str, unit: str) -> float:
    """An amount or a rate in bits: units in bits are powers of 1,000, those in bytes of 1,024."""
    power = "KMGT".find(unit[0]) + 1
    return float(figure) * (1000**power if unit.endswith("bits") else 8 * 1024**power)


def _unix_s(time: str | None) -> float | None:
    try:
        return None if time is None else max(parsedate_to_datetime(time).timestamp(), 0)
    except (TypeError, ValueError, OverflowError):
        return None
