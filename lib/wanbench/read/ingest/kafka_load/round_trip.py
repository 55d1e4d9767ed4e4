"""
Read Kafka's EndToEndLatency: tables round_trips and quantiles.

The tool sends one record, reads it back, and only then sends the next: a round trip of two network paths and no load.
Its quantiles are truncated to whole milliseconds; forks print four decimals. It does not print the number of records;
its progress, the latency of every thousandth record, is dropped.
"""

from __future__ import annotations

import re

from .complaints import NO_SUMMARY, Complaints
from .lines import Line
from .numbers import REAL, real

TOOL = "round trip"
QUANTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
PROGRESS_RECORDS = 1_000
"""The tool prints its progress once per this many records."""

_DECIMALS = 4
"""The tool's number of decimals of the mean."""

_MEAN = re.compile(rf"Avg latency: (?P<mean>{REAL}) ms")
_LATENCY = r"\d{1,18}(?:[.,]\d{4})?"
_QUANTILES = re.compile(
    rf"Percentiles: 50th = (?P<p50>{_LATENCY}), 99th = (?P<p99>{_LATENCY}), 99\.9th = (?P<p999>{_LATENCY})(?![\d.,])"
)
_PROGRESS = re.compile(r"(?<![\d.])(?P<record>\d{1,19})\t\d{1,30}\.\d{1,30}(?:E-?\d{1,3})?")


def find(text: str, at: int, whole_line: bool) -> tuple[int, int, dict] | None:
    """Find the next figures of this tool from `at` on: start, end and event."""
    matches = []
    if "Avg" in text and (line := _MEAN.search(text, at)):
        try:
            value = real(line["mean"], _DECIMALS)
            if value is None or value >= 0:
                matches.append((line.start(), line.end(), {"kind": "mean", "value": value}))
        except ValueError:
            pass
    line = _QUANTILES.search(text, at) if "Percentiles" in text else None
    if line and (whole_line or line.end() < len(text)):  # else the last number may be cut
        values = {name: float(line[name].replace(",", ".")) for name in QUANTILES}
        if list(values.values()) == sorted(values.values()):
            matches.append((line.start(), line.end(), {"kind": "quantiles", "values": values}))
    if "\t" in text and (line := _PROGRESS.search(text, at)) and int(line["record"]) % PROGRESS_RECORDS == 0:
        matches.append((line.start(), line.end(), {"kind": "progress", "record": int(line["record"])}))
    return min(matches, key=lambda match: match[0], default=None)


class RoundTripOutput:
    """The output of one run of the tool."""

    tool = TOOL

    def __init__(self):
        self.complaints = Complaints()
        self.mean: dict | None = None
        self.quantiles: dict | None = None
        self.record = -1

    def takes(self, event: dict) -> bool:
        """Whether the event can belong to this output; otherwise a new one begins."""
        if self.quantiles is not None:
            return False
        if event["kind"] == "progress":
            return self.mean is None and event["record"] > self.record
        return event["kind"] == "quantiles" or self.mean is None

    def add(self, event: dict, line: Line) -> None:
        """Add a line's values, as `find` returned them."""
        if event["kind"] == "mean":
            self.mean = event
        elif event["kind"] == "quantiles":
            self.quantiles = event["values"]
        else:
            self.record = event["record"]

    def rows(self, number: int) -> dict[str, list[dict]]:
        """Rows of the tables, without context."""
        missing = NO_SUMMARY if self.mean is None or self.quantiles is None else None
        values = self.quantiles or {}
        row = {f"{name}_latency_ms": value for name, value in values.items()}
        row |= {"mean_latency_ms": self.mean and self.mean["value"], "error": self.complaints.cell(missing)}
        quantiles = [
            {"what": TOOL, "window": None, "quantile": QUANTILES[name], "latency_ms": value}
            for name, value in values.items()
        ]
        return {"round_trips": [row], "quantiles": quantiles}
