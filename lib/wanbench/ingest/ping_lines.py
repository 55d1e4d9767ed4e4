"""
What one line of ping says, in all its dialects. `ping` uses it; imports `errors` only.

Known: iputils (old and new), busybox, BSD and macOS, GNU inetutils, Windows in English; IPv4 and IPv6. A line
that is none of theirs is refused: it could be an echo in words that this module does not know.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..errors import RawDataError

REPLY, SILENCE, REPORT = 0, 1, 2  # a reply; "no answer yet"; an error that names its echo
LONGEST_LINE = 4096
MARKS = ("DUP!", "BAD CHECKSUM!", "DIFFERENT ADDRESS!", "truncated")

_AT = r"(?:\[(?P<at>[0-9]{1,12}\.[0-9]{1,6})\] )?"
_ADDRESS = r"[0-9A-Za-z.:%_-]{1,128}"
_WHO = rf"(?:[^ ]{{1,255}} \((?P<who>{_ADDRESS})\)|(?P<bare>{_ADDRESS}))"
REPLY_LINE = re.compile(
    rf"{_AT}(?P<size>[0-9]{{1,6}}) bytes from {_WHO}[:,] (?:icmp_[rs]eq|seq)=(?P<seq>[0-9]{{1,5}})"
    r"(?: ident=[0-9]{1,5})?(?: (?:ttl|hlim)=(?P<ttl>[0-9]{1,3}))?"
    r"(?: time=(?P<time>[0-9]{1,9}(?:\.[0-9]{1,6})?) ms)?"
    rf"(?P<marks>(?: \((?:{'|'.join(MARKS)})\))*)(?:\t\(same route\))?"
)
SILENCE_LINE = re.compile(
    rf"{_AT}(?P<words>no answer yet|Request timeout) for icmp_seq(?:=| )(?P<seq>[0-9]{{1,9}})"
)
REPORT_LINE = re.compile(rf"{_AT}From {_WHO}:? icmp_seq=(?P<seq>[0-9]{{1,5}}) (?P<words>[ -~]{{1,200}})")
DAMAGE_LINE = re.compile(r"wrong (?:data byte|total length) [ -~]{1,100}")
# Messages that name no echo, IP options, and dumps of headers and payloads.
MESSAGE_LINE = re.compile(r"ping6?: .*|ai->.*|WARNING: .*|Warning: .*|PATTERN: .*")
NOTE_LINE = re.compile(
    r"(?:RR|TS|LSRR|SSRR): ?.*|NOP|unknown option .*|\t.*|#[0-9]+\t[0-9a-f ]*|[cd]p:[0-9a-f ]*"
    r"|\^C|\r?[0-9]+/[0-9]+ packets.*|load: .*"
    rf"|{_AT}[0-9]{{1,6}} bytes from {_ADDRESS}(?: \([^ ]+\))?: [A-Z][ -~]*"
)
DUMP_HEADER = "Vr HL TOS "
STATISTICS_LINE = re.compile(r"(?:\^C)?--- .* ping6? statistics ---")
COUNTS_LINE = re.compile(
    r"(?P<transmitted>[0-9]{1,12}) packets transmitted, (?P<received>[0-9]{1,12}) (?:packets )?received"
    r"(?P<more>.*?)(?:, (?P<loss>-?[0-9.e+-]{1,12})% packet loss.*)?"
)
DUPLICATES = re.compile(r"\+?([0-9]{1,12}) duplicates")
AFTER_COUNTS_LINE = re.compile(r"(?:rtt|round-trip) .*|,? ?pipe .*|,? ?ipg/ewma .*|ping6?: .*")

WINDOWS_REPLY_LINE = re.compile(
    r"Reply from (?P<who>[^ ]{1,128}): (?:bytes=(?P<size>[0-9]{1,6}) )?"
    r"time(?P<sign>[=<])(?P<time>[0-9]{1,9})ms(?: TTL=(?P<ttl>[0-9]{1,3}))? ?"
)
WINDOWS_REPORT_LINE = re.compile(r"Reply from (?P<who>[^ ]{1,128}): (?P<words>[A-Z][ -~]{1,200})")
WINDOWS_SILENCE_LINE = re.compile(
    r"(?P<words>Request timed out|General failure|Hardware error|Destination (?:host|net|port) unreachable"
    r"|Negotiating IP Security|PING: transmit failed[ -~]{0,80}?)\. ?"
)
WINDOWS_COUNTS_LINE = re.compile(
    r" *Packets: Sent = (?P<transmitted>[0-9]{1,12}), Received = (?P<received>[0-9]{1,12}),"
    r" Lost = [0-9]{1,12}(?P<more>) \((?P<loss>[0-9]{1,3})% loss\),? ?"
)
WINDOWS_AFTER_COUNTS_LINE = re.compile(r" *(?:Approximate round trip|Minimum = ).*|Control-C|\^C")

HEADERS = (
    # (dialect, sequence of the first echo, the line)
    ("iputils", 1, re.compile(r"PING .* \([^ ]+\) (?:from [^ ]+ [^ ]*: )?[0-9]+\([0-9]+\) bytes of data\.")),
    ("bsd", 0, re.compile(r"PING .* \([^ ]+\)(?: from [^ ]+)?: [^:]*data bytes(?:, id .*)?")),
    (
        "iputils",
        1,
        re.compile(r"PING .*\([^ ]+\) (?:, flow [^ ]+, )?(?:from [^ ]+ [^ ]*: )?[0-9]+ data bytes"),
    ),
    ("bsd", 0, re.compile(r"PING6\([0-9=+ ]+bytes\) [^ ]+ --> [^ ]+")),
    ("windows", 1, re.compile(r"Pinging [^ ]+ (?:\[[^ ]+\] )?(?:from [^ ]+ )?with [0-9]+ bytes of data: ?")),
)
BEGINNINGS = (
    "[",
    "From ",
    "no answer yet",
    "Request time",
    "--- ",
    "Reply from ",
    "Ping stat",
    "rtt ",
    "round-t",
)
ANOTHER_LANGUAGE = re.compile(rb"seq=[0-9]+ ttl=[0-9]|[0-9] ?ms TTL=[0-9]")


class Event(NamedTuple):
    """What a line says about one echo; -1 and None stand for "not said"."""

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
    """The counts that ping printed at its end, and where."""

    line_number: int
    text: str
    transmitted: int
    received: int
    duplicates: int


class LineReader:
    """
    Reads lines in order, one at a time, and knows where in ping's output it is.

    `phase` is "before", "body", "footer" (its counts are still to come) or "after". `dialect` and
    `first_sequence` come from the header, `footer` from the end. `reported` counts the errors that Windows
    counts as received.
    """

    def __init__(self, path, opening: bytes = b""):
        self.path = path
        self.phase, self.dialect, self.first_sequence = "before", "", 1
        self.footer: Footer | None = None
        self.reported = 0
        self.last_reply: tuple[int, int] = (0, 0)
        self._opening = opening
        self._message: tuple[int | None, str] = (None, "nothing")
        self._counted = 0
        self._dump_follows = False

    def feed(self, line_number: int, text: str, *, whole: bool = True) -> Event | None:
        """
        What the line says about an echo, or None; RawDataError if it is no line of ping.

        `whole` is False for a last line without its newline: ping was killed while it wrote, so the line
        counts only if nothing that matters can be missing.
        """
        text = text.removesuffix("\r")
        if len(text) > LONGEST_LINE:
            self.refuse(line_number, text, f"lines of at most {LONGEST_LINE} characters")
        if not text.strip():
            return None
        if not whole and self._is_cut(text):
            return None
        return getattr(self, f"_{self.phase}")(line_number, text)

    def end(self) -> None:
        """To be called after the last line: refuses a file in which no ping began."""
        if self.phase == "before":
            line_number, text = self._message
            self.refuse(line_number, text, "output of ping, which begins with 'PING' or 'Pinging'")

    def refuse(self, line_number: int | None, found: str, expected: str):
        """Raise the RawDataError for this file."""
        raise RawDataError(self.path, line_number, found, expected)

    def _is_cut(self, text):
        if self.phase == "before" or text.endswith((" ms", "% packet loss")):
            return False
        if self.phase == "footer" and COUNTS_LINE.fullmatch(text) and "% packet loss" in text:
            return False
        return text[0] in "0123456789 " or any(text.startswith(b) or b.startswith(text) for b in BEGINNINGS)

    def _before(self, line_number, text):
        for dialect, first_sequence, line in HEADERS:
            if line.fullmatch(text):
                self.phase, self.dialect, self.first_sequence = "body", dialect, first_sequence
                return
        if not MESSAGE_LINE.fullmatch(text):
            expected = "output of ping, which begins with 'PING' or 'Pinging'"
            if ANOTHER_LANGUAGE.search(self._opening) and not _is_echo(text):
                expected = "output of ping in English (LC_ALL=C, or on Windows chcp 437)"
            self.refuse(line_number, text, expected)
        if self._message[0] is None:
            self._message = (line_number, text)

    def _body(self, line_number, text):
        if STATISTICS_LINE.fullmatch(text) or text.startswith("Ping statistics for "):
            self.phase = "footer"
            return None
        event = (
            self._windows(line_number, text) if self.dialect == "windows" else self._unix(line_number, text)
        )
        if event is not None:
            return event
        dump, self._dump_follows = self._dump_follows, text.startswith(DUMP_HEADER)
        if dump or self._dump_follows or NOTE_LINE.fullmatch(text) or MESSAGE_LINE.fullmatch(text):
            return None
        self._refuse_another_ping(line_number, text)
        if text[0] in ".\b":
            self.refuse(line_number, text, "a line per echo (ping without -f)")
        self.refuse(line_number, text, "a line of ping in English")

    def _unix(self, line_number, text):
        if line := REPLY_LINE.fullmatch(text):
            return self._reply(line_number, text, line)
        if line := SILENCE_LINE.fullmatch(text):
            return Event(line_number, SILENCE, int(line["seq"]), _number(line["at"]), error=line["words"])
        if line := REPORT_LINE.fullmatch(text):
            sequence = self._in_range(line_number, text, line["seq"], 65535)
            who = line["who"] or line["bare"]
            return Event(
                line_number, REPORT, sequence, _number(line["at"]), responder=who, error=line["words"].strip()
            )
        if DAMAGE_LINE.fullmatch(text) and self.last_reply[0]:
            return Event(line_number, REPORT, self.last_reply[1], error=text)
        return None

    def _reply(self, line_number, text, line):
        sequence = self._in_range(line_number, text, line["seq"], 65535)
        self.last_reply = (line_number, sequence)
        marks = line["marks"].replace(" (DUP!)", "").strip()
        rtt_ms = _number(line["time"])
        if rtt_ms == 0:  # the clock was set back, or is too coarse: no light is that fast
            rtt_ms, marks = None, f"time={line['time']} ms {marks}".strip()
        return Event(
            line_number,
            REPORT if "BAD CHECKSUM" in marks else REPLY,
            sequence,
            _number(line["at"]),
            rtt_ms,
            self._in_range(line_number, text, line["ttl"] or -1, 255),
            int(line["size"]),
            line["who"] or line["bare"],
            marks or None,
            "(DUP!)" in line["marks"],
        )

    def _windows(self, line_number, text):
        if line := WINDOWS_REPLY_LINE.fullmatch(text):
            exact = line["sign"] == "=" and int(line["time"]) > 0
            self._counted += 1
            return Event(
                line_number,
                REPLY,
                self._counted,
                None,
                float(line["time"]) if exact else None,
                self._in_range(line_number, text, line["ttl"] or -1, 255),
                int(line["size"] or -1),
                line["who"],
                None if exact else f"time{line['sign']}{line['time']}ms",
            )
        if line := WINDOWS_REPORT_LINE.fullmatch(text):
            self._counted += 1
            self.reported += 1
            return Event(
                line_number, REPORT, self._counted, responder=line["who"], error=line["words"].strip()
            )
        if line := WINDOWS_SILENCE_LINE.fullmatch(text):
            self._counted += 1
            return Event(line_number, SILENCE, self._counted, error=line["words"])
        return None

    def _footer(self, line_number, text):
        counts = (WINDOWS_COUNTS_LINE if self.dialect == "windows" else COUNTS_LINE).fullmatch(text)
        if not counts:
            self.refuse(line_number, text, "the counts of packets transmitted and received")
        more = DUPLICATES.search(counts["more"])
        transmitted, received = int(counts["transmitted"]), int(counts["received"])
        self.footer = Footer(line_number, text, transmitted, received, int(more[1]) if more else 0)
        self.phase = "after"
        try:
            loss = float(counts["loss"] or "nan")
        except ValueError:
            self.refuse(line_number, text, "a number before '% packet loss'")
        if transmitted and abs(100 * (transmitted - received) / transmitted - loss) > 1:
            self.refuse(line_number, text, f"the loss of {received} received out of {transmitted}")

    def _after(self, line_number, text):
        line = WINDOWS_AFTER_COUNTS_LINE if self.dialect == "windows" else AFTER_COUNTS_LINE
        if not line.fullmatch(text):
            self._refuse_another_ping(line_number, text)
            self.refuse(line_number, text, "nothing but round-trip times after the counts")

    def _refuse_another_ping(self, line_number, text):
        if any(header.fullmatch(text) for _, _, header in HEADERS):
            self.refuse(line_number, text, "the output of one ping only")

    def _in_range(self, line_number, text, digits, most):
        if int(digits) > most:
            self.refuse(line_number, text, f"a sequence up to 65535 and a ttl up to 255 (here {digits})")
        return int(digits)


def _is_echo(text):
    return any(line.fullmatch(text) for line in (REPLY_LINE, SILENCE_LINE, REPORT_LINE, WINDOWS_REPLY_LINE))


def _number(digits):
    return None if digits is None else float(digits)
