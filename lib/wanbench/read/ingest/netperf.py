"""
Read output of netperf: TCP_RR and UDP_RR into table pings, TCP_STREAM, TCP_MAERTS and UDP_STREAM into transfers.

A request of one byte and its answer take one round trip. With one transaction in flight, 1 / rate is therefore the mean
RTT, including processing on both hosts. Other statistics need the option -k (MIN_LATENCY, P50_LATENCY, ...). Both the
default output and that of -k are read. A file may have several tests, and other lines around them.
"""

import re
from math import isfinite

import pandas as pd

from wanbench.errors import RawDataError

from . import content
from .rows import Row, fitting

MOST_BYTES = 50_000_000
"""Largest allowed file: about 50,000 tests of 1 kB each."""

LONGEST_BANNER = 1_000
"""It names two hosts, of at most 255 characters each; matching a longer line may take long."""

BANNER = re.compile(
    r"(?:MIGRATED |OMNI )?(?P<test>[\w/ ]+?) TEST (?:from \S+.* )?to .*?(?:: first burst (?P<burst>\d+))?\s*"
)
TESTS = {
    "TCP REQUEST/RESPONSE": ("TCP", None),
    "UDP REQUEST/RESPONSE": ("UDP", None),
    "TCP STREAM": ("TCP", "forward"),
    "TCP MAERTS": ("TCP", "reverse"),
    "UDP STREAM": ("UDP", "forward"),
    "Send": (None, "forward"),
    "Receive": (None, "reverse"),
    "Send|Recv": (None, None),
}
"""
Protocol and direction of each test, by the test's name in its banner; the direction is None for request/response tests.
"""
ALLOWED = "TCP_RR, UDP_RR, TCP_STREAM, TCP_MAERTS, UDP_STREAM, or omni"
BITS = {
    "10^3bits": 1e3, "10^6bits": 1e6, "10^9bits": 1e9,
    "Bytes": 8.0, "KBytes": 8.0 * 2**10, "MBytes": 8.0 * 2**20, "GBytes": 8.0 * 2**30,
}  # fmt: skip
"""Bits per unit; prefixes of bytes are powers of 1,024, according to netperf(1), option -f."""
UNIT = re.compile(r"(10\^[369]bits|[KMG]?Bytes)/s(?:ec)?\b")
KEYVAL = re.compile(r"([A-Z][A-Z0-9_]+)=(.*)")
NUMBERS = re.compile(r"\s*[-\d.]+(?:\s+[-\d.]+)+\s*")
LATENCIES = {
    "min_rtt_ms": "MIN_LATENCY", "mean_rtt_ms": "MEAN_LATENCY", "median_rtt_ms": "P50_LATENCY",
    "p90_rtt_ms": "P90_LATENCY", "p99_rtt_ms": "P99_LATENCY", "max_rtt_ms": "MAX_LATENCY",
    "sd_rtt_ms": "STDDEV_LATENCY",
}  # fmt: skip


def read(source: content.Source) -> dict[str, pd.DataFrame]:
    """
    Read tables pings and transfers.

    Raise RawDataError, which names the line, for a test without a result. Raise it also for a file without netperf's
    banner, which states the test and the units, and which `netperf -P 0` omits.
    """
    path, text = content.read_text(source, most_bytes=MOST_BYTES)
    lines = text.splitlines()
    short = ((k, line.strip()) for k, line in enumerate(lines) if len(line) <= LONGEST_BANNER)
    starts = [(k, found) for k, line in short if (found := BANNER.fullmatch(line))]
    if not starts:
        first = next((k for k, line in enumerate(lines) if line.strip()), 0)
        found = lines[first] if lines else "nothing"
        raise RawDataError(path, first + 1, found, "netperf's banner, '... TEST from ... to ...'")
    ends = [k for k, _ in starts[1:]] + [len(lines)]
    rows: dict[str, list[Row]] = {}
    for (k, banner), end in zip(starts, ends, strict=True):
        name, row = _test(path, k + 1, banner, lines[k + 1 : end])
        rows.setdefault(name, []).append(row)
    return {name: fitting(path, name, found) for name, found in rows.items()}


