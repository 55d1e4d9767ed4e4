"""
Read the output of one run of kafka-producer-perf-test or kafka-consumer-perf-test.

- The tools' MB are MiB. NaN and infinity (no records, no time) and negative values (the clock was set back) are null.
- Without a summary (the tool was stopped, or crashed) the row has null figures, and `error` has the reason.
- The producer tool computes percentiles from at most 500,000 latencies, in whole milliseconds. With --warmup-records it
  prints two summaries, of all records and of those after the warm-up. Both are rows; the first has `warmup` set.
- The columns of the consumer tool are those of its header. The duration of a run is the time for rebalances plus the
  time for fetches. With --show-detailed-stats the tool prints no summary and nothing after the last interval. The row
  then has the figures of that interval, or the number of records in the tool's metrics if larger; `error` says so.
"""

import re

from wanbench.errors import RawDataError
from wanbench.read.ingest.content import File
from wanbench.read.ingest.rows import Row

from .lines import NO_SUMMARY, WHOLE, Complaints, Line, real, real_with

MIB = 2**20
NO_NUMBERS = ("app-info:version", "app-info:commit-id")
METRIC = re.compile(
    r"(?P<metric>[A-Za-z][\w.-]*:[A-Za-z0-9][\w.-]*):\{(?P<subject>[^{}]*)\} *: "
    r"(?:(?P<value>-?\d{1,30}(?:[.,٫]\d+)?(?:E-?\d{1,3})?)|.*)\s*"
)


class Output:
    """
    The output of one run of a tool; a subclass names the `tool`, and parses the tool's figures in `take`.

    `complaints` has the errors and warnings, `metrics` the rows of table metrics, and `has_figures` says whether a line
    of figures was found.
    """

    tool: str

    def __init__(self, path: File):
        self.path, self.complaints, self.has_figures = path, Complaints(), False
        self.windows: list[Row] = []
        self.summary: Row | None = None
        self.metrics: list[Row] = []

    def feed(self, line: Line) -> None:
        """Add a line; raise RawDataError for the figures of a second run."""
        if self.take(line):
            self.complaints.other = None  # a line before figures does not explain why later figures are missing
        elif metric := METRIC.fullmatch(line.text):
            value = real(metric["value"] or "NaN")
            if metric["metric"] not in NO_NUMBERS and value is not None and abs(value) < float("inf"):
                row = {"metric": metric["metric"], "subject": metric["subject"], "value": value, "unit": ""}
                row |= {"source": self.tool, "cumulative": metric["metric"].endswith("-total")}
                self.metrics.append(row)
        else:
            self.complaints.add(line)

    def take(self, line: Line) -> bool:
        """Parse a line, and add its figures to this output; return whether the line is one of figures."""
        raise NotImplementedError

    def _set_summary(self, line: Line, row: Row) -> None:
        if self.summary is not None:
            raise RawDataError(self.path, line.number, line.text, "one run of the tool in a file")
        self.summary = row


def _amount(text: str, unit: float = 1.0) -> float | None:
    value = real(text)
    return None if value is None or value < 0 else value * unit


_LINE = (
    r"(?P<records>\d{{1,18}})(?P<steady> steady state)? records sent, (?P<rate>{rate}) records/sec "
    r"\((?P<mib>{two}) MB/sec\), (?P<mean>{of_ms}) ms avg latency, (?P<max>{of_ms})(?: ms)? max latency"
)
_WINDOW = re.compile(_LINE.format(rate=real_with(1), two=real_with(2), of_ms=real_with(1)) + r"\.\s*")
_SUMMARY = re.compile(
    _LINE.format(rate=real_with(6), two=real_with(2), of_ms=real_with(2))
    + r"(?:\.|, (?P<p50>\d{1,18}) ms 50th, (?P<p95>\d{1,18}) ms 95th, (?P<p99>\d{1,18}) ms 99th, "
    r"(?P<p999>\d{1,18}) ms 99\.9th\.?)\s*"
)
WARM_UP, STEADY = "Warmup first ", "In steady state."


