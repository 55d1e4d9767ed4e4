"""
Output of Kafka's tools other than figures: errors, warnings, stack traces, and lines of scripts.

A line without figures counts as an error or warning if it has a log level, is an exception, names a failure, or
looks like the tools' own figures, which could not be read. Any other line may be a script's: it does not count.
"""

from __future__ import annotations

import re

LONGEST = 300
"""Characters of a message that a cell keeps: enough for the exception and its reason."""


_STAMP = (
    r"(?:\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d[.,:]?\d*(?:Z|[+-]\d\d:?\d\d)?\]?\s*)?"
    r"(?:\[[^\]]*\]\s*|main\s+)?"
)
_LEVEL = re.compile(rf"\s*{_STAMP}\[?(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|SEVERE)\b", re.IGNORECASE)
_EXCEPTION = re.compile(
    r"(?:Exception in thread \"[^\"]*\" )?(?:[A-Za-z_$][\w$]*\.)+[\w$]*(?:Exception|Error|Throwable|Interrupt)\b|"
    r"[\w.-]+:\s+error:\s"
)
_TRACE = re.compile(r"\s*(?:at [\w.$/<>@-]+\(|\.\.\. \d+ |Caused by: |Suppressed: |\[CIRCULAR REFERENCE)")
_MEANS_NOTHING = re.compile(
    r"Reading payloads from: |Number of (?:records|messages) read: |Metric Name +Value\s*$|"
    r"Topic .* does not exist\. Will create topic |SLF4J\(?|log4j:WARN|OpenJDK .*VM warning: |"
    r"Java HotSpot.*VM warning: |Picked up (?:_?JAVA|JDK)_|"
    r"WARNING: (?:option \[threads\]|A terminally deprecated|.*\bhas been deprecated|.*\bis deprecated)",
    re.IGNORECASE,
)
_PREFIX = re.compile(
    r"[\[(]?(?:\d{4}[-/]\d\d[-/]\d\d[T ]|[A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?"
    r"(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?[\])]?[,:|]?|[\w.-]{1,80} *\|"
)

_CLUES = {
    "producer": re.compile(
        r"\[Producer clientId|ProducerPerformance|producer-perf|perf-producer|producer-performance|"
        r"clients\.producer\."
    ),
    "consumer": re.compile(
        r"\[Consumer clientId|ConsumerPerf|consumer-perf|perf-consumer|consuming the expected number|"
        r"clients\.consumer\."
    ),
    "round trip": re.compile(r"EndToEndLatency|poll\(\) timed out before finding a result|e2e-latency"),
}

_SPOKEN = re.compile(
    r"\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d[^ ]*\s+\[?(?:WARN|ERROR|FATAL)\b|(?:WARN|ERROR|FATAL)\s+\[|"
    r"log4j:ERROR |WARNING: Exiting before |Exiting before consuming the |usage: (?:kafka-)?\w+-\w+|"
    r"Error: (?:Could not find or load|Unable to initialize) main class |Error occurred during initialization of VM"
)
_COUNTS = re.compile(
    r"\b(?:error|exception|fail|fatal|killed|tim(?:ed|e) ?out|refused|denied|abort|terminated|unable|cannot|could not|"
    r"not found|no such|segmentation)|records? sent|records/sec|MB/sec|Avg latency|Percentiles|(?:-?[\d.]+, ){4}",
    re.IGNORECASE,
)
"""A line of no known kind that counts: it names a failure, or looks like figures."""
_OF_A_SCRIPT = re.compile(
    r"(?:\[[^\]]{1,80}\]|[\w.~:@/\\-]{1,80})?(?<!\d)[$#%>] |\++ |[=*#]{2,}|-{3,}|"
    r"(?:real|user|sys)\s+[\dm.,]+s?\s*$|[\d.]+user [\d.]+system "
)
"""A prompt or a traced command, a heading, or what `time` prints."""
NO_SUMMARY = "no summary"
NOTHING, MORE, WARNING, ERROR, UNKNOWN = "nothing", "more", "warning", "error", "unknown"
"""Kinds of lines: without meaning; continuing the line before; and three that may count."""


