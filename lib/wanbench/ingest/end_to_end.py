"""
Reads what Kafka's EndToEndLatency printed: tables round_trips and quantiles. Imports nothing that measures.

The tool sends one record, reads it back, and only then sends the next: a round trip of two network paths and no load.
Its quantiles are of whole milliseconds, cut off. It does not say how many records it sent; its progress, a line per
thousand records, is not kept, because these are single records.
"""

from __future__ import annotations

import re

from .kafka_lines import Line
from .kafka_messages import Complaints
from .kafka_numbers import REAL, real

WHAT = "round trip"
QUANTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
EVERY = 1_000
"""The tool prints its progress once in so many records."""

_DECIMALS = 4
_MEAN = re.compile(rf"Avg latency: (?P<mean>{REAL}) ms")
_QUANTILES = re.compile(
    r"Percentiles: 50th = (?P<p50>\d{1,18}), 99th = (?P<p99>\d{1,18}), 99\.9th = (?P<p999>\d{1,18})"
)
_PROGRESS = re.compile(r"(?<![\d.])(?P<record>\d{1,19})\t\d{1,30}\.\d{1,30}(?:E-?\d{1,3})?")


def find(text: str, at: int, whole_line: bool) -> tuple[int, int, dict] | None:
    """The first thing from `at` on that only this tool says: where it begins and ends, and what it is."""
    found = []
    if "Avg" in text and (line := _MEAN.search(text, at)):
        try:
            value = real(line["mean"], _DECIMALS)
            if value is None or value >= 0:
                found.append((line.start(), line.end(), {"kind": "mean", "value": value}))
        except ValueError:
            pass
    if (
        "Percentiles" in text
        and (line := _QUANTILES.search(text, at))
        and (whole_line or line.end() < len(text))
    ):
        values = {name: float(line[name]) for name in QUANTILES}
        if list(values.values()) == sorted(values.values()):
            found.append((line.start(), line.end(), {"kind": "quantiles", "values": values}))
    if "\t" in text and (line := _PROGRESS.search(text, at)) and int(line["record"]) % EVERY == 0:
        found.append((line.start(), line.end(), {"kind": "progress", "record": int(line["record"])}))
    return min(found, key=lambda each: each[0], default=None)


class RoundTrips:
    """One run of the tool, as it comes."""

    tool = WHAT

    def __init__(self):
        self.complaints = Complaints()
        self.mean: dict | None = None
        self.quantiles: dict | None = None
        self.record = -1

    @property
    def ended(self) -> bool:
        """Whether its last figures have come."""
        return self.quantiles is not None

    def takes(self, event: dict) -> bool:
        """Whether what comes can be more of this output, or is the next one's."""
        if event["kind"] == "progress":
            return self.mean is None and not self.ended and event["record"] > self.record
        return not self.ended and (event["kind"] == "quantiles" or self.mean is None)

    def add(self, event: dict, line: Line) -> None:
        """Take what `find` found."""
        if event["kind"] == "mean":
            self.mean = event
        elif event["kind"] == "quantiles":
            self.quantiles = event["values"]
        else:
            self.record = event["record"]

    def rows(self, number: int) -> dict[str, list[dict]]:
        """Rows of the tables, without context."""
        missing = None
        if self.mean is None or self.quantiles is None:
            missing = "no summary"
        values = self.quantiles or {}
        row = {f"{name}_latency_ms": value for name, value in values.items()}
        row |= {"mean_latency_ms": self.mean and self.mean["value"], "error": self.complaints.cell(missing)}
        quantiles = [
            {"what": WHAT, "window": None, "quantile": QUANTILES[name], "latency_ms": value}
            for name, value in values.items()
        ]
        return {"round_trips": [row], "quantiles": quantiles}


def read(source) -> dict:
    """
    Tables round_trips and quantiles of what EndToEndLatency printed, without their context.

    Raises
    ------
    RawDataError
        If the file holds nothing of it.

    Examples
    --------
    >>> found = read(b"0\\t61.2\\nAvg latency: 41,2031 ms\\n\\nPercentiles: 50th = 40, 99th = 52, 99.9th = 61\\n")
    >>> found["round_trips"][["mean_latency_ms", "p99_latency_ms"]].values.tolist()
    [[41.2031, 52.0]]
    >>> found["quantiles"].latency_ms.tolist()
    [40.0, 52.0, 61.0]
    """
    from .kafka_load import read_as

    return read_as(source, WHAT)