class ProducerOutput(Output):
    """The parsed output of one kafka-producer-perf-test: figures of each window, the whole run and its steady state."""

    tool = "producer"

    def __init__(self, path: File):
        super().__init__(path)
        self.steady: Row | None = None
        self.warmup = self.in_steady_state = False

    def take(self, line: Line) -> bool:
        if line.text.startswith((WARM_UP, STEADY)):
            self.warmup, self.in_steady_state = True, line.text.startswith(STEADY)
            for window in self.windows:
                window["warmup"] = True
            return True
        if found := _WINDOW.fullmatch(line.text):
            row = self._figures(found) | {"printed_at_s": line.printed_at_s, "window": len(self.windows)}
            row["length_s"] = row["records"] / row["records_per_s"] if row["records_per_s"] else None
            self.windows.append(row | {"warmup": not self.in_steady_state if self.warmup else None})
        elif found := _SUMMARY.fullmatch(line.text):
            row = self._figures(found)
            row |= {f"{name}_latency_ms": float(found[name] or "nan") for name in ("p50", "p95", "p99", "p999")}
            if row["records"] == 0:
                row |= {name: None for name in row if name.endswith("_latency_ms")}
            if found["steady"] and self.steady is None:
                self.steady = row
            else:
                self._set_summary(line, row)
        self.has_figures |= bool(found)
        return bool(found)

    def rows(self, number: int) -> dict[str, list[Row]]:
        """Return rows by table, without context (run, test, regions, file), for producer `number` of its test."""
        same, rows = {"producer": number, "n_errors": self.complaints.n}, []
        with_warmup = self.steady is not None or self.warmup
        if with_warmup and self.summary is not None:
            rows.append(self.summary | same | {"warmup": True, "error": self.complaints.cell(None)})
        figures = self.steady if with_warmup else self.summary
        missing = None if figures else "no summary of the steady state" if rows else NO_SUMMARY
        rows.append((figures or {}) | same | {"warmup": False, "error": self.complaints.cell(missing)})
        for window in self.windows:  # not copied, as they may be many
            window["producer"] = number
        return {"producers": rows, "producer_windows": self.windows, "metrics": self.metrics}

    @staticmethod
    def _figures(found: re.Match[str]) -> Row:
        return {
            "records": int(found["records"]),
            "records_per_s": _amount(found["rate"]),
            "throughput_bps": _amount(found["mib"], 8 * MIB),
            "mean_latency_ms": _amount(found["mean"]),
            "max_latency_ms": _amount(found["max"]),
        }


TEXTS = ("time", "start.time", "end.time")
COUNTS = ("threadId", "data.consumed.in.nMsg", "rebalance.time.ms", "fetch.time.ms")
FIGURES = MB, MB_S, RECORDS, RECORDS_S = "data.consumed.in.MB", "MB.sec", "data.consumed.in.nMsg", "nMsg.sec"
_PATTERNS = {True: re.compile(WHOLE), False: re.compile(real_with(4))}
RECORDS_CONSUMED = "consumer-fetch-manager-metrics:records-consumed-total"


class ConsumerOutput(Output):
    """The output of one consumer."""

    tool = "consumer"
    _names: tuple[str, ...] = ()
    _n_texts = 0

    def take(self, line: Line) -> bool:
        fields = line.text.strip().split(", ")
        if MB in fields and set(FIGURES) <= set(fields):
            self._names = tuple(name for name in fields if name not in TEXTS)
            self._n_texts = len(fields) - len(self._names)
            return True
        texts, numbers = fields[: -len(self._names) or None], fields[-len(self._names) :]
        if not self._names or len(fields) < len(self._names) + self._n_texts:
            return False
        named = dict(zip(self._names, numbers, strict=True))
        if not all(_PATTERNS[name in COUNTS].fullmatch(text) for name, text in named.items()):
            return False
        values: Row = {name: int(text) if name in COUNTS else real(text) for name, text in named.items()}
        row = {"records": values[RECORDS], "bytes": values[MB] and values[MB] * MIB}
        row |= {"throughput_bps": _amount(named[MB_S], 8 * MIB), "records_per_s": _amount(named[RECORDS_S])}
        if min(row["records"], row["bytes"] or 0) < 0:
            return False
        if self._n_texts == 1:
            row |= {"at": ", ".join(texts), "printed_at_s": line.printed_at_s, "window": len(self.windows)}
            self.windows.append(row)
        else:
            duration_ms = values.get("rebalance.time.ms", float("nan")) + values.get("fetch.time.ms", float("nan"))
            self._set_summary(line, row | {"duration_s": duration_ms / 1000 if duration_ms >= 0 else None})
        self.has_figures = True
        return True

    def rows(self, number: int) -> dict[str, list[Row]]:
        """Return rows by table, without context (run, test, regions, file), for consumer `number` of its test."""
        row, missing = self.summary or {}, None if self.summary else NO_SUMMARY
        of_client = (row for row in self.metrics if row["metric"] == RECORDS_CONSUMED and "," not in row["subject"])
        consumed = max((int(row["value"]) for row in of_client), default=0)
        if not row and (self.windows or consumed):
            missing = "no summary with --show-detailed-stats; the records are a lower bound"
            row = {name: self.windows[-1][name] for name in ("bytes", "records")} if self.windows else {}
            row = {"records": consumed} if consumed > row.get("records", -1) else row
        row = row | {"consumer": number, "n_errors": self.complaints.n, "error": self.complaints.cell(missing)}
        for window in self.windows:
            window["consumer"] = number
        return {"consumers": [row], "consumer_windows": self.windows, "metrics": self.metrics}


OUTPUTS = {output.tool: output for output in (ProducerOutput, ConsumerOutput)}
