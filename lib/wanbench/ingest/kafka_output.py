"""
Takes what Kafka's perf tools printed apart: whose figures, whose words. Imports the readers of the tools.

A file may hold several outputs, one after the other, and those of a producer and a consumer at once. Words belong to
the tool that they name, else to the output that printed figures last, or to the first one where none has yet.

A file without figures is still a tool's output if the tool speaks in it: prints a header, its usage, a log line, an
exception. Scripts and documents that name a tool, or quote a line of it, say other things on most of their lines.
"""

from __future__ import annotations

from ..errors import RawDataError
from . import client_metrics, end_to_end, kafka_consumer, kafka_messages, kafka_producer
from .kafka_lines import Line, is_behind

OUTPUTS = {
    each.tool: each
    for each in (kafka_producer.ProducerOutput, kafka_consumer.ConsumerOutput, end_to_end.RoundTrips)
}
TOOLS = ("producer", "consumer", "round trip", "metric")
SIGNS = ("header", "warm-up", "steady state", "progress")
"""Events without a figure of the tables."""

FREE_ROWS, LEAST_BYTES = 50_000, 80
"""
A file may hold so many rows, or one in so many of its characters if that is more: a row takes about 600 bytes of
memory, and the shortest line of figures has 87 characters.
"""

OUTPUT_ROWS = 3
"""An output takes the memory of so many rows."""

WANTED = "output of kafka-producer-perf-test, kafka-consumer-perf-test or EndToEndLatency"


class Reading:
    """
    Reads lines in order.

    `size` is the file's, in characters. `expected` is the tool that is known beforehand; if it `may_be_silent`, a file
    without a word is its output too. `outputs` are those found, in order of appearance, `metrics` what clients said of
    themselves: rows, by the id of the output.
    """

    def __init__(self, path, size: int = 0, expected: str | None = None, *, may_be_silent: bool = False):
        self._rows_left = max(FREE_ROWS, size // LEAST_BYTES)
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
        """Take one line, which may hold figures, words, or both where something got in between."""
        if self._first is None and line.text.strip():
            self._first = line
        if event := kafka_producer.alone(line.text, line.whole):
            self._take("producer", event, line)
            self._has_figures, self._after = True, None
            return
        at, known = 0, {}
        while (at == 0 or at < len(line.text)) and (found := self._find(line, at, known)):
            start, end, tool, event = found
            if line.text[at:start].strip():
                self._words(line.said[at:start], torn=False)
            self._take(tool, event, line)
            if event["kind"] in SIGNS:
                self._weigh(tool, spoken=line.text.strip() == line.text[start:end].strip())
            else:
                self._has_figures = True
            at, self._after = end, None
        if at == 0 or line.text[at:].strip():
            self._words(line.said[at:], torn=not line.whole)

    def end(self) -> None:
        """To be called after the last line. RawDataError if nothing of these tools was in the file."""
        if self._has_figures or (self.outputs and self.may_be_silent):
            return
        if self._first is None and self.may_be_silent:
            self._begin(self.expected).complaints.silent = True
            return
        if self._first is None:
            raise RawDataError(self.path, None, "an empty file", WANTED)
        known = self.expected or self._spoke
        enough = 1 if self.may_be_silent else max(1, self._n_unknown)
        if known is None or self._n_spoken < enough:
            raise RawDataError(self.path, self._first.number, self._first.said.strip(), WANTED)
        if not self.outputs:
            self._begin(known)

    def _weigh(self, tool: str | None, *, spoken: bool) -> None:
        """Count a line without figures: one that a tool speaks, or an unknown one."""
        if spoken:
            self._n_spoken += 1
            self._spoke = self._spoke or tool
        else:
            self._n_unknown += 1

    def _find(self, line, at, known):
        """
        The earliest figures of any tool from a place on: start, end, tool, what they are.

        What a search finds behind that place is kept in `known`, so that a line is searched once, not once a figure.
        """
        text = line.text
        if is_behind(known, "producer", at):
            known["producer"] = kafka_producer.find(text, at, line.whole)
        if known["producer"] and known["producer"][0] == at:  # nothing can come before it
            start, end, event = known["producer"]
            return start, end, "producer", event
        consumer = kafka_consumer.find(text, at, self._header, known)
        if is_behind(known, "round trip", at):
            known["round trip"] = end_to_end.find(text, at, line.whole)
        if is_behind(known, "metric", at):
            known["metric"] = self._metric(text, at)
        earliest, whose = None, None
        for tool in TOOLS:
            found = consumer if tool == "consumer" else known[tool]
            if found is not None and (earliest is None or found[0] < earliest[0]):
                earliest, whose = found, tool
        return earliest and (earliest[0], earliest[1], whose, earliest[2])

    def _metric(self, text, at):
        if ":{" not in text:
            return None
        begin = client_metrics.BEGINNING.search(text, at)
        line = begin and client_metrics.LINE.match(text, begin.start())
        return line and (line.start(), line.end(), {"kind": "metric", "line": line})

    def _take(self, tool, event, line):
        if event["kind"] == "metric":
            named = client_metrics.source_of(event["line"]["group"], event["line"]["labels"])
            known = named or (self._latest and self._latest.tool) or self.expected or "producer"
            known = known if known in ("producer", "consumer") else "producer"
            output = self._of_tool.get(known) or self._begin(known)
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
        self._latest = output

    def _count(self, n: int, line: Line) -> None:
        """Refuse more rows than a file of this size may hold."""
        self._rows_left -= n
        if self._rows_left < 0:
            expected = f"at most one row of figures in {LEAST_BYTES} characters, or {FREE_ROWS:,}"
            raise RawDataError(self.path, line.number, line.said.strip(), expected)

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

    def _words(self, said, *, torn):
        if not said or said.isspace():
            self._after = kafka_messages.NOTHING
            return
        kind = kafka_messages.kind(said, self._after)
        self._after = kind
        if kind in (kafka_messages.NOTHING, kafka_messages.MORE):
            return
        if not self._has_figures:
            self._weigh(kafka_messages.tool(said), spoken=kafka_messages.is_spoken(said))
        output = self._whose(said)
        if torn and kind == kafka_messages.UNKNOWN and output is not None:
            output.complaints.torn = kafka_messages.shown(said)[-60:]
        elif output is None:
            self._waiting.append((said, kind))
        else:
            self._note(said, kind)

    def _whose(self, said):
        return self._of_tool.get(kafka_messages.tool(said)) or self._latest

    def _note(self, said, kind):
        self._whose(said).complaints.add(said, kind == kafka_messages.ERROR)