def _test(path: content.File, line_number: int, banner: re.Match[str], body: list[str]) -> tuple[str, Row]:
    test = banner["test"]
    if test not in TESTS:
        raise RawDataError(path, line_number, banner[0], ALLOWED)
    protocol, direction = TESTS[test]
    values = _named(body) or _columns(body, protocol, direction)
    rate, unit = _number(values, "THROUGHPUT"), values.get("THROUGHPUT_UNITS", "")
    if not rate:
        raise RawDataError(path, line_number, banner[0], "a result above zero in netperf's own columns or -k")
    protocol = values.get("PROTOCOL", protocol)
    if unit == "Trans/s":
        times = {column: _number(values, name) for column, name in LATENCIES.items()}
        if times["mean_rtt_ms"] is None:
            times["mean_rtt_ms"] = 1e6 * (1 + int(banner["burst"] or 0)) / rate
        return "pings", {column: us and us / 1000 for column, us in times.items()}
    measure = UNIT.fullmatch(unit)
    if measure is None or direction is None:
        raise RawDataError(path, line_number, unit or banner[0], "a rate in a unit of netperf's -f")
    bits = BITS[measure[1]]
    sent, received = (_number(values, name) for name in ("LOCAL_SEND_THROUGHPUT", "REMOTE_RECV_THROUGHPUT"))
    packets, arrived = (_number(values, name) for name in ("SENT_MESSAGES", "RECEIVED_MESSAGES"))
    carried = _number(values, "REMOTE_BYTES_RECVD" if direction == "forward" else "LOCAL_BYTES_RECVD")
    return "transfers", {
        "direction": direction,
        "protocol": protocol,
        "streams": 1,
        "duration_s": _number(values, "ELAPSED_TIME"),
        "bytes": carried or None,
        "throughput_bps": bits * (received or rate if direction == "forward" else rate),
        "sent_throughput_bps": bits * sent if sent and direction == "forward" else None,
        "retransmits": _number(values, "LOCAL_TRANSPORT_RETRANS") if direction == "forward" else None,
        "mss_bytes": _number(values, "TRANSPORT_MSS"),
        "congestion_control": values.get("LOCAL_CONG_CONTROL"),
        "packets": packets,
        "lost_packets": None if packets is None or arrived is None else packets - arrived,
    }


def _named(body: list[str]) -> dict[str, str]:
    """Return the values that the option -k printed, by name; {} without this option."""
    return {match[1]: match[2].strip() for line in body if (match := KEYVAL.fullmatch(line.strip()))}


def _columns(body: list[str], protocol: str | None, direction: str | None) -> dict[str, str]:
    numbers = [line.split() for line in body if NUMBERS.fullmatch(line)]
    unit = next((found[0] for line in body if (found := UNIT.search(line))), "")
    first = numbers[0] if numbers else []
    if direction is None:
        names = ("", "", "", "", "ELAPSED_TIME", "THROUGHPUT")
        return dict(zip(names, first, strict=False)) | {"THROUGHPUT_UNITS": "Trans/s"}
    if protocol == "UDP":
        if len(numbers) < 2 or len(first) != 6 or len(numbers[1]) != 4:
            return {}
        _, elapsed, arrived, received = numbers[1]
        found = {"ELAPSED_TIME": elapsed, "THROUGHPUT": received, "LOCAL_SEND_THROUGHPUT": first[5]}
        found |= {"SENT_MESSAGES": first[3], "RECEIVED_MESSAGES": arrived}
    else:
        found = dict(zip(("", "", "", "ELAPSED_TIME", "THROUGHPUT"), first, strict=False))
    return found | {"THROUGHPUT_UNITS": unit}


def _number(values: dict[str, str], name: str) -> float | None:
    """Return a number; None if netperf did not measure it and therefore printed -1 or nan."""
    try:
        value = float(values.get(name, "nan"))
    except ValueError:
        return None
    return value if isfinite(value) and value >= 0 else None
