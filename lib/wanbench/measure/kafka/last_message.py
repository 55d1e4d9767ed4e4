"""The last error of a broker, from its log or Java's output."""

from __future__ import annotations

import re

_HEAD = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z (?P<level>[A-Z]+) (?P<message>.*?)( \([\w.$]+\))?$")
_PACKAGE = re.compile(r"\b(?:[a-z]\w*\.)+([A-Z]\w*(?:Exception|Error))")
_NOISE = re.compile(
    r"at |\.\.\. |\[[\d.]+s\]\[(warning|info)\]|OpenJDK.* warning|Picked up |Error: Could not create|Error: A fatal"
)
_MOST = 400
"""Characters; Kafka's own messages may hold a whole configuration."""


def last_message(log: bytes, printed: bytes) -> str:
    """
    The error that ended a broker, with its root cause, in one line.

    It is the log's first fatal error (later ones follow from it), else its last error, else Java's output.

    Examples
    --------
    >>> log = b'''2026-01-01T00:00:00.000Z ERROR Exiting Kafka (kafka.Kafka$)
    ... org.apache.kafka.common.KafkaException: Socket server failed
    ...     at somewhere
    ... Caused by: java.net.BindException: Address already in use
    ...     at somewhere
    ... 2026-01-01T00:00:01.000Z INFO bye (kafka.Kafka$)'''
    >>> last_message(log, b"")
    'Exiting Kafka: KafkaException: Socket server failed: BindException: Address already in use'
    >>> at = b"2026-01-01T00:00:00.000Z"
    >>> last_message(at + b" ERROR Fatal error: no disk (A)\\n" + at + b" ERROR more (B)", b"")
    'Fatal error: no disk'
    >>> last_message(b"", b"Unrecognized VM option 'UseXGC'\\nError: Could not create the Java Virtual Machine.")
    "Unrecognized VM option 'UseXGC'"
    """
    error = _last_error(log.decode("utf-8", "replace").splitlines())
    if error is None:
        error = _printed_error(printed.decode("utf-8", "replace").splitlines())
    return error if len(error) <= _MOST else f"{error[: _MOST - 3]}..."


def _printed_error(lines):
    kept = [line.strip() for line in lines if line.strip() and not _NOISE.match(line.strip())]
    causes = [line for line in kept[1:] if line.startswith("Caused by: ")]
    return ": ".join(map(_plain, [*kept[:1], *causes[-1:]])) or "it printed nothing"


def _plain(line):
    """A line without package names of exceptions."""
    return _PACKAGE.sub(r"\1", line).removeprefix("Caused by: ")


def _last_error(lines):
    last = None
    for number, line in enumerate(lines):
        head = _HEAD.match(line)
        if head and head["level"] in ("ERROR", "FATAL"):
            last = number, head["message"]
            if head["level"] == "FATAL" or "fatal" in head["message"].lower():
                break
    if last is None:
        return None
    number, message = last
    parts = [message]
    for line in lines[number + 1 :]:
        if _HEAD.match(line):
            break
        if not line.startswith((" ", "\t")):
            parts.append(_plain(line))
    kept = []
    for part in [parts[0], *parts[1:2], *parts[-1:]]:
        part = part.strip().rstrip(":")
        if part and not any(part in other for other in kept):
            kept.append(part)
    return ": ".join(kept)
