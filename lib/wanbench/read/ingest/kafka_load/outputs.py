"""
Divide a log among the tools whose output it contains.

A log may contain several outputs in sequence, and those of a producer and a consumer interleaved. Messages belong to
the tool they name, else to the output with the latest figures, or to the first if there are none yet.

A log without figures is still a tool's output if it has a header, usage text, log line or exception. Scripts and
documents that mention a tool are recognised by their other lines, the majority.
"""

from __future__ import annotations

from wanbench.errors import RawDataError

from . import client_metrics, complaints, consumer, producer, round_trip
from .lines import Line, must_search

OUTPUTS = {
    "producer": producer.ProducerOutput,
    "consumer": consumer.ConsumerOutput,
    "round trip": round_trip.RoundTripOutput,
}
SIGNS = ("header", "warm-up", "steady state", "progress")
"""Kinds of events without figures."""

FREE_ROWS = 50_000
"""Rows allowed in any file: each takes about 600 bytes of memory."""

CHARACTERS_PER_ROW = 80
"""A larger file may have one row per this many characters; the shortest line of figures has 87."""

OUTPUT_ROWS = 3
"""An output takes the memory of so many rows."""

WANTED = "output of kafka-producer-perf-test, kafka-consumer-perf-test or EndToEndLatency"


