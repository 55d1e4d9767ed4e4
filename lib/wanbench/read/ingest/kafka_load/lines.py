"""
Split the output of Kafka's tools into lines, parse their numbers in any locale, and classify lines without figures.

Lines may end in \\r\\n, the last may be truncated, and digits may be of any script. A mark in a number is a decimal
mark if the tool's usual number of digits follows it, if it follows another mark, or if the digits around it cannot be
groups of three. An ambiguous number ("1,600") is an error.

A line without figures counts as an error or warning if it has a log level, is an exception, names a failure, or looks
like figures that could not be read. Any other line may come from a script, and does not count.
"""

import re
import unicodedata
from collections.abc import Iterator
from math import inf, isfinite
from typing import NamedTuple

from wanbench.errors import RawDataError

LARGEST_BYTES = 64 << 20
"""Size of the largest allowed file; the tools print less than 1 MB in an hour, and an hour of only errors fits, too."""

OTHERWISE = "cp1252"
"""Encoding of text that is not UTF-8 or UTF-16: the Windows code page for Western Europe."""

LONGEST_LINE = 10_000
"""Longer lines are read in parts, to limit the time that a damaged file takes."""

FREE_LINES = 100_000
"""Number of lines allowed in any file; each takes 5 to 20 µs."""

CHARACTERS_PER_LINE = 40
"""A larger file may have at most one line per this many characters; the tools print lines of 60 and more."""

SEPARATORS = {"٫": ".", "٬": "'"}


class Line(NamedTuple):
    """
    A line with its number, its text as printed, the same text with digits 0 to 9 (of equal length), and its time.

    `whole` is False for a truncated last line, which a tool leaves when it is stopped while writing.
    """

    number: int
    printed: str
    text: str
    whole: bool
    printed_at_s: float | None


def plain_digits(text: str) -> str:
    """
    Replace digits of other scripts by 0 to 9, character by character.

    >>> plain_digits("٣٫٥ ms, ５ records")
    '3.5 ms, 5 records'
    """
    return text if text.isascii() else text.translate(_DIGITS)


