"""
Read output of kafka-producer-perf-test (Kafka 1.x to 4.x) and EndToEndLatency into tables producers, producer_windows,
round_trips and quantiles.

- What the tools call MB are MiB. The producer tool computes percentiles from at most 500,000 latencies, in whole
  milliseconds.
- Without a summary (the tool was stopped, or crashed) the row has null figures, and `error` has the reason.
- With --warmup-records the tool prints two summaries, of all records and of those after the warm-up. Both are rows; the
  first has `warmup` set.
- NaN and infinity (no records, no time) are null, and so are negative values (the clock was set back). A summary of no
  records has no latencies.
- A line whose percentiles or maximum are not in ascending order cannot come from the tool, and counts as an error.
- EndToEndLatency sends a record, reads it back, and only then sends the next: a round trip over two network paths,
  without load. Its quantiles are truncated to whole milliseconds; forks print four decimals. It does not print the
  number of records; its progress, the latency of every thousandth record, is dropped.
"""

import re

from .lines import NO_SUMMARY, REAL, WHOLE, Complaints, Line, real, whole

MIB_BITS = 8 * 2**20
ROUNDING_MS = 0.051
"""Amount by which a printed mean may exceed the maximum, because windows print both with one decimal."""

_COUNT = rf"(?:^\d{{1,3}}(?: \d{{3}}){{1,5}}|(?<!\d){WHOLE})"
_LINE = re.compile(
    rf"(?P<records>{_COUNT})(?P<steady> steady state)? records sent, (?P<rate>{REAL}) records/sec "
    rf"\((?P<mib>{REAL}) MB/sec\), (?P<mean>{REAL}) ms avg latency, (?P<max>{REAL})(?: ms)? max latency"
    r"(?:, (?P<p50>\d{1,18}) ms 50th, (?P<p95>\d{1,18}) ms 95th, (?P<p99>\d{1,18}) ms 99th, "
    r"(?P<p999>\d{1,18}) ms 99\.9th)?(?P<end>\.?)(?!,)"
)
_WARMUP = re.compile(r"Warmup first \d+ records\. Steady state results will print[^.]*\.")
_STEADY = re.compile(r"In steady state\.")
PERCENTILES = ("p50", "p95", "p99", "p999")


def find_output(text: str, at: int, whole_line: bool) -> tuple[int, int, dict] | None:
    """Find the next figures of this tool from position `at` on; return their start, end and event."""
    found = None
    if (line := _LINE.match(text, at)) and (event := _event(line, whole_line or line.end() < len(text))):
        return line.start(), line.end(), event
    for line in _LINE.finditer(text, at) if " records sent, " in text else ():
        if event := _event(line, whole_line or line.end() < len(text)):
            found = line.start(), line.end(), event
            break
    for pattern, word, kind in ((_WARMUP, "Warmup", "warm-up"), (_STEADY, "In steady", "steady state")):
        if word in text and (line := pattern.search(text, at)) and (found is None or line.start() < found[0]):
            found = (line.start(), line.end(), {"kind": kind})
    return found


def alone(text: str, whole_line: bool) -> dict | None:
    """Return the event of a line that consists of this tool's figures only, the usual case; otherwise None."""
    line = _LINE.fullmatch(text) if " records sent, " in text else None
    return line and _event(line, whole_line)


def _event(line: re.Match, ended: bool) -> dict | None:
    """Return the event of a line of figures; None if it is truncated or impossible."""
    summary = bool(line["p50"] or line["steady"] or re.search(r"[.,]\d{6}$", line["rate"]))
    if line["p50"] is None and not line["end"] and not ended:
        return None
    try:
        row = {
            "records": whole(line["records"].replace(" ", "\u00a0")),
            "records_per_s": _amount(line["rate"], 6 if summary else 1),
            "throughput_bps": _amount(line["mib"], 2, MIB_BITS),
            "mean_latency_ms": _amount(line["mean"], 2 if summary else 1),
            "max_latency_ms": _amount(line["max"], 2 if summary else 1),
        }
    except ValueError:
        return None
    if summary:
        row |= {f"{name}_latency_ms": line[name] and float(line[name]) for name in PERCENTILES}
        if row["records"] == 0:
            row |= {name: None for name in row if name.endswith("_latency_ms")}
    if row["records"] < 0 or not _in_order(row):
        return None
    kind = "steady summary" if line["steady"] else "summary" if summary else "window"
    return {"kind": kind, "row": row}


def _amount(text: str, decimals: int, unit: float = 1.0) -> float | None:
    value = real(text.replace(" ", "\u00a0"), decimals)
    return None if value is None or value < 0 else value * unit


def _in_order(row: dict) -> bool:
    mean, maximum = row["mean_latency_ms"], row["max_latency_ms"]
    rising = [*(row.get(f"{name}_latency_ms") for name in PERCENTILES), maximum]
    rising = [value for value in rising if value is not None]
    return rising == sorted(rising) and (None in (mean, maximum) or mean <= maximum + ROUNDING_MS)


