"""What a broker said last, from its log or from what Java printed."""

from __future__ import annotations

import re

_HEAD = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z (?P<level>[A-Z]+) (?P<said>.*?)( \([\w.$]+\))?$")
_MOST = 400


def last_words(log: bytes, printed: bytes) -> str:
    """
    The last error of a log with its root cause, or else what Java printed, in one line.

    Examples
    --------
    >>> log = b'''2026-01-01T00:00:00.000Z ERROR Exiting Kafka (kafka.Kafka$)
    ... org.apache.kafka.common.KafkaException: Socket server failed
    ...     at somewhere
    ... Caused by: java.net.BindException: Address already in use
    ...     at somewhere
    ... 2026-01-01T00:00:01.000Z INFO bye (kafka.Kafka$)'''
    >>> last_words(log, b"")
    'Exiting Kafka: KafkaException: Socket server failed: BindException: Address already in use'
    >>> last_words(b"", b"Unrecognized VM option 'UseXGC'\\nError: Could not create the Java Virtual Machine.")
    "Unrecognized VM option 'UseXGC'; Error: Could not create the Java Virtual Machine."
    """
    error = _last_error(log.decode("utf-8", "replace").splitlines())
    if error is None:
        lines = [line.strip() for line in printed.decode("utf-8", "replace").splitlines()]
        told = [line for line in lines if line and not line.startswith(("at ", "..."))]
        error = "; ".join(told[-2:]) or "it said nothing"
    return error if len(error) <= _MOST else f"{error[: _MOST - 3]}..."


def _last_error(lines):
    found = None
    for number, line in enumerate(lines):
        head = _HEAD.match(line)
        if head and head["level"] in ("ERROR", "FATAL"):
            found = number, head["said"]
    if found is None:
        return None
    number, said = found
    parts = [said]
    for line in lines[number + 1 :]:
        if _HEAD.match(line):
            break
        if not line.startswith((" ", "\t")):
            what = re.sub(r"\b(?:[a-z]\w*\.)+([A-Z]\w*(?:Exception|Error))", r"\1", line)
            parts.append(what.removeprefix("Caused by: "))
    kept = []
    for part in [parts[0], *parts[1:2], *parts[-1:]]:
        part = part.strip().rstrip(":")
        if part and not any(part in other for other in kept):
            kept.append(part)
    return ": ".join(kept)
