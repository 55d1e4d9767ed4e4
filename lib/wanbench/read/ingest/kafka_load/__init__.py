"""
Read logs of Kafka's performance tools into tables of producers, consumers, their intervals and metrics.

A log has the output of one run of kafka-producer-perf-test or kafka-consumer-perf-test. Lines with results are called
*figures*. Column `n_errors` counts errors, warnings and unreadable figures, and `error` has the first of them; other
lines may come from a script and are ignored. Percentiles are kept as printed, one per process, and are never averaged.

Three optional files belong to `<stem>.producer-0.txt`: `<stem>.producer-0.lines.json` has the time of each line,
`<stem>.producer-0.stderr.txt` has further errors and warnings, and `<stem>.times.json` says when the warm-up of the
whole load ended, and whether its producers were stopped on purpose. A file without figures becomes a row if its name
identifies the tool, as in this example, and is rejected otherwise.
"""

from itertools import chain
from typing import Any

import pandas as pd

from wanbench.errors import RawDataError
from wanbench.read.ingest.content import File, Source, plain_name, read_text
from wanbench.read.ingest.rows import fitting

from .files import NAME, LoadTimes, read_batches, read_times, sibling, times_of_lines
from .lines import LARGEST_BYTES, OTHERWISE, Line, lines_of
from .outputs import OUTPUTS, ConsumerOutput, ProducerOutput

__all__ = ["read", "read_batches", "read_times"]

WANTED = "figures of kafka-producer-perf-test or kafka-consumer-perf-test"


def read(source: Source) -> dict[str, pd.DataFrame]:
    """
    Read a log, given as a path or bytes, into the tables of its tool, without context (run, test, regions, file).

    The number of the producer or consumer comes from the file's name (`<stem>.producer-2.txt`), or is 0. Raise
    RawDataError if the file has another name and no figures, if it has figures of several runs, or if the log or one of
    its three optional files is unreadable.

    >>> log = b"500 records sent, 99.9 records/sec (0.10 MB/sec), 2.5 ms avg latency, 9.0 ms max latency.\\n"
    >>> tables = read(log + b"java.net.ConnectException: refused\\n")
    >>> tables["producer_windows"][["records", "mean_latency_ms"]].values.tolist()
    [[500.0, 2.5]]
    >>> tables["producers"].error[0]
    'no summary: java.net.ConnectException: refused'
    """
    path, text = _text(source)
    texts: list[tuple[Any, ...]] = [(path, text, times_of_lines(source))]
    if stderr := sibling(source, ".stderr.txt"):
        texts.append(_text(stderr))
    named = NAME.search(plain_name(path))
    output = output_of(texts, named and named["tool"])
    times, number = LoadTimes.of_log(source), int(named["number"]) if named else 0
    output.complaints.stopped = times.stopped and output.tool == "producer"
    rows = output.rows(number)
    for row in (*rows.get("consumers", ()), *rows.get("consumer_windows", ())):
        row["group"] = int(named["group"]) if named and named["group"] else None
    windows = rows.get("producer_windows", ())
    for row, behind_s in zip(windows, times.behind_s(windows), strict=True):
        row["warmup"] = times.warmup(row) if row["warmup"] is None else row["warmup"]
        row["behind_s"] = behind_s
    for row in rows["metrics"]:
        row["host"] = f"{output.tool} {number}"
    return {name: fitting(path, name, found) for name, found in rows.items()}


def output_of(texts: list[tuple[Any, ...]], tool: str | None = None) -> ProducerOutput | ConsumerOutput:
    """
    Parse texts as the output of `tool`; without `tool`, of the tool to which the first line with figures belongs.

    `texts` has the arguments of `lines_of` for each text. Without `tool`, the texts are split into lines twice, so that
    no lines are kept in memory, and RawDataError is raised if no line has figures.
    """

    def lines():
        return chain.from_iterable(lines_of(*text) for text in texts)

    path = texts[0][0]
    if tool is None:
        tried = [kind(path) for kind in OUTPUTS.values()]
        tool = next((one.tool for line in lines() for one in tried if one.take(line) and one.has_figures), None)
    if tool is None:
        first = next((line for line in lines() if line.text.strip()), Line(None, "an empty file", True, None))
        raise RawDataError(path, first.number, first.text.strip(), WANTED)
    output = OUTPUTS[tool](path)
    for line in lines():
        output.feed(line)
    return output


def _text(source: Source) -> tuple[File, str]:
    return read_text(source, most_bytes=LARGEST_BYTES, otherwise=OTHERWISE)