def kind(text: str, after: str | None) -> str:
    """
    The kind of a line without figures: NOTHING, MORE (continues the line before), WARNING, ERROR or UNKNOWN.

    `after` is the kind of the line before, None if that had figures.

    >>> kind("[2022-11-16 17:00:42,193] WARN [Producer clientId=a] Got error (Sender)", None)
    'warning'
    >>> kind("\\tat kafka.tools.Perf.main(Perf.scala:5)", "error"), kind("C:\\\\> kafka-topics", None)
    ('more', 'unknown')
    """
    if not text.strip() or _MEANS_NOTHING.match(text):
        return NOTHING
    if _TRACE.match(text) and after is not None:
        return MORE
    if level := _LEVEL.match(text):
        word = level[1].upper()
        return NOTHING if word in ("TRACE", "DEBUG", "INFO") else WARNING if word.startswith("WARN") else ERROR
    if text[0] in " \t" and after is not None:
        return MORE
    return ERROR if _EXCEPTION.match(text) else UNKNOWN


def is_spoken(text: str) -> bool:
    """
    Whether a program printed the line at run time: a log entry, exception, usage text, or refusal by Java.

    >>> is_spoken("kafka-producer-perf-test: error: no topic"), is_spoken("Warning: kafka-producer-perf-test is slow")
    (True, False)
    """
    return bool(_SPOKEN.match(text) or _EXCEPTION.match(text))


def is_prefix(text: str) -> bool:
    """
    Whether a script put this before the tool's line: a time, or the name of a container.

    >>> is_prefix("[2026-01-05T10:00:05Z] "), is_prefix("producer-1  | "), is_prefix("killed at 10:00:05 ")
    (True, True, False)
    """
    return _PREFIX.fullmatch(text.strip()) is not None


def tool(text: str) -> str | None:
    """The tool that printed it, if recognisable: "producer", "consumer" or "round trip"; else None."""
    return next((name for name, clue in _CLUES.items() if clue.search(text)), None)


class Complaints:
    """
    Errors and warnings of one output: the number of lines, the first, and the last of the gravest.

    `other` is the last line after the figures that may be a script's, `torn` a truncated last line, `stopped` whether
    the tool was stopped on purpose, `silent` whether it printed nothing.
    """

    def __init__(self):
        self.n = 0
        self.first: str | None = None
        self.last: str | None = None
        self.other: str | None = None
        self.torn: str | None = None
        self.stopped = self.silent = False
        self._grave = False

    def add(self, text: str, kind: str) -> None:
        """Add a line."""
        if kind == UNKNOWN and _OF_A_SCRIPT.match(text):
            return
        if kind == UNKNOWN and not (_COUNTS.search(text) or is_spoken(text)):
            self.other = formatted(text)
            return
        self.n += 1
        self.first = self.first or formatted(text)
        grave = kind == ERROR
        if grave or not self._grave:
            self.last, self._grave = formatted(text), grave

    def cell(self, missing: str | None) -> str | None:
        """
        The text of column `error`: the first line; for missing figures, which, and the likely reason: the tool was
        stopped, the output is truncated, the last error, or the last line.
        """
        if missing is None:
            return self.first
        why = ["the tool was stopped at its scheduled end"] if self.stopped else []
        why += ["the tool printed nothing"] if self.silent else []
        why += [f"the output breaks off in {self.torn!r}"] if self.torn else []
        why += [self.last or self.other] if self.last or self.other else []
        if not why and missing == NO_SUMMARY:
            why = ["the output ends before it"]
        return ": ".join([missing, *why])


def formatted(text: str) -> str:
    """The text in one line of at most `LONGEST` characters, without control characters or lone surrogates."""
    text = "".join(character if character.isprintable() else " " for character in text.strip())
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
