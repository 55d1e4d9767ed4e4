"""
Read output of kafka-consumer-perf-test, Kafka 1.x to 4.x, into tables consumers and consumer_windows.

- The header names the columns, whose order differs in the share consumer (4.x) and older tools; without a header, the
  number and form of the figures identify them.
- What the tool calls MB are MiB. Times are kept as printed, because their time zone is unknown and --date-format allows
  any form.
- Kafka 2.x adds the Unix time to the rebalance time and subtracts it from the fetch time (1593109327000 and
  -1593109326000 ms). Both times are then null, and so are rates per fetch time; the sum of the two printed times is
  still the duration.
- The duration is that sum or, if the sum does not fit the printed rate, the end minus the start, if that fits.
- With --show-detailed-stats the tool prints no summary and nothing after its last interval. The row then has the
  figures of that interval, or the number of records in the tool's metrics if it is larger; `error` says so.
- The share consumer's figures of single members are dropped, because its summary covers all members; without a summary
  the row is empty.
- NaN and infinity (nothing consumed, no time) are null.
"""

import re
from datetime import datetime
from functools import cache

from .lines import NO_SUMMARY, WHOLE, Complaints, Line, must_search, real, real_with, whole

MIB = 2**20
EPOCH_MS = 1e11
"""A rebalance of more than three years must include the Unix time."""

FITS = 0.01
"""A duration fits if rate times duration equals the records within 1 %, far more than rounding errors."""

CLOCK_S = 0.002
"""Maximum error of the difference of two printed times: a millisecond each."""

DATE = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}"
DATE_FORM = "%Y-%m-%d %H:%M:%S:%f"
START, END, TIME, THREAD = "start.time", "end.time", "time", "threadId"
MB, MB_S, RECORDS, RECORDS_S = "data.consumed.in.MB", "MB.sec", "data.consumed.in.nMsg", "nMsg.sec"
REBALANCE, FETCH, FETCH_MB_S, FETCH_RECORDS_S = (
    "rebalance.time.ms", "fetch.time.ms", "fetch.MB.sec", "fetch.nMsg.sec",
)  # fmt: skip
FIELDS = {
    START: None, END: None, TIME: None, THREAD: int, "fetch.size": int, MB: float, MB_S: float, RECORDS: int,
    RECORDS_S: float, REBALANCE: int, FETCH: int, FETCH_MB_S: float, FETCH_RECORDS_S: float,
}  # fmt: skip
FIGURES = (MB, MB_S, RECORDS, RECORDS_S)
RECORDS_CONSUMED = "consumer-fetch-manager-metrics:records-consumed-total"
LAYOUTS = (
    *(
        (*first, *FIGURES, *more)
        for more in ((REBALANCE, FETCH, FETCH_MB_S, FETCH_RECORDS_S), (REBALANCE, FETCH), ())
        for first in ((START, END), (TIME, THREAD))
    ),
    (START, END, MB, MB_S, RECORDS_S, RECORDS, FETCH),
)
"""Possible columns of a line without a header; the last are the share consumer's."""

LONGEST_DATES = 130
"""Maximum length of two dates in any --date-format; it limits the search."""

_DECIMALS = 4
"""Number of decimals that the tool prints."""

_NAMES = "|".join(re.escape(name) for name in sorted(FIELDS, key=len, reverse=True))
_HEADER = re.compile(rf"(?:{_NAMES})(?:, (?:{_NAMES}))*, (?:{_NAMES})")
_OF_A_MEMBER = re.compile(r"Share consumer \d{1,9} consumption metrics- .{1,300}|\d.{1,300} for share consumer \d{1,9}")
_TWO_FIGURES = re.compile(r"(?:[\dN∞]|ity), -?[\dNI∞]")
_SHAPE = re.compile(r"[^\W\d_]+|\d+")


