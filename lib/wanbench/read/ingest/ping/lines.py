"""
Parse single lines of ping, in all its dialects.

Dialects are iputils (old and new), busybox, toybox, BSD and macOS, GNU inetutils, Windows in English, and fping of one
host with `-C`, `-c` or `-l`, which has neither header nor footer. Each is read with IPv4 and IPv6.

Outside a ping (before its header, after its counts, or after the last line of a killed ping) other lines are allowed:
prompts, dates, output of a script. A line that only ping prints is rejected there, because no header was recognised
before it. An unknown line within a ping is rejected, too, because it may be an unknown form of echo.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, NoReturn

import pandas as pd

from wanbench.errors import LATER, RawDataError
from wanbench.read.ingest.content import File

from .footer_times import Times

REPLY = 0
SILENCE = 1
"""Kind of a line that says that there is no answer yet."""
REPORT = 2
"""Kind of a line with an error that names its echo."""

AT = r"(?:\[(?P<at>[0-9]{1,12}\.[0-9]{1,6})\] |(?P<clock>[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6} ))?"
"""Pattern of a time in Unix seconds, or (macOS --apple-time) of a time of day without a date, which is dropped."""
ADDRESS = r"[0-9A-Za-z.:%_-]{1,128}"


class Event(NamedTuple):
    """The content of a line about one echo; -1 or None stands for what the line does not say."""

    line_number: int
    kind: int
    sequence: int
    received_at_s: float | None = None
    rtt_ms: float | None = None
    ttl: int = -1
    reply_bytes: int = -1
    responder: str | None = None
    error: str | None = None
    duplicate: bool = False


class Footer(NamedTuple):
    """The counts in ping's footer, and the footer's line."""

    line_number: int
    text: str
    transmitted: int
    received: int
    duplicates: int


@dataclass(slots=True)
class Ping:
    """
    One run of ping in a file: its header and, once read, the counts (`footer`) and `times` of its footer.

    `number` counts these runs from 0. `line_number` is the line of the header (fping: of the first echo), and
    `first_sequence` the first sequence number in this dialect. `counted` is the number of echoes read so far (Windows),
    1 after the first echo (fping), otherwise 0; `reported` the number of errors that Windows counts as received.
    """

    number: int
    line_number: int
    dialect: str
    first_sequence: int
    target: str
    footer: Footer | None = None
    times: Times | None = None
    reported: int = 0
    counted: int = 0


def number(digits: str | None) -> float | None:
    return None if digits is None else float(digits)


_TIME = r"[0-9]{1,9}(?:\.[0-9]{1,6})?"
_TARGET = rf"(?P<target>{ADDRESS})(?: \([^ ]{{1,128}}\))?"
FPING_ECHO = re.compile(
    rf"{AT}{_TARGET} *: (?:\[(?P<seq>[0-9]{{1,9}})\], (?:(?P<size>[0-9]{{1,6}}) bytes, (?P<time>{_TIME}) ms"
    r"|timed out) \((?:[0-9.]{1,12}|NaN) avg, [0-9]{1,3}% loss\)"
    rf"|duplicate for \[(?P<again>[0-9]{{1,9}})\], (?P<more>[0-9]{{1,6}}) bytes, (?P<late>{_TIME}) ms)"
    rf"(?: \[<- (?P<who>{ADDRESS})\])?"
)
FPING_SUMMARY = re.compile(rf"{ADDRESS}(?: \([^ ]{{1,128}}\))? *: (?:(?:-|[0-9.]{{1,12}})(?: |$)|xmt/rcv/%loss = )")
FPING_NOTE = re.compile(r"ICMP [-A-Za-z() ]{1,80} from .* for ICMP Echo sent to .*")
"""Matches a line that says why an echo will time out, but not which echo."""


def fping_echo(line_number: int, text: str) -> tuple[str, Event] | None:
    """Return the target and the event in a line of fping; None if the line is not about an echo."""
    line = FPING_ECHO.fullmatch(text)
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


WITHOUT_CARRY = re.compile(r"[1-9][0-9]\.10|[1-9]\.100")
"""
Matches a time of iputils s20180629, which prints 60.96 ms as "60.10" and 1.996 ms as "1.100", because it rounds the
decimals without a carry. No other version prints two decimals for times from 10 ms, or three for times from 1 ms.
"""
CARRY_MS = 0.9
"""Difference that the missing carry makes: 61.0 is printed as 60.10, and 2.00 as 1.100."""

LONGEST_LINE = 4096
"""Maximum length of a line, far above that of any line of ping; it limits the time that the patterns take."""

MARKS = ("DUP!", "BAD CHECKSUM!", "DIFFERENT ADDRESS!", "truncated")

_WHO = rf"(?:[^ ]{{1,255}} \((?P<who>{ADDRESS})\)|(?P<bare>{ADDRESS}))"
REPLY_LINE = re.compile(
    rf"{AT}(?P<size>[0-9]{{1,6}}) bytes from {_WHO}[:,] (?:icmp_[rs]eq|seq)=(?P<seq>[0-9]{{1,5}})"
    r"(?: ident=[0-9]{1,5})?(?: (?:ttl|hlim)=(?P<ttl>[0-9]{1,3}))?"
    r"(?: time=(?P<time>[0-9]{1,9}(?:\.[0-9]{1,6})?) ms)?"
    rf"(?P<marks>(?: \((?:{'|'.join(MARKS)})\))*)(?:\t\(same route\))?"
)
SILENCE_LINE = re.compile(rf"{AT}(?P<message>no answer yet|Request timeout) for icmp_seq(?:=| )(?P<seq>[0-9]{{1,9}})")
REPORT_LINE = re.compile(rf"{AT}From {_WHO}:? icmp_seq=(?P<seq>[0-9]{{1,5}}) (?P<message>[ -~]{{1,200}})")
DAMAGE_LINE = re.compile(r"wrong (?:data byte|total length) [ -~]{1,100}")
# Messages that name no echo, IP options, and dumps of headers and payloads.
MESSAGE_LINE = re.compile(r"ping6?: .*|ai->.*|WARNING: .*|Warning: .*|PATTERN: .*")
NOTE_LINE = re.compile(
    r"(?:RR|TS|LSRR|SSRR): ?.*|NOP|unknown option .*|\t.*|#[0-9]+\t[0-9a-f ]*|[cd]p:[0-9a-f ]*"
    r"|\^C|\r?[0-9]+/[0-9]+ packets.*|load: .*"
    rf"|{AT}[0-9]{{1,6}} bytes from {ADDRESS}(?: \([^ ]+\))?: [A-Z][ -~]*"
)
FLOOD_LINE = re.compile(r"[.\x08](?:[.\x08 EC]|\^C)*$")
DUMP_HEADER = "Vr HL TOS "
STATISTICS_LINE = re.compile(r"(?:\^C)?--- .* ping6? statistics ---")
COUNTS_LINE = re.compile(
    r"(?P<transmitted>[0-9]{1,12}) packets transmitted, (?P<received>[0-9]{1,12}) (?:packets )?received"
    r"(?P<more>.*?)(?:, (?P<loss>-?[0-9.e+-]{1,12})% packet loss.*)?"
)
DUPLICATES = re.compile(r"\+?([0-9]{1,12}) duplicates")
AFTER_COUNTS_LINE = re.compile(r"(?:rtt|round-trip) .*|,? ?pipe .*|,? ?ipg/ewma .*|ping6?: .*")

WINDOWS_REPLY_LINE = re.compile(
    r"Reply from (?P<who>[^ ]{1,128}): (?:bytes=(?P<size>[0-9]{1,6}) (?:\(sent [0-9]{1,6}\) )?)?"
    r"time(?P<sign>[=<])(?P<time>[0-9]{1,9})ms(?: TTL=(?P<ttl>[0-9]{1,3}))? ?"
)
WINDOWS_REPORT_LINE = re.compile(r"Reply from (?P<who>[^ ]{1,128}): (?P<message>[A-Z][ -~]{1,200})")
WINDOWS_SILENCE_LINE = re.compile(
    r"(?P<message>Request timed out|General failure|Hardware error|Destination (?:host|net|port) unreachable"
    r"|Packet needs to be fragmented but DF set|Negotiating IP Security|PING: transmit failed[ -~]{0,80}?)\. ?"
)
WINDOWS_COUNTS_LINE = re.compile(
    r" *Packets: Sent = (?P<transmitted>[0-9]{1,12}), Received = (?P<received>[0-9]{1,12}),"
    r" Lost = [0-9]{1,12}(?P<more>) \((?P<loss>[0-9]{1,3})% loss\),? ?"
)
WINDOWS_AFTER_COUNTS_LINE = re.compile(r" *(?:Approximate round trip|Minimum = ).*|Control-C|\^C")

HEADERS = tuple(
    (dialect, first_sequence, re.compile(pattern))
    for dialect, first_sequence, pattern in (
        ("iputils", 1, r"PING (?P<target>.*) \([^ ]+\) (?:from [^ ]+ [^ ]*: )?[0-9]+\([0-9]+\) bytes of data\."),
        ("bsd", 0, r"PING (?P<target>.*) \([^ ]+\)(?: from [^ ]+)?: [^:]*data bytes(?:, id 0x[0-9a-f]+ = [0-9]+)?"),
        (
            "iputils",
            1,
            r"PING (?P<target>.*?) ?\([^ ]+(?: \([^ ]+\))?\) (?:, flow [^ ]+, )?(?:from [^ ]+ [^ ]*: )?"
            r"[0-9]+ data bytes",
        ),
        ("bsd", 0, r"PING6\([0-9=+ ]+bytes\) [^ ]+ --> (?P<target>[^ ]+)"),
        ("windows", 1, r"Pinging (?P<target>[^ ]+) (?:\[[^ ]+\] )?(?:from [^ ]+ )?with [0-9]+ bytes of data: ?"),
        ("toybox", 1, r"Ping (?P<target>.*) \([^ ]+\): [0-9]+\([0-9]+\) bytes\."),
    )
)
"""Dialect, sequence of the first echo, and pattern of the header; the first match counts."""

BEGINNINGS = (
    "[", "From ", "no answer yet", "Request time", "--- ", "Reply from ", "Ping stat", "rtt ", "round-t",
)  # fmt: skip
"""Beginnings of ping's lines; a truncated last line that begins so may be ping's."""

ANOTHER_LANGUAGE = re.compile(r"seq=[0-9]+ ttl=[0-9]|[0-9] ?ms TTL=[0-9]")
IN_ENGLISH = re.compile(r"[0-9] bytes from |Reply from ")
_STAMP = AT.replace("?P<at>", "?:").replace("?P<clock>", "?:")
ONLY_PING = re.compile(
    rf"icmp_[rs]eq[ =]|{ANOTHER_LANGUAGE.pattern}|^{_STAMP}[0-9]+ bytes from "
    r"|^Reply from |^Request timed out|^(?:\^C)?--- .* ping6? statistics ---|[0-9] packets transmitted, [0-9]"
    r"|^Ping statistics for |^ *Packets: Sent = [0-9]"
)
"""Matches text that only ping prints, in any language."""
LIKE_AN_ECHO = re.compile(r"(?i)seq[ =]|ttl=|time[=<]|[0-9] ?ms\b|unreachable|timed? ?out|answer|reply|^from ")
"""Matches a line that may be an echo, and therefore cannot be the first line after a killed ping."""
LIKE_A_HEADER = re.compile(r"ping\w*[ (]", re.IGNORECASE)
MOST_OTHER_LINES = 10_000
"""A file with more than this many lines outside pings is rejected, because each line takes microseconds."""

_CLOCK = r"[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?(?: [AP]M)?"
_ZONE = r"(?: ?(?P<zone{}>Z|UTC|GMT|[+-][0-9]{{2}}:?[0-9]{{2}})| [A-Z]{{3,5}})?"
_DAY = r"(?:[A-Z][a-z]{2},? )?"
PREFIX = re.compile(
    r"(?P<indent>[ \t]*)(?:\[?(?P<time>"
    rf"[0-9]{{4}}[-/][0-9]{{2}}[-/][0-9]{{2}}[T _]{_CLOCK}{_ZONE.format(1)}"
    rf"|{_DAY}[A-Z][a-z]{{2}} {{1,2}}[0-9]{{1,2}} {_CLOCK}(?:{_ZONE.format(2)} [0-9]{{4}})?"
    rf"|{_DAY}[0-9]{{1,2}} [A-Z][a-z]{{2}} [0-9]{{4}} {_CLOCK}{_ZONE.format(3)}"
    rf"|(?P<unix>[0-9]{{9,10}}(?:\.[0-9]{{1,9}})?)|{_CLOCK})\]?(?:[:,|]? |[:,|]|$))?"
)
"""
Matches indentation, and a time that a script, `date` or `ts` put before a line; the time is used only if it has a time
zone.
"""
MAY_BE_PREFIXED = ("PING", "Ping", " avg, ")

HEADER = (
    "a header of ping in English, such as 'PING host (192.0.2.1) 56(84) bytes of data.' or "
    "'Pinging 192.0.2.1 with 32 bytes of data:', or output of fping -C, -c or -l"
)
ENGLISH = "output of ping in English (LC_ALL=C, or on Windows chcp 437)"


class LineReader:
    """
    Read lines one at a time, in order, and track the position in ping's output.

    `phase` is "outside" (of any ping), "body", "footer" (before its counts) or "after" (after its counts). `ping` is
    the latest ping; None before the first.
    """

    def __init__(self, path: File):
        self.path = path
        self.phase = "outside"
        self.ping: Ping = LATER
        self.last_reply: tuple[int, int] = (0, 0)
        self._first_other: tuple[int | None, str] = (None, "nothing")
        self._other: tuple[int | None, str] = (None, "nothing")
        self._n_other = 0
        self._unfinished: tuple[int, str] | None = None
        self._dump_follows = False
        self._indent, self._is_timed = "", False

    def feed(self, line_number: int, text: str, *, whole: bool = True) -> Event | None:
        """
        Return the event in a line, or None; raise RawDataError for a line that is not allowed here.

        A last line that is not `whole`, because ping was killed while writing it, counts only if nothing essential can
        be missing.
        """
        text = text.removesuffix("\r").strip("\a")  # the bell of ping -a
        text, at_s = self._without_prefix(text)
        event = self._read(line_number, text, whole)
        return event._replace(received_at_s=at_s) if event and event.received_at_s is None else event

    def _without_prefix(self, text: str) -> tuple[str, float | None]:
        """Return the line without its indentation or the time before it, and this time, if known."""
        may_begin = any(word in text for word in MAY_BE_PREFIXED)
        if not (may_begin or self._indent or self._is_timed):
            return text, None
        if not (before := PREFIX.match(text)):
            return text, None
        if may_begin and not FPING_ECHO.fullmatch(text):
            self._indent, self._is_timed = before["indent"], before["time"] is not None
        if not (self._is_timed and before["time"]):
            return text.removeprefix(self._indent), None
        return text[before.end() :], _unix_s(before)

    def _read(self, line_number: int, text: str, whole: bool) -> Event | None:
        if len(text) > LONGEST_LINE and not (self._is_of_fping() and FPING_SUMMARY.match(text)):
            self.refuse(line_number, text, f"lines of at most {LONGEST_LINE} characters")
        if not text.strip():
            return None
        if not whole and self._is_cut(text):
            return None
        if text.startswith("P") and self._begins(line_number, text):
            return None
        if "% loss)" in text or self._is_of_fping():
            if found := fping_echo(line_number, text):
                return self._of_fping(text, *found)
            if self._is_of_fping() and FPING_SUMMARY.match(text):
                self.phase = "outside"
                return None
        return getattr(self, f"_{self.phase}")(line_number, text)

    def end(self) -> None:
        if self.ping is None:
            self.refuse(*self._first_other, HEADER)

    def refuse(self, line_number: int | None, found: str, expected: str) -> NoReturn:
        """Raise RawDataError for a line, with what was found and what was expected."""
        raise RawDataError(self.path, line_number, found, expected)

    def _begins(self, line_number: int, text: str) -> bool:
        for dialect, first_sequence, header in HEADERS:
            if line := header.fullmatch(text):
                if self.phase == "footer":
                    self.refuse(line_number, text, "the counts of packets transmitted and received")
                self._start(line_number, dialect, first_sequence, line["target"])
                return True
        return False

    def _start(self, line_number: int, dialect: str, first_sequence: int, target: str) -> None:
        number = 0 if self.ping is None else self.ping.number + 1
        self.ping = Ping(number, line_number, dialect, first_sequence, target)
        self.phase, self.last_reply, self._n_other, self._unfinished = "body", (0, 0), 0, None

    def _is_of_fping(self) -> bool:
        return self.phase == "body" and self.ping.dialect == "fping"

    def _of_fping(self, text: str, target: str, event: Event) -> Event:
        """Return an echo of fping. As fping prints no header, a first echo, or another target, begins a new ping."""
        is_first = event.sequence == 0 and not event.duplicate
        same = self._is_of_fping() and self.ping.target == target
        if self._is_of_fping() and not same and not is_first:
            self.refuse(event.line_number, text, f"echoes of {self.ping.target} only (fping of one host)")
        if not same or (is_first and self.ping.counted):
            if self.phase == "footer":
                self.refuse(event.line_number, text, "the counts of packets transmitted and received")
            self._start(event.line_number, "fping", 0, target)
        self.ping.counted += is_first
        return event

    def _outside(self, line_number: int, text: str) -> None:
        if ONLY_PING.search(text):
            if self._unfinished:
                self.refuse(*self._unfinished, "a line of ping in English")
            header = self._other if LIKE_A_HEADER.match(self._other[1]) else (line_number, text)
            echo = any(line.fullmatch(text) for line in (REPLY_LINE, SILENCE_LINE, REPORT_LINE, WINDOWS_REPLY_LINE))
            foreign = ANOTHER_LANGUAGE.search(text) and not echo and not IN_ENGLISH.search(text)
            self.refuse(*header, ENGLISH if foreign else HEADER)
        self._other, self._n_other = (line_number, text), self._n_other + 1
        if self._first_other[0] is None:
            self._first_other = self._other
        if self._n_other > MOST_OTHER_LINES:
            where = self._first_other if self.ping is None else self._other
            self.refuse(*where, f"{HEADER}, within {MOST_OTHER_LINES:,} lines")

    def _is_cut(self, text: str) -> bool:
        if self.phase == "outside" or text.endswith((" ms", "% packet loss", "% loss)")):
            return False
        if self.phase == "footer" and COUNTS_LINE.fullmatch(text) and "% packet loss" in text:
            return False
        return text[0] in "0123456789 " or any(text.startswith(b) or b.startswith(text) for b in BEGINNINGS)

    def _body(self, line_number: int, text: str) -> Event | None:
        if STATISTICS_LINE.fullmatch(text) or text.startswith("Ping statistics for "):
            self.phase = "footer"
            return None
        read = {"windows": self._windows, "fping": lambda *line: None}.get(self.ping.dialect, self._unix)
        event = read(line_number, text)
        if event is not None:
            return event
        dump, self._dump_follows = self._dump_follows, text.startswith(DUMP_HEADER)
        notes = (NOTE_LINE, MESSAGE_LINE, *([FPING_NOTE] if self.ping.dialect == "fping" else []))
        if dump or self._dump_follows or any(note.fullmatch(text) for note in notes):
            return None
        if FLOOD_LINE.match(text):
            self.refuse(line_number, text, "a line per echo (ping without -f)")
        if ONLY_PING.search(text) or LIKE_AN_ECHO.search(text):
            self.refuse(line_number, text, "a line of ping in English")
        self.phase, self._unfinished = "outside", (line_number, text)  # rejected if more echoes follow
        return self._outside(line_number, text)

    def _unix(self, line_number: int, text: str) -> Event | None:
        if line := REPLY_LINE.fullmatch(text):
            return self._reply(line_number, text, line)
        if line := SILENCE_LINE.fullmatch(text):
            return Event(line_number, SILENCE, int(line["seq"]), number(line["at"]), error=line["message"])
        if line := REPORT_LINE.fullmatch(text):
            sequence = self._in_range(line_number, text, line["seq"], 65535)
            who, message = line["who"] or line["bare"], line["message"].strip()
            return Event(line_number, REPORT, sequence, number(line["at"]), responder=who, error=message)
        if DAMAGE_LINE.fullmatch(text) and self.last_reply[0]:
            return Event(line_number, REPORT, self.last_reply[1], error=text)
        return None

    def _reply(self, line_number: int, text: str, line: re.Match[str]) -> Event:
        sequence = self._in_range(line_number, text, line["seq"], 65535)
        self.last_reply = (line_number, sequence)
        marks = line["marks"].replace(" (DUP!)", "").strip()
        rtt_ms = number(line["time"])
        if rtt_ms == 0:  # impossible: the clock was set back, or is too coarse
            rtt_ms, marks = None, f"time={line['time']} ms {marks}".strip()
        elif rtt_ms and self.ping.dialect == "iputils" and WITHOUT_CARRY.fullmatch(line["time"]):
            rtt_ms, marks = float(round(rtt_ms + CARRY_MS)), f"time={line['time']} ms {marks}".strip()
        kind = REPORT if "BAD CHECKSUM" in marks else REPLY
        ttl = self._in_range(line_number, text, line["ttl"] or -1, 255)
        who, is_again = line["who"] or line["bare"], "(DUP!)" in line["marks"]
        about = (number(line["at"]), rtt_ms, ttl, int(line["size"]), who, marks or None, is_again)
        return Event(line_number, kind, sequence, *about)

    def _windows(self, line_number: int, text: str) -> Event | None:
        if line := WINDOWS_REPLY_LINE.fullmatch(text):
            exact = line["sign"] == "=" and int(line["time"]) > 0
            self.ping.counted += 1
            ttl = self._in_range(line_number, text, line["ttl"] or -1, 255)
            rtt_ms, remark = (float(line["time"]), None) if exact else (None, f"time{line['sign']}{line['time']}ms")
            about = (None, rtt_ms, ttl, int(line["size"] or -1), line["who"], remark)
            return Event(line_number, REPLY, self.ping.counted, *about)
        if line := WINDOWS_REPORT_LINE.fullmatch(text):
            self.ping.counted += 1
            self.ping.reported += 1
            who, message = line["who"], line["message"].strip()
            return Event(line_number, REPORT, self.ping.counted, responder=who, error=message)
        if line := WINDOWS_SILENCE_LINE.fullmatch(text):
            self.ping.counted += 1
            return Event(line_number, SILENCE, self.ping.counted, error=line["message"])
        return None

    def _footer(self, line_number: int, text: str) -> None:
        counts = (WINDOWS_COUNTS_LINE if self.ping.dialect == "windows" else COUNTS_LINE).fullmatch(text)
        if not counts:
            self.refuse(line_number, text, "the counts of packets transmitted and received")
        more = DUPLICATES.search(counts["more"])
        transmitted, received = int(counts["transmitted"]), int(counts["received"])
        self.ping.footer = Footer(line_number, text, transmitted, received, int(more[1]) if more else 0)
        self.phase = "after"
        try:
            loss = float(counts["loss"] or "nan")
        except ValueError:
            self.refuse(line_number, text, "a number before '% packet loss'")
        if transmitted and abs(100 * (transmitted - received) / transmitted - loss) > 1:
            self.refuse(line_number, text, f"a loss that fits {received} received out of {transmitted}")

    def _after(self, line_number: int, text: str) -> None:
        line = WINDOWS_AFTER_COUNTS_LINE if self.ping.dialect == "windows" else AFTER_COUNTS_LINE
        if line.fullmatch(text):
            self.ping.times = self.ping.times or Times.of(line_number, text)
        else:
            self.phase = "outside"
            self._outside(line_number, text)

    def _in_range(self, line_number: int, text: str, digits: str | int, most: int) -> int:
        if int(digits) > most:
            self.refuse(line_number, text, f"a sequence up to 65535 and a ttl up to 255 (here {digits})")
        return int(digits)


def _unix_s(before: re.Match[str]) -> float | None:
    """Return the time in a prefix in Unix seconds; None if its time zone is unknown."""
    if before["unix"]:
        return float(before["unix"])
    return _parsed_s(before["time"]) if any(before[f"zone{n}"] for n in (1, 2, 3)) else None


@lru_cache
def _parsed_s(time: str) -> float | None:
    try:
        return pd.Timestamp(time.replace(",", ".").replace("_", " ")).timestamp()
    except (ValueError, OverflowError):
        return None
