"""
Split the output of Kafka's tools into lines, parse their numbers, and count the errors among lines without figures.

Lines may end in \\r\\n, and the last may be truncated. Numbers may have a decimal point or comma and digits of any
script; the tools print no separators of thousands.

A line without figures counts as an error or warning if it has a log level, is an exception, names a failure, or looks
like figures that could not be read. Any other line may come from a script, and does not count.
"""

import re
from collections.abc import Iterator
from itertools import chain, repeat
from typing import NamedTuple

from wanbench.errors import RawDataError
from wanbench.read.ingest.content import File

LARGEST_BYTES = 64 << 20
"""Size of the largest allowed file; the tools print less than 1 MB in an hour, and an hour of only errors fits, too."""

OTHERWISE = "cp1252"
"""Encoding of text that is not UTF-8 or UTF-16: the Windows code page for Western Europe."""

LONGEST_LINE = 10_000
"""The rest of a longer line is dropped, to limit the time that a damaged file takes."""

FREE_LINES = 100_000
"""Number of lines allowed in any file; each takes 5 to 20 µs, and 600 bytes of memory if it has figures."""

CHARACTERS_PER_LINE = 60
"""A larger file may have at most one line per this many characters; lines of figures have 80 and more."""

LONGEST = 300
"""Maximum length of a message in a table: enough for an exception and its reason."""


_LINE = re.compile(r".++\n?|\n")


class Line(NamedTuple):
    """A line with its number and its time; `whole` is False for a last line without a line break."""

    number: int | None
    text: str
    whole: bool
    printed_at_s: float | None


def lines_of(path: File, text: str, printed_at_s: list[float] | None = None) -> Iterator[Line]:
    """
    Yield the lines with their times, if known. Raise RawDataError if there are too many for a file of this size.

    >>> [(line.number, line.text, line.whole) for line in lines_of("a.txt", "one\\r\\ntwo")]
    [(1, 'one', True), (2, 'two', False)]
    """
    if (n := text.count("\n")) > (most := max(FREE_LINES, len(text) // CHARACTERS_PER_LINE)):
        found = f"{n:,} lines in {len(text):,} characters"
        raise RawDataError(path, None, found, f"at most {most:,} lines in a file of this size")
    times = chain(printed_at_s or (), repeat(None))
    for number, (found, printed_at) in enumerate(zip(_LINE.finditer(text), times, strict=False), 1):
        line = found[0].removesuffix("\n")
        yield Line(number, line[:LONGEST_LINE].removesuffix("\r"), number <= n, printed_at)


WHOLE = r"-?\d{1,18}"
"""Pattern of a whole number."""


def real_with(decimals: int) -> str:
    """Return the regular expression of a real number with this number of decimals."""
    return rf"(?:NaN|-?(?:Infinity|∞)|-?\d{{1,19}}[.,٫]\d{{{decimals}}})"


def real(text: str) -> float | None:
    """
    Parse a real number; None for NaN and infinity.

    >>> real("9986,019573"), real("-0.0000"), real("٣٫٥"), real("NaN")
    (9986.019573, 0.0, 3.5, None)
    """
    return float(text.replace(",", ".").replace("٫", ".")) + 0.0 if text[-1].isdigit() else None


_STAMP = (
    r"(?:\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d[.,:]?\d*(?:Z|[+-]\d\d:?\d\d)?\]?\s*)?"
    r"(?:\[[^\]]*\]\s*|main\s+)?"
)
_LEVEL = re.compile(rf"\s*{_STAMP}\[?(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|SEVERE)\b", re.IGNORECASE)
_EXCEPTION = re.compile(
    r"(?:Exception in thread \"[^\"]*\" )?(?:[A-Za-z_$][\w$]*\.)+[\w$]*(?:Exception|Error|Throwable|Interrupt)\b|"
    r"[\w.-]+:\s+error:\s"
)
_MEANS_NOTHING = re.compile(
    r"\s|\.\.\. \d+ |Caused by: |Suppressed: |"  # the second and later lines of a message
    r"Reading payloads from: |Number of (?:records|messages) read: |Metric Name +Value\s*$|"
    r"Topic .* does not exist\. Will create topic |SLF4J\(?|log4j:WARN|OpenJDK .*VM warning: |"
    r"Java HotSpot.*VM warning: |Picked up (?:_?JAVA|JDK)_|"
    r"WARNING: (?:option \[threads\]|A terminally deprecated|.*\bhas been deprecated|.*\bis deprecated)",
    re.IGNORECASE,
)
_COUNTS = re.compile(
    r"\b(?:error|exception|fail|fatal|killed|tim(?:ed|e) ?out|refused|denied|abort|terminated|unable|cannot|could not|"
    r"not found|no such|segmentation)|records? sent|records/sec|MB/sec|(?:-?[\d.]+, ){4}",
    re.IGNORECASE,
)
"""Matches an unknown line that counts as a warning: it names a failure, or looks like figures."""
NO_SUMMARY = "no summary"


class Complaints:
    """
    The errors and warnings of one output.

    `n` is their number, `first` the first of them, and `last` the last error or, if there are no errors, the last
    warning. `other` is the last line after the figures that may come from a script, and `torn` is a truncated last
    line. `stopped` says whether the tool was stopped on purpose.
    """

    def __init__(self):
        self.n = 0
        self.first = self.last = self.other = self.torn = None
        self.stopped = self._grave = False

    def add(self, line: Line) -> None:
        """
        Classify a line without figures, and count it if it is an error or a warning.

        >>> complaints = Complaints()
        >>> complaints.add(Line(1, "[2022-11-16 17:00:42,193] WARN [Producer clientId=a] oh", True, None))
        >>> complaints.add(Line(2, "[2022-11-16 17:00:43,012] INFO ERROR is a word here", True, None))
        >>> complaints.n, complaints.last
        (1, '[2022-11-16 17:00:42,193] WARN [Producer clientId=a] oh')
        """
        text = formatted(line.text)
        if not text or _MEANS_NOTHING.match(line.text):
            return
        level = _LEVEL.match(text)
        word = level[1].upper() if level else "ERROR" if _EXCEPTION.match(text) else None
        if word in ("TRACE", "DEBUG", "INFO"):
            return
        if word is None and not line.whole:
            self.torn = text[-60:]
        elif word is None and not _COUNTS.search(text):
            self.other = text
        else:
            self.n += 1
            self.first = self.first or text
            is_grave = word not in (None, "WARN", "WARNING")
            if is_grave or not self._grave:
                self.last, self._grave = text, is_grave

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
            self.torn and f"the output is truncated in {self.torn!r}",
            self.last or self.other,
        ]
        if not any(why) and missing == NO_SUMMARY:
            why = ["the output ends before it"]
        return ": ".join([missing, *filter(None, why)])


def formatted(text: str) -> str:
    """Return the text as one line of at most `LONGEST` characters, without control characters or lone surrogates."""
    text = text.strip()
    if not text.isprintable():
        text = "".join(character if character.isprintable() else " " for character in text)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
