"""
Reads what kafka-consumer-perf-test printed, Kafka 1.x to 4.x: tables consumers and consumer_windows. Imports nothing
that measures.

- Columns go by the header where there is one, so that those of the share consumer (4.x) and of older tools, in other
  orders, are read right; without header by their number and form.
- MB are MiB. Times are kept as printed: their zone is not known, and --date-format may have given them any form.
- Kafka 2.x adds the Unix epoch to the time of rebalances and takes it off the time of fetches (1593109327000 and
  -1593109326000 ms). Both are then null, and so are rates per fetch time; their sum is still the duration.
- The duration is that sum, else the difference of both times, whichever fits the printed rate.
- With --show-detailed-stats the tool prints no summary: the row has what was consumed by its last interval, and
  `error` says so.
- NaN and infinity (nothing consumed, no time) are null.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache

from .kafka_lines import Line
from .kafka_numbers import WHOLE, real, real_with, whole
from .kafka_words import Complaints

MIB = 2**20
EPOCH_MS = 1e11
FITS, CLOCK_S = 0.01, 0.002
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
LAYOUTS = tuple(
    (*first, *FIGURES, *more)
    for more in ((REBALANCE, FETCH, FETCH_MB_S, FETCH_RECORDS_S), (REBALANCE, FETCH), ())
    for first in ((START, END), (TIME, THREAD))
)
_DECIMALS = 4
_NAMES = "|".join(re.escape(name) for name in sorted(FIELDS, key=len, reverse=True))
_HEADER = re.compile(rf"(?:{_NAMES})(?:, (?:{_NAMES}))*, (?:{_NAMES})")
_SHAPE = re.compile(r"[^\W\d_]+|\d+")


def find(text: str, at: int, header: tuple[str, ...] | None) -> tuple[int, int, dict] | None:
    """The first thing from `at` on that only this tool says: where it begins and ends, and what it is."""
    if text.count(", ") < 3:
        return None
    if MB in text and (line := _HEADER.search(text, at)):
        names = tuple(line[0].split(", "))
        if MB in names and RECORDS in names and len(set(names)) == len(names):
            return line.start(), line.end(), {"kind": "header", "names": names}
    for names in _layouts(header):
        if line := _pattern(names, DATE).search(text, at):
            event = _event(names, line)
            if event is not None:
                return line.start(), line.end(), event
    for names in _layouts(header):
        line = _pattern(names, r"[^,](?:.{0,60}?[^, ])??").fullmatch(text, at)
        if line and (header or START in names) and _are_dates(names, line):
            event = _event(names, line)
            if event is not None:
                return line.start(), line.end(), event
    return None


def _layouts(header) -> tuple[tuple[str, ...], ...]:
    if header is None:
        return LAYOUTS
    if TIME in header and THREAD not in header:  # old tools print it and do not say so
        at = header.index(TIME) + 1
        return ((*header[:at], THREAD, *header[at:]), header)
    return (header,)


@cache
def _pattern(names: tuple[str, ...], date: str) -> re.Pattern:
    kinds = {None: date, int: WHOLE, float: real_with(_DECIMALS)}
    fields = ", ".join(f"({kinds[FIELDS[name]]})" for name in names)
    return re.compile(
        rf"(?<![\d.,-]){fields}(?!, ?[-\d])(?![.,]\d)" if date != DATE else rf"{fields}(?!, ?[-\d])(?![.,]\d)"
    )


def _are_dates(names, line) -> bool:
    """Whether both times are of one form, as any --date-format gives them."""
    found = dict(zip(names, line.groups(), strict=True))
    times = [found[name] for name in (START, END, TIME) if name in found]
    shapes = {_SHAPE.sub(lambda part: "9" if part[0].isdigit() else "a", time) for time in times}
    return len(shapes) <= 1 and all(any(c.isdigit() for c in time) for time in times)


def _event(names, line) -> dict | None:
    """What a line of figures says; None if one of them cannot be."""
    found: dict = {}
    try:
        for name, text in zip(names, line.groups(), strict=True):
            kind = FIELDS[name]
            found[name] = text if kind is None else whole(text) if kind is int else real(text, _DECIMALS)
    except ValueError:
        return None
    if any((found.get(name) or 0) < 0 for name in (*FIGURES, THREAD)):
        return None
    return {"kind": "window" if TIME in names else "summary", "found": found}


class ConsumerOutput:
    """One consumer's output, as it comes."""

    tool = "consumer"

    def __init__(self):
        self.complaints = Complaints()
        self.windows: dict[int, list[dict]] = {}
        self.summary: dict | None = None
        self.begun = False

    @property
    def ended(self) -> bool:
        """Whether its summary has come."""
        return self.summary is not None

    def takes(self, event: dict) -> bool:
        """Whether what comes can be more of this output, or is the next one's."""
        if event["kind"] == "header":
            return not self.begun
        return not self.ended and (event["kind"] == "window" or not self.windows)

    def add(self, event: dict, line: Line) -> None:
        """Take what `find` found."""
        self.begun = True
        if event["kind"] == "summary":
            self.summary = event["found"]
        elif event["kind"] == "window":
            found = event["found"]
            self.windows.setdefault(found.get(THREAD, 0), []).append(_window(found, line))

    def rows(self, number: int) -> dict[str, list[dict]]:
        """
        Rows of the tables, without context; `number` is the consumer's in its test. Threads of old tools, which count
        each for itself, are consumers of their own.
        """
        if self.summary is not None:
            row, contradiction = _summary(self.summary)
            error = self.complaints.cell(None) or contradiction
            return {"consumers": [row | self._about(number, error)], "consumer_windows": []}
        missing = "no summary"
        if self.windows:
            missing = "no summary with --show-detailed-stats: figures of the last interval"
        error = self.complaints.cell(missing)
        rows, windows = [], []
        for consumer, thread in enumerate(sorted(self.windows), start=number):
            last = self.windows[thread][-1]
            row = {"ended_at": last["at"], "bytes": last["bytes"], "records": last["records"]}
            rows.append(row | self._about(consumer, error))
            windows += [
                row | {"consumer": consumer, "window": window}
                for window, row in enumerate(self.windows[thread])
            ]
        return {"consumers": rows or [self._about(number, error)], "consumer_windows": windows}

    def _about(self, number, error) -> dict:
        return {"consumer": number, "n_errors": self.complaints.n, "error": error}