class OutputReader:
    """
    Assigns lines, in order, to outputs.

    Attributes
    ----------
    size : int
        The file's, in characters.
    expected : str, optional
        The tool, if it is known beforehand.
    may_be_silent : bool
        Whether an empty file is output of that tool.
    outputs : list
        In order of appearance.
    metrics : dict
        Rows of table metrics that clients printed of themselves, by the id of their output.
    """

    def __init__(self, path, size: int = 0, expected: str | None = None, *, may_be_silent: bool = False):
        self._rows_left = max(FREE_ROWS, size // CHARACTERS_PER_ROW)
        self.path, self.expected, self.may_be_silent = path, expected, may_be_silent
        self.outputs: list = []
        self.metrics: dict[int, list[dict]] = {}
        self._of_tool: dict[str, object] = {}
        self._latest = None
        self._waiting: list[tuple[str, str]] = []
        self._has_figures = False
        self._n_spoken = self._n_unknown = 0
        self._spoke: str | None = None
        self._header: tuple[str, ...] | None = None
        self._after: str | None = None
        self._first: Line | None = None

    def feed(self, line: Line) -> None:
        """Process one line, which may have figures, a message, or both if two outputs were written at once."""
        if self._first is None and line.text.strip():
            self._first = line
        if event := producer.alone(line.text, line.whole):
            self._take("producer", event, line)
            self._has_figures, self._after = True, None
            return
        at, matches = 0, {}
        while (at == 0 or at < len(line.text)) and (match := self._find(line, at, matches)):
            start, end, tool, event = match
            before = line.text[at:start]
            if before.strip() and not (at == 0 and complaints.is_prefix(before)):
                self._message(line.printed[at:start], torn=False)
            self._take(tool, event, line)
            if event["kind"] in SIGNS:
                self._weigh(tool, spoken=line.text.strip() == line.text[start:end].strip())
            else:
                self._has_figures = True
            at, self._after = end, None
        if at == 0 or line.text[at:].strip():
            self._message(line.printed[at:], torn=not line.whole)

    def end(self) -> None:
        """Finish after the last line; RawDataError if nothing of these tools was in the file."""
        if self._has_figures or (self.outputs and self.may_be_silent):
            return
        if self._first is None and self.may_be_silent:
            self._begin(self.expected).complaints.silent = True
            return
        if self._first is None:
            raise RawDataError(self.path, None, "an empty file", WANTED)
        tool = self.expected or self._spoke
        enough = 1 if self.may_be_silent else max(1, self._n_unknown)
        if tool is None or self._n_spoken < enough:
            raise RawDataError(self.path, self._first.number, self._first.printed.strip(), WANTED)
        if not self.outputs:
            self._begin(tool)

    def _weigh(self, tool: str | None, *, spoken: bool) -> None:
        """Count a line without figures as a tool's, or as unknown."""
        if spoken:
            self._n_spoken += 1
            self._spoke = self._spoke or tool
        else:
            self._n_unknown += 1

    def _find(self, line, at, matches):
        """
        The earliest figures of any tool from a place on: start, end, tool, event.

        `matches` caches later matches, so that a line is searched once, not once per figure.
        """
        text = line.text
        if must_search(matches, "producer", at):
            matches["producer"] = producer.find(text, at, line.whole)
        if matches["producer"] and matches["producer"][0] == at:  # nothing can come before it
            start, end, event = matches["producer"]
            return start, end, "producer", event
        by_tool = {"producer": matches["producer"]}
        by_tool["consumer"] = consumer.find(text, at, self._header, matches)
        if must_search(matches, "round trip", at):
            matches["round trip"] = round_trip.find(text, at, line.whole)
        if must_search(matches, "metric", at):
            matches["metric"] = self._metric(text, at)
        by_tool |= {tool: matches[tool] for tool in ("round trip", "metric")}
        present = [(*match, tool) for tool, match in by_tool.items() if match is not None]
        if not present:
            return None
        start, end, event, tool = min(present, key=lambda match: match[0])
        return start, end, tool, event

    def _metric(self, text, at):
        if ":{" not in text:
            return None
        begin = client_metrics.BEGINNING.search(text, at)
        line = begin and client_metrics.LINE.match(text, begin.start())
        return line and (line.start(), line.end(), {"kind": "metric", "line": line})

    def _take(self, tool, event, line):
        if event["kind"] == "metric":
            named = client_metrics.source_of(event["line"]["group"], event["line"]["labels"])
            tool = named or (self._latest and self._latest.tool) or self.expected
            tool = tool if tool in ("producer", "consumer") else "producer"
            output = self._of_tool.get(tool) or self._begin(tool)
            if row := client_metrics.row(event["line"], output.tool):
                self._count(1, line)
                self.metrics.setdefault(id(output), []).append(row)
            return
        output = self._of_tool.get(tool)
        if output is None or not output.takes(event):
            self._count(OUTPUT_ROWS, line)
            output = self._begin(tool)
        if event["kind"] == "header":
            self._header = event["names"]
        self._count(1, line)
        output.add(event, line)
        output.complaints.other = None  # a line before figures does not say why later ones are missing
        self._latest = output

    def _count(self, n: int, line: Line) -> None:
        """Reject more rows than a file of this size may have."""
        self._rows_left -= n
        if self._rows_left < 0:
            expected = f"at most one row of figures in {CHARACTERS_PER_ROW} characters, or {FREE_ROWS:,}"
            raise RawDataError(self.path, line.number, line.printed.strip(), expected)

    def _begin(self, tool):
        output = OUTPUTS[tool]()
        self.outputs.append(output)
        self._of_tool[tool] = output
        if tool == "consumer":
            self._header = None
        self._latest = output
        waiting, self._waiting = self._waiting, []
        for text, kind in waiting:
            self._note(text, kind)
        return output

    def _message(self, text, *, torn):
        if not text or text.isspace():
            self._after = complaints.NOTHING
            return
        kind = complaints.kind(text, self._after)
        self._after = kind
        if kind in (complaints.NOTHING, complaints.MORE):
            return
        if not self._has_figures:
            self._weigh(complaints.tool(text), spoken=complaints.is_spoken(text))
        output = self._whose(text)
        if torn and kind == complaints.UNKNOWN and output is not None:
            output.complaints.torn = complaints.formatted_table(text)[-60:]
        elif output is None:
            self._waiting.append((text, kind))
        else:
            self._note(text, kind)

    def _whose(self, text):
        return self._of_tool.get(complaints.tool(text)) or self._latest

    def _note(self, text, kind):
        self._whose(text).complaints.add(text, kind)