def find_output(text: str, at: int, header: tuple[str, ...] | None, matches: dict) -> tuple[int, int, dict] | None:
    """
    Find the tool's next figures from position `at` on; return their start, end and event.

    `matches` caches searches of this line.
    """
    if must_search(matches, "two figures", at):
        two = _TWO_FIGURES.search(text, at)
        matches["two figures"] = two and two.span()
    if matches["two figures"] is None and MB not in text:
        return None
    if "hare consumer " in text and (line := _OF_A_MEMBER.fullmatch(text, at)):
        return line.start(), line.end(), {"kind": "progress"}
    if MB in text and (line := _HEADER.search(text, at)):
        names = tuple(line[0].split(", "))
        if MB in names and RECORDS in names and len(set(names)) == len(names):
            return line.start(), line.end(), {"kind": "header", "names": names}
    for names in _layouts(header):
        if must_search(matches, names, at):
            line = _pattern(names).search(text, at)
            event = line and _event(names, line.groups())
            matches[names] = (line.start(), line.end(), event) if event is not None else None
        if matches[names] is not None:
            return matches[names]
    for names in _layouts(header):
        dates = tuple(name for name in names if FIELDS[name] is None)
        if names[: len(dates)] != dates or not (header or START in names):
            continue
        before = rf"(?P<dates>.{{1,{LONGEST_DATES}}}), " if dates else ""
        line = _pattern(names[len(dates) :], before).fullmatch(text, at)
        times = line and (_dates(line["dates"], len(dates)) if dates else ())
        event = None if times is None else _event(names, (*times, *line.groups()[len(dates) > 0 :]))
        if event is not None:
            return line.start(), line.end(), event
    return None


def _layouts(header) -> tuple[tuple[str, ...], ...]:
    if header is None:
        return LAYOUTS
    if TIME in header and THREAD not in header:  # old tools print the thread, but not in the header
        at = header.index(TIME) + 1
        return ((*header[:at], THREAD, *header[at:]), header)
    return (header,)


@cache
def _pattern(names: tuple[str, ...], before: str = "") -> re.Pattern:
    kinds = {None: DATE, int: WHOLE, float: real_with(_DECIMALS)}
    fields = ", ".join(f"({kinds[FIELDS[name]]})" for name in names)
    alone = r"(?<![\d.,-])" if not before and FIELDS[names[0]] is not None else ""
    return re.compile(rf"{alone}{before}{fields}(?!, ?[-\d])(?![.,]\d)")


def _dates(text: str, n: int) -> tuple[str, ...] | None:
    """Split a string into `n` times of the same format; None if it is not possible."""
    ends = [match.start() for match in re.finditer(", ", text)] if n == 2 else [len(text)]
    for end in ends:
        times = (text[:end], text[end + 2 :])[:n]
        shapes = {_SHAPE.sub(lambda part: "9" if part[0].isdigit() else "a", time) for time in times}
        if len(shapes) == 1 and "9" in shapes.pop():
            return times
    return None


def _event(names, fields) -> dict | None:
    """Return the event of a line of figures; None if a value is impossible."""
    parse = {None: str, int: whole, float: lambda text: real(text, _DECIMALS)}
    try:
        values = {name: parse[FIELDS[name]](text) for name, text in zip(names, fields, strict=True)}
    except ValueError:
        return None
    if any((values.get(name) or 0) < 0 for name in (*FIGURES, THREAD)):
        return None
    return {"kind": "window" if TIME in names else "summary", "values": values}