def _window(found: dict, line: Line) -> dict:
    rebalance = found.get(REBALANCE)
    return _figures(found) | {
        "at": found.get(TIME),
        "printed_at_s": line.printed_at_s,
        "rebalance_ms": None if rebalance is None or not 0 <= rebalance < EPOCH_MS else float(rebalance),
    }


def _summary(found: dict) -> tuple[dict, str | None]:
    """A row of table consumers, and what is wrong with it."""
    rebalance, fetch = found.get(REBALANCE), found.get(FETCH)
    known = None not in (rebalance, fetch) and 0 <= rebalance < EPOCH_MS and fetch >= 0
    alone = rebalance is None and fetch is not None and 0 <= fetch < EPOCH_MS
    duration, contradiction = _duration_s(found)
    fetch_rate = found.get(FETCH_MB_S) if known else None
    row = _figures(found) | {
        "started_at": found.get(START),
        "ended_at": found.get(END),
        "duration_s": duration,
        "rebalance_ms": float(rebalance) if known else None,
        "fetch_ms": float(fetch) if known or alone else None,
        "fetch_throughput_bps": None if fetch_rate is None or fetch_rate < 0 else 8 * MIB * fetch_rate,
    }
    return row, contradiction


def _figures(found: dict) -> dict:
    rate = found.get(MB_S)
    return {
        "bytes": None if found[MB] is None else found[MB] * MIB,
        "records": found[RECORDS],
        "throughput_bps": None if rate is None else 8 * MIB * rate,
        "records_per_s": found.get(RECORDS_S),
    }


def _duration_s(found: dict) -> tuple[float | None, str | None]:
    """From start to end; with what is wrong where no time that is printed fits records and rate."""
    times = []
    if REBALANCE in found and FETCH in found:
        times.append((found[REBALANCE] + found[FETCH]) / 1000)
    try:
        start, end = (datetime.strptime(found[name], DATE_FORM) for name in (START, END))
        times.append((end - start).total_seconds())
    except (KeyError, ValueError):
        pass
    times = [time for time in times if time >= 0]
    records, rate = found[RECORDS], found.get(RECORDS_S)
    if not times or not records or not rate:
        return (times[0] if times else None), None
    for time in times:
        if abs(records - rate * time) <= FITS * records + CLOCK_S * rate:
            return time, None
    return None, f"{records} records at {rate:g} records/s do not take {times[0]:g} s"
