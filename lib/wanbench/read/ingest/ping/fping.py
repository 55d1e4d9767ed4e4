"""
Parse one line of fping with `-C`, `-c` or `-l`, which has neither header nor footer.

The summaries that fping prints to stderr say nothing that its lines do not.
"""

from __future__ import annotations

import re

from .events import ADDRESS, AT, REPLY, SILENCE, Event, number

_TIME = r"[0-9]{1,9}(?:\.[0-9]{1,6})?"
_TARGET = rf"(?P<target>{ADDRESS})(?: \([^ ]{{1,128}}\))?"
ECHO = re.compile(
    rf"{AT}{_TARGET} *: (?:\[(?P<seq>[0-9]{{1,9}})\], (?:(?P<size>[0-9]{{1,6}}) bytes, (?P<time>{_TIME}) ms"
    r"|timed out) \((?:[0-9.]{1,12}|NaN) avg, [0-9]{1,3}% loss\)"
    rf"|duplicate for \[(?P<again>[0-9]{{1,9}})\], (?P<more>[0-9]{{1,6}}) bytes, (?P<late>{_TIME}) ms)"
    rf"(?: \[<- (?P<who>{ADDRESS})\])?"
)
SUMMARY = re.compile(rf"{ADDRESS}(?: \([^ ]{{1,128}}\))? *: (?:(?:-|[0-9.]{{1,12}})(?: |$)|xmt/rcv/%loss = )")
NOTE = re.compile(r"ICMP [-A-Za-z() ]{1,80} from .* for ICMP Echo sent to .*")
"""Why an echo will time out; it names no echo."""


def echo(line_number: int, text: str) -> tuple[str, Event] | None:
    """The target and the event in a line about an echo; None if it is about none."""
    line = ECHO.fullmatch(text)
    if line is None:
        return None
    sequence, at = int(line["seq"] or line["again"]), number(line["at"])
    time = number(line["time"] or line["late"])
    if time is None:
        return line["target"], Event(line_number, SILENCE, sequence, at, error="timed out")
    size = int(line["size"] or line["more"])
    zero = None if time else "time=0 ms"
    again = line["again"] is not None
    event = Event(line_number, REPLY, sequence, at, time or None, -1, size, line["who"], zero, again)
    return line["target"], event