class ConsumerOutput:
    """The output of one consumer."""

    tool = "consumer"

    def __init__(self):
        self.complaints = Complaints()
        self.windows: dict[int, list[dict]] = {}
        self.summary: dict | None = None
        self.consumed: int | None = None
        self.begun = False

    def takes(self, event: dict) -> bool:
        if event["kind"] == "header":
            return not self.begun
        return self.summary is None and (event["kind"] == "window" or not self.windows)

    def add(self, event: dict, line: Line) -> None:
        self.begun = True
        if event["kind"] == "summary":
            self.summary = event["values"]
        elif event["kind"] == "window":
            values = event["values"]
            self.windows.setdefault(values.get(THREAD, 0), []).append(_window(values, line))

    def metric(self, row: dict) -> None:
        alone = row["subject"].startswith("client-id=") and "," not in row["subject"]
        if row["metric"] == RECORDS_CONSUMED and alone and row["value"] >= 0:
            self.consumed = int(row["value"])

    def rows(self, number: int) -> dict[str, list[dict]]:
        """Return the tables' rows for consumer `number` of its test; each thread of an old tool is a consumer."""
        if self.summary is not None:
            row, contradiction = _summary(self.summary)
            error = self.complaints.cell(None) or contradiction
            return {"consumers": [row | self._about(number, error)], "consumer_windows": []}
        missing = NO_SUMMARY
        if self.windows or self.consumed is not None:
            missing = "no summary with --show-detailed-stats; the records are a lower bound"
        error = self.complaints.cell(missing)
        rows, windows = [], []
        for consumer, thread in enumerate(sorted(self.windows), start=number):
            last = self.windows[thread][-1]
            row = {"ended_at": last["at"], "bytes": last["bytes"], "records": last["records"]}
            if len(self.windows) == 1 and (self.consumed or 0) > last["records"]:
                row = {"records": self.consumed}
            rows.append(row | self._about(consumer, error))
            for window, row in enumerate(self.windows[thread]):
                row.update(consumer=consumer, window=window)
            windows += self.windows[thread]
        alone = {"records": self.consumed} | self._about(number, error)
        return {"consumers": rows or [alone], "consumer_windows": windows}

    def _about(self, number, error) -> dict:
        return {"consumer": number, "n_errors": self.complaints.n, "error": error}


def _window(values: dict, line: Line) -> dict:
    rebalance = values.get(REBALANCE)
    return _figures(values) | {
        "at": values.get(TIME),
        "printed_at_s": line.printed_at_s,
        "rebalance_ms": None if rebalance is None or not 0 <= rebalance < EPOCH_MS else float(rebalance),
    }


def _summary(values: dict) -> tuple[dict, str | None]:
    rebalance, fetch = values.get(REBALANCE), values.get(FETCH)
    both = None not in (rebalance, fetch) and 0 <= rebalance < EPOCH_MS and fetch >= 0
    fetch_only = rebalance is None and fetch is not None and 0 <= fetch < EPOCH_MS
    duration, contradiction = _duration_s(values)
    fetch_rate = values.get(FETCH_MB_S) if both else None
    row = {"started_at": values.get(START), "ended_at": values.get(END), "duration_s": duration}
    row |= {
        "rebalance_ms": float(rebalance) if both else None,
        "fetch_ms": float(fetch) if both or fetch_only else None,
    }
    row["fetch_throughput_bps"] = None if fetch_rate is None or fetch_rate < 0 else 8 * MIB * fetch_rate
    return _figures(values) | row, contradiction


def _figures(values: dict) -> dict:
    rate = values.get(MB_S)
    return {
        "bytes": None if values[MB] is None else values[MB] * MIB,
        "records": values[RECORDS],
        "throughput_bps": None if rate is None else 8 * MIB * rate,
        "records_per_s": values.get(RECORDS_S),
    }


def _duration_s(values: dict) -> tuple[float | None, str | None]:
    """Return the duration, or None and an error if no printed time fits records and rate."""
    times = [(values[REBALANCE] + values[FETCH]) / 1000] if REBALANCE in values and FETCH in values else []
    try:
        start, end = (datetime.strptime(values[name], DATE_FORM) for name in (START, END))
        times.append((end - start).total_seconds())
    except (KeyError, ValueError):
        pass
    times = [time for time in times if time >= 0]
    records, rate = values[RECORDS], values.get(RECORDS_S)
    if not times or not records or not rate:
        return (times[0] if times else None), None
    for time in times:
        if abs(records - rate * time) <= FITS * records + CLOCK_S * rate:
            return time, None
    return None, f"{records} records at {rate:g} records/s do not take {times[0]:g} s"
