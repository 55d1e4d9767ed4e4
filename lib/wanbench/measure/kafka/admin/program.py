"""
Send one administrative request to a cluster: `python -m wanbench.measure.kafka.admin.program <settings file> <verb> [<arguments
in JSON>]`.

The settings file holds kafka-python's keywords in JSON. The answer is one line of JSON on stdout, {"answer": ...} or
{"error": {"kind": ..., "message": ...}} with Kafka's own name and message; the status is 0 or 3. `watch` prints a line
per sample instead. Settings are never printed.
"""

from __future__ import annotations

import inspect
import json
import logging
import os
import sys
import time
from pathlib import Path

from kafka.errors import KafkaError, UnknownBrokerIdError, UnknownTopicOrPartitionError

from . import groups, queries, watch
from .connection import connected, message

REFUSED = 3
CONNECT_S = 15.0
"""Default timeout of the search for a broker."""
REQUEST_S = 30.0
"""Default timeout of one answer: Kafka's own request.timeout.ms."""
PAUSE_S = 0.1
READING = {"cluster", "topics", "reassignments", "settings", "groups", "offsets", "log_ends"}
"""Read-only verbs, which are retried on another broker if one does not answer."""

VERBS = {
    "cluster": queries.cluster,
    "topics": queries.topics,
    "create_topic": queries.create_topic,
    "delete_topic": queries.delete_topic,
    "reassign": queries.reassign,
    "reassignments": queries.reassignments,
    "elect": queries.elect,
    "lead": queries.lead,
    "settings": queries.settings,
    "change": queries.change,
    "groups": groups.groups,
    "offsets": groups.offsets,
    "log_ends": groups.log_ends,
}


def answered(settings: dict, verb: str, question: dict) -> dict:
    """The answer or the error, in printed form."""
    connect_s, request_s = question.pop("connect_s", CONNECT_S), question.pop("request_s", REQUEST_S)
    takes = list(inspect.signature(VERBS[verb]).parameters)[1:]
    if unknown := sorted(set(question) - set(takes)):
        return _error("UnknownArgument", f"{verb} takes {', '.join(takes) or 'nothing'}, not {', '.join(unknown)}")
    end, asked_before = time.monotonic() + connect_s, False
    try:
        admin = connected(settings, connect_s=connect_s, request_s=request_s)
        while True:
            try:
                return {"answer": VERBS[verb](admin, **question)}
            except UnknownBrokerIdError:  # this client does not know the controller yet: nothing was sent
                if time.monotonic() > end:
                    raise
                admin = connected(settings, connect_s=connect_s, request_s=request_s)
            except UnknownTopicOrPartitionError:
                if verb == "delete_topic" and asked_before:  # the answer to an earlier question was lost
                    return {"answer": None}
                if verb not in READING or time.monotonic() > end:
                    raise
            except KafkaError as error:
                # To delete twice harms nothing, and the broker that was asked may be one that is being restarted.
                if verb not in {*READING, "delete_topic"} or not error.retriable or time.monotonic() > end:
                    raise
                asked_before = True
            time.sleep(PAUSE_S)
    except KafkaError as error:
        return _error(getattr(error, "kind", type(error).__name__), message(error))
    except (OSError, ValueError, KeyError, TypeError) as error:
        return _error(type(error).__name__, " ".join(str(error).split()))


def main(arguments: list[str]) -> int:
    """Run the request in the arguments."""
    logging.disable(logging.CRITICAL)
    settings = json.loads(Path(arguments[0]).read_text())
    verb, question = arguments[1], json.loads(arguments[2]) if len(arguments) > 2 else {}
    secret = settings.get("sasl_plain_password")
    if verb == "watch":
        watch.watch(settings, lambda sample: _print(sample, secret), **question)
        return 0
    printed = answered(settings, verb, question)
    _print(printed, secret)
    return REFUSED if "error" in printed else 0


def _error(kind, message):
    return {"error": {"kind": kind, "message": message}}


def _print(line, secret):
    text = json.dumps(line)
    if secret and "error" in line:  # in an answer, a topic may have the name of a password
        text = text.replace(json.dumps(secret)[1:-1], "(hidden)")
    print(text, flush=True)


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)
