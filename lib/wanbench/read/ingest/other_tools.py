"""Tools whose output is recognised but not read, or read under another name: what they are, and what to do instead."""

from __future__ import annotations

import re

from wanbench.errors import RawDataError

from .content import as_utf8, decompressed

OPENING_BYTES = 4096
"""A tool shows itself in its first lines."""
_TABLE = "put from, to and its values into a CSV, for importers.read_table"
_SAR = "sadf -j -- -n DEV -u FILE prints the same as JSON, for read_files(paths, 'host_metrics')"
_PRODUCER = f"kafka-producer-perf-test is read as 'kafka_load'; or {_TABLE}"

TOOLS = tuple(
    # (name, pattern in its opening, what to do); the first that matches counts
    (name, re.compile(pattern, re.MULTILINE), advice)
    for name, pattern, advice in (
        ("iperf 2", r"^(?:Client connecting to|Server listening on) .*port \d|^\[ *\d+\] local .* connected with ",
         "use iperf3 -J, which is read as 'iperf3'; or iperf -y C, for importers.read_table with a header"),
        ("iperf 2 (-y C)", r"^\d{14}(?:\.\d+)?,[\d.:a-f]+,\d+,[\d.:a-f]+,\d+,-?\d+,[\d.]+-[\d.]+,\d+,\d+",
         "importers.read_table with header: [time, from, from_port, to, to_port, id, interval, bytes, rate]"),
        ("nuttcp", r"^ *[\d.]+ +[KMG]?B / +[\d.]+ sec = +[\d.]+ [KMG]?bps", _TABLE),
        ("sockperf", r"^sockperf: ", f"{_TABLE}; its latency is half a round trip, except with --full-rtt"),
        ("qperf", r"^(?:tcp|udp|sctp|rc|uc|ud|rds|sdp)_(?:bw|lat):$", f"{_TABLE}; its latency is one way"),
        ("ethr", r"^\[ ID *\] +Protocol +Interval ", _TABLE),
        ("NDT (ndt7-client)", r'"ServerFQDN"\s*:', _TABLE),
        ("pScheduler", r'"succeeded"\s*:(?s:.*)"(?:histogram-latency|throughput-bits|packets-sent)"\s*:',
         f"{_TABLE}; latencies of its tools owping and twping are one way"),
        ("tcping", r"^(?:PING .* on port \d+|Reply from .* port \d+.* time=|Probing .*:\d+/tcp)", _TABLE),
        ("hping", r"^HPING |^len=\d+ ip=", _TABLE),
        ("fping -J", r'^\{"(?:resp|timeout|summary|vSum|intSum)"\s*:',
         "without -J fping is read as 'ping' (fping -D -C or -l)"),
        ("traceroute", r"^traceroute6? to |^Tracing route to ",
         f"ping the same host, which is read as 'ping'; or {_TABLE}"),
        ("netperf -P 0", r"\A\s*\d+ +\d+ +\d+ +\d+\.\d+ +\d+\.\d+\s*$", "netperf without -P 0 states test and units"),
        ("sar", r"^Linux \S+ \(\S+\)\s.*\(\d+ CPU\)", _SAR),
        ("sadf -d", r"^# hostname;interval;timestamp", _SAR),
        ("rdkafka_performance", r"^% .*(?:ending messages of size|messages (?:produced|consumed)|backpressure)",
         _PRODUCER),
        ("the bench of franz-go", r"^[\d.]+ [KMG]iB/s; [\d.]+k? records/s", _PRODUCER),
        ("kafka-python's producer_performance", r"records sent, [\d.]+ records/sec \([\d.]+ MB/sec\),\t", _PRODUCER),
        ("xk6-kafka", r"^\s*kafka_(?:reader|writer)_\w+\.*:", _PRODUCER),
        ("Prometheus' query API", r'"status"\s*:\s*"success"(?s:.*)"resultType"\s*:',
         "the page /metrics of an exporter is read as 'broker_metrics'"),
        ("iperf3 inside other JSON", r'\A\s*[\[{](?s:.*)"results"\s*:\s*\{\s*"start"\s*:',
         "write what stands under results into a file of its own, for read_files(paths, 'iperf3')"),
        ("cloudping", r'"metadata"\s*:\s*\{[^{}]*"percentile"', "importers.read_matrix(path)"),
        ("a table of pairs", r"\A\W*(?:from|source|src)\w*[,;\t]", "importers.read_table(path)"),
        ("kafka-producer-perf-test", r"^.*\d records sent, [\d.,]+ records/sec \(", "read_files(paths, 'kafka_load')"),
        ("OpenMessaging Benchmark", r'"publishRate"\s*:', "read_files(paths, 'openmessaging')"),
        ("iperf3 -J", r'"test_start"\s*:|"cookie"\s*:\s*"\w{36}"', "read_files(paths, 'iperf3')"),
        ("ping", r"^(?:PING|Pinging) \S+", "read_files(paths, 'ping')"),
        ("netperf", r"^\S.* TEST (?:from|to) .* AF_INET", "read_files(paths, 'netperf')"),
        ("flent", r'"SERIES_META"\s*:', "read_files(paths, 'flent')"),
        ("sadf -j", r'\A\s*\{\s*"sysstat"\s*:', "read_files(paths, 'host_metrics')"),
    )
)  # fmt: skip


def recognised(opening: str, reader: str = "") -> str:
    """
    What the opening of a file looks like and what to do with it, as an addition to an error; "" if nothing is known.

    `reader` is the experiment as which the file was read: its own tool is not named.

    >>> recognised("sockperf: ====> avg-latency=40.617")[:32]
    ' (this looks like sockperf: put '
    """
    for name, pattern, advice in TOOLS:
        if pattern.search(opening[:OPENING_BYTES]):
            return "" if f"read_files(paths, {reader!r})" == advice else f" (this looks like {name}: {advice})"
    return ""


def recognised_file(path, reader: str) -> str:
    """As `recognised`, for the opening of a file; "" if it cannot be read as text."""
    try:
        with decompressed(path) as (_, file):
            return recognised(as_utf8(file).read(OPENING_BYTES).decode("utf-8", "replace").lstrip("\ufeff"), reader)
    except RawDataError:
        return ""