class _Digits(dict):
    """A table for `str.translate` that looks up each character's digit only once."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = SEPARATORS.get(character) or str(unicodedata.decimal(character, character))
        return self[code]


_DIGITS = _Digits()


def lines_of(path, text: str, printed_at_s: list[float] | None = None) -> Iterator[Line]:
    """
    Yield the lines with their times, if known; a line longer than `LONGEST_LINE` is yielded in parts.

    Raise RawDataError if there are too many lines for a file of this size.

    >>> [(line.number, line.printed, line.whole) for line in lines_of("a.txt", "one\\r\\ntwo")]
    [(1, 'one', True), (2, 'two', False)]
    """
    n, most = text.count("\n"), max(FREE_LINES, len(text) // CHARACTERS_PER_LINE)
    if n > most:
        found = f"{n:,} lines in {len(text):,} characters"
        raise RawDataError(path, None, found, f"at most {most:,} lines in a file of this size")
    return _lines(text, printed_at_s or [])


def _lines(text: str, times: list[float]) -> Iterator[Line]:
    number, at = 0, 0
    while at < len(text):
        end = text.find("\n", at)
        is_whole = end >= 0
        end = end if is_whole else len(text)
        number += 1
        at_s = times[number - 1] if number <= len(times) else None
        last = end - 1 if text[end - 1 : end] == "\r" and end > at else end
        for start in range(at, max(last, at + 1), LONGEST_LINE):
            printed = text[start : min(start + LONGEST_LINE, last)]
            yield Line(number, printed, plain_digits(printed), is_whole or start + LONGEST_LINE < last, at_s)
        at = end + 1


def must_search(matches: dict, name, at: int) -> bool:
    """
    Return whether a search from position `at` is needed: there was none before, or the match of the last one begins
    before `at`.
    """
    return name not in matches or (matches[name] is not None and matches[name][0] < at)


GROUPING = "'’\u00a0\u2009\u202f"
_MARKS = f"[.,{GROUPING}]"
WHOLE = rf"-?(?:\d{{1,3}}(?:{_MARKS}\d{{3}}){{1,5}}|\d{{1,19}})"
REAL = rf"(?:NaN|-?(?:Infinity|∞)|-?\d(?:[\d .,{GROUPING}]{{0,30}}\d)?)"
"""Patterns of a whole number, and of a real number; a match may still be invalid."""

_NUMBERS = re.compile(r"\d+")
_MOST = 2**63 - 1
"""Largest count in Java and in tables."""


def real_with(decimals: int) -> str:
    """Return the pattern of a real number with this number of decimals."""
    whole = rf"(?:\d{{1,3}}(?:{_MARKS}\d{{3}}){{1,5}}|\d{{1,19}})"
    return rf"(?:NaN|-?(?:Infinity|∞)|-?{whole}[.,]\d{{{decimals}}})"


def whole(text: str) -> int:
    """
    Parse a whole number; raise ValueError if it is invalid or needs more than 64 bits.

    >>> whole("20079"), whole("1.000.000"), whole("-12")
    (20079, 1000000, -12)
    """
    if len(text) < 19 and text.isascii() and text.isdigit():
        return int(text)
    sign = -1 if text.startswith("-") else 1
    groups = _NUMBERS.findall(text)
    if not groups or (len(groups) > 1 and not _are_groups(groups)) or len(text) > 40:
        raise ValueError(f"{text!r} is not a whole number")
    value = int("".join(groups))
    if value > _MOST:
        raise ValueError(f"{text!r} needs more than 64 bits")
    return sign * value


def real(text: str, decimals: int) -> float | None:
    """
    Parse a real number of a tool that prints this many decimals; None for NaN and infinity.

    Raise ValueError if the marks in the number are ambiguous.

    >>> real("9986,019573", 6), real("1.234,5", 1), real("1\u202f999,6", 1), real("-0.0000", 4), real("NaN", 2)
    (9986.019573, 1234.5, 1999.6, 0.0, None)
    >>> real("1,600", 1)
    Traceback (most recent call last):
        ...
    ValueError: '1,600' is ambiguous: its mark may be a decimal mark or a separator of thousands
    """
    before, point, fraction = text.partition(".")
    if point and len(fraction) == decimals and text.isascii() and before.isdigit() and fraction.isdigit():
        return float(text)
    if not text[-1:].isdigit():
        return None
    sign = -1.0 if text.startswith("-") else 1.0
    groups = _NUMBERS.findall(text)
    marks = _NUMBERS.sub("", text.lstrip("-"))
    if len(marks) != len(groups) - 1:
        raise ValueError(f"{text!r} is not a number")
    if _ends_in_decimals(text, groups, marks, decimals):
        *groups, fraction = groups
    else:
        fraction = "0"
    if len(groups) > 1 and (not _are_groups(groups) or len(set(marks[: len(groups) - 1])) > 1):
        raise ValueError(f"{text!r} is not a number in groups of three")
    value = float(f"{''.join(groups)}.{fraction}")
    return sign * value + 0.0 if isfinite(value) and value < inf else None


def _ends_in_decimals(text, groups, marks, decimals) -> bool:
    if not marks or marks[-1] not in ".," or marks[-1] in marks[:-1]:
        return False
    if len(groups[-1]) in (decimals, 1, 2) or len(groups[-1]) > 3 or len(marks) > 1 or marks == ".":
        return True
    if len(groups[0]) > 3 or groups[0] == "0":
        return True
    raise ValueError(f"{text!r} is ambiguous: its mark may be a decimal mark or a separator of thousands")


def _are_groups(groups) -> bool:
    return len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])


LONGEST = 300
"""Maximum length of a message in a table: enough for an exception and its reason."""


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
"""Matches an unknown line that counts as a warning: it names a failure, or looks like figures."""
_OF_A_SCRIPT = re.compile(
    r"(?:\[[^\]]{1,80}\]|[\w.~:@/\\-]{1,80})?(?<!\d)[$#%>] |\++ |[=*#]{2,}|-{3,}|"
    r"(?:real|user|sys)\s+[\dm.,]+s?\s*$|[\d.]+user [\d.]+system "
)
"""Matches a line of a script: a prompt, a traced command, a heading, or output of `time`."""
NO_SUMMARY = "no summary"
NOTHING, MORE, WARNING, ERROR, UNKNOWN = "nothing", "more", "warning", "error", "unknown"
"""Kinds of lines: irrelevant lines, continuations of the line before, and three kinds that may count."""


def kind_of_line(text: str, after: str | None) -> str:
    """
    Classify a line without figures as NOTHING, MORE (it continues the line before), WARNING, ERROR or UNKNOWN.

    `after` is the kind of the line before; None if that line had figures.

    >>> kind_of_line("[2022-11-16 17:00:42,193] WARN [Producer clientId=a] Got error (Sender)", None)
    'warning'
    >>> kind_of_line("\\tat kafka.tools.Perf.main(Perf.scala:5)", "error"), kind_of_line("C:\\\\> kafka-topics", None)
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
    Return whether a program printed the line at run time: a log entry, exception, usage text, or error of Java.

    >>> is_spoken("kafka-producer-perf-test: error: no topic"), is_spoken("Warning: kafka-producer-perf-test is slow")
    (True, False)
    """
    return bool(_SPOKEN.match(text) or _EXCEPTION.match(text))


def is_prefix(text: str) -> bool:
    """
    Return whether a script put this text before the tool's line: a time, or the name of a container.

    >>> is_prefix("[2026-01-05T10:00:05Z] "), is_prefix("producer-1  | "), is_prefix("killed at 10:00:05 ")
    (True, True, False)
    """
    return _PREFIX.fullmatch(text.strip()) is not None


def tool_of_line(text: str) -> str | None:
    """Return the tool that printed a line: "producer", "consumer" or "round trip"; None if unknown."""
    return next((name for name, clue in _CLUES.items() if clue.search(text)), None)


class Complaints:
    """
    The errors and warnings of one output.

    `n` is their number, `first` the first of them, and `last` the last error or, if there are no errors, the last
    warning. `other` is the last line after the figures that may come from a script, and `torn` is a truncated last
    line. `stopped` says whether the tool was stopped on purpose, `silent` whether it printed nothing.
    """

    def __init__(self):
        self.n = 0
        self.first = self.last = self.other = self.torn = None
        self.stopped = self.silent = self._grave = False

    def add(self, text: str, kind: str) -> None:
        """Add a line of this kind."""
        if kind == UNKNOWN and _OF_A_SCRIPT.match(text):
            return
        if kind == UNKNOWN and not (_COUNTS.search(text) or is_spoken(text)):
            self.other = formatted(text)
            return
        self.n += 1
        self.first = self.first or formatted(text)
        if kind == ERROR or not self._grave:
            self.last, self._grave = formatted(text), kind == ERROR

    def cell(self, missing: str | None) -> str | None:
        """
        Return the text of column `error`: the first error or warning.

        If figures are missing, `missing` names them, and the likely reason follows: the tool was stopped, the output is
        truncated, the last error, or the last line.
        """
        if missing is None:
            return self.first
        why = [
            self.stopped and "the tool was stopped at its scheduled end",
            self.silent and "the tool printed nothing",
            self.torn and f"the output is truncated in {self.torn!r}",
            self.last or self.other,
        ]
        if not any(why) and missing == NO_SUMMARY:
            why = ["the output ends before it"]
        return ": ".join([missing, *filter(None, why)])


def formatted(text: str) -> str:
    """Return the text as one line of at most `LONGEST` characters, without control characters or lone surrogates."""
    text = "".join(character if character.isprintable() else " " for character in text.strip())
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