class ProducerOutput:
    """The output of one producer."""

    tool = "producer"

    def __init__(self):
        self.complaints = Complaints()
        self.windows: list[dict] = []
        self.summary: dict | None = None
        self.steady: dict | None = None
        self.warmup = self.in_steady_state = False

    def takes(self, event: dict) -> bool:
        """Return whether the event can belong to this output; otherwise a new output begins."""
        if event["kind"] == "steady summary":
            return self.steady is None
        return self.summary is None and self.steady is None

    def add(self, event: dict, line: Line) -> None:
        """Add a line's values, as `find_output` returned them."""
        kind = event["kind"]
        if kind == "warm-up":
            self.warmup = True
        elif kind == "steady state":
            self.in_steady_state = True
            for window in self.windows:
                window["warmup"] = True
        elif kind == "summary":
            self.summary = event["row"]
        elif kind == "steady summary":
            self.steady = event["row"]
        else:
            has_warmup = self.warmup or self.in_steady_state
            warmup = not self.in_steady_state if has_warmup else None
            event["row"].update(printed_at_s=line.printed_at_s, warmup=warmup)
            self.windows.append(event["row"])

    def metric(self, row: dict) -> None:
        """Ignore a row of table metrics that this producer printed."""

    def rows(self, number: int) -> dict[str, list[dict]]:
        """Return the tables' rows, without context columns, for producer `number` of its test."""
        for window, row in enumerate(self.windows):
            length_s = row["records"] / row["records_per_s"] if row["records_per_s"] else None
            row.update(producer=number, window=window, length_s=length_s)
        same = {"producer": number, "n_errors": self.complaints.n}
        rows = []
        with_warmup = self.steady is not None or self.warmup or self.in_steady_state
        if with_warmup and self.summary is not None:
            rows.append(self.summary | same | {"warmup": True, "error": self._error(None)})
        figures = self.steady if with_warmup else self.summary
        missing = None if figures else "no summary of the steady state" if rows else NO_SUMMARY
        rows.append((figures or {}) | same | {"warmup": False, "error": self._error(missing)})
        return {"producers": rows, "producer_windows": self.windows}

    def _error(self, missing: str | None) -> str | None:
        total = self.summary or self.steady
        n = sum(window["records"] for window in self.windows)
        if missing is None and self.complaints.n == 0 and n > total["records"]:
            return f"the windows have {n} records, but the summary {total['records']}: two outputs are mixed"
        return self.complaints.cell(missing)


ROUND_TRIP = "round trip"
QUANTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
PROGRESS_RECORDS = 1_000
"""Number of records after which the tool prints its progress."""

_MEAN_DECIMALS = 4
"""Number of decimals with which the tool prints the mean."""

_MEAN = re.compile(rf"Avg latency: (?P<mean>{REAL}) ms")
_LATENCY = r"\d{1,18}(?:[.,]\d{4})?"
_QUANTILES = re.compile(
    rf"Percentiles: 50th = (?P<p50>{_LATENCY}), 99th = (?P<p99>{_LATENCY}), 99\.9th = (?P<p999>{_LATENCY})(?![\d.,])"
)
_PROGRESS = re.compile(r"(?<![\d.])(?P<record>\d{1,19})\t\d{1,30}\.\d{1,30}(?:E-?\d{1,3})?")


def find_round_trip(text: str, at: int, whole_line: bool) -> tuple[int, int, dict] | None:
    """Find the next figures of EndToEndLatency from position `at` on; return their start, end and event."""
    matches = []
    if "Avg" in text and (line := _MEAN.search(text, at)):
        try:
            value = real(line["mean"], _MEAN_DECIMALS)
            if value is None or value >= 0:
                matches.append((line.start(), line.end(), {"kind": "mean", "value": value}))
        except ValueError:
            pass
    line = _QUANTILES.search(text, at) if "Percentiles" in text else None
    if line and (whole_line or line.end() < len(text)):  # else the last number may be truncated
        values = {name: float(line[name].replace(",", ".")) for name in QUANTILES}
        if list(values.values()) == sorted(values.values()):
            matches.append((line.start(), line.end(), {"kind": "quantiles", "values": values}))
    if "\t" in text and (line := _PROGRESS.search(text, at)) and int(line["record"]) % PROGRESS_RECORDS == 0:
        matches.append((line.start(), line.end(), {"kind": "progress", "record": int(line["record"])}))
    return min(matches, key=lambda match: match[0], default=None)


class RoundTripOutput:
    """The output of one run of EndToEndLatency."""

    tool = ROUND_TRIP

    def __init__(self):
        self.complaints = Complaints()
        self.mean: dict | None = None
        self.quantiles: dict | None = None
        self.record = -1

    def takes(self, event: dict) -> bool:
        if self.quantiles is not None:
            return False
        if event["kind"] == "progress":
            return self.mean is None and event["record"] > self.record
        return event["kind"] == "quantiles" or self.mean is None

    def add(self, event: dict, line: Line) -> None:
        if event["kind"] == "mean":
            self.mean = event
        elif event["kind"] == "quantiles":
            self.quantiles = event["values"]
        else:
            self.record = event["record"]

    def rows(self, number: int) -> dict[str, list[dict]]:
        missing = NO_SUMMARY if self.mean is None or self.quantiles is None else None
        values = self.quantiles or {}
        row = {f"{name}_latency_ms": value for name, value in values.items()}
        row |= {"mean_latency_ms": self.mean and self.mean["value"], "error": self.complaints.cell(missing)}
        quantiles = [
            {"what": ROUND_TRIP, "window": None, "quantile": QUANTILES[name], "latency_ms": value}
            for name, value in values.items()
        ]
        return {"round_trips": [row], "quantiles": quantiles}
