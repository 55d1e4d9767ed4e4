"""Corrupt one line of a consumer's output on purpose, to test the checker."""

from __future__ import annotations

import json

KINDS = ("drop", "duplicate", "reorder", "alter")
_RECEIVED = b'["received"'


def damaged(printed: bytes, kind: str) -> tuple[bytes, dict | None]:
    """
    A consumer's output with one record dropped, duplicated, swapped with the next of its producer and partition, or
    altered; and that record. None if no record qualifies.

    The record is from the middle and was received once.

    >>> damaged(b'["received",0,5,1,7,100,false]\\n', "alter")
    (b'["received",null,null,1,7,100,true]\\n', {'kind': 'alter', 'producer': 0, 'sequence': 5})
    """
    lines = printed.splitlines(keepends=True)
    receipts = {
        n: json.loads(line) for n, line in enumerate(lines) if line.startswith(_RECEIVED) and line.endswith(b"\n")
    }
    times = {}
    for receipt in receipts.values():
        times[_record(receipt)] = times.get(_record(receipt), 0) + 1
    once = [n for n, receipt in receipts.items() if times[_record(receipt)] == 1 and receipt[1] is not None]
    for n in once[len(once) // 2 :] + once[: len(once) // 2]:
        receipt = receipts[n]
        about = {"kind": kind, "producer": receipt[1], "sequence": receipt[2]}
        if kind == "drop":
            lines[n] = b""
        elif kind == "duplicate":
            lines[n] *= 2
        elif kind == "alter":
            lines[n] = _line([receipt[0], None, None, *receipt[3:6], True])
        else:
            later = (m for m in once if m > n and _stream(receipts[m]) == _stream(receipt))
            if (m := next(later, None)) is None:
                continue
            lines[n], lines[m] = lines[m], lines[n]
        return b"".join(lines), about
    return printed, None


def _record(receipt):
    return tuple(receipt[1:3])


def _stream(receipt):
    """Producer and partition of a record: within them order is kept."""
    return receipt[1], receipt[3]


def _line(value):
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
