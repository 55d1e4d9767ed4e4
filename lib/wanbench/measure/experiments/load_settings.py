"""Check the settings that Kafka loads share."""

from __future__ import annotations

import re
from collections.abc import Mapping

from wanbench.checks import refusal
from wanbench.errors import ParameterError
from wanbench.measure.kafka.access import may_hold_secret

from .payloads import SMALLEST_JSON_BYTES

ACKS = ("0", "1", "all")
REGION = "region"  # value of client_rack for the client's own region; clusters of a lab name racks after regions
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
_OWNED: dict[str, dict[str, str | None]] = {
    "producer_settings": {
        **dict.fromkeys(("bootstrap.servers", "client.id", "key.serializer", "value.serializer")),
        "acks": "give acks",
        "batch.size": "give batch_bytes",
        "linger.ms": "give linger_ms",
        "compression.type": "give compression",
        "enable.idempotence": "give idempotence",
    },
    "consumer_settings": {
        **dict.fromkeys(("bootstrap.servers", "client.id", "group.id", "auto.offset.reset")),
        **dict.fromkeys(("key.deserializer", "value.deserializer")),
        "client.rack": "give client_rack",
    },
    "topic_settings": {},
}
"""Kafka settings that a load sets itself, by parameter, each with what to do instead."""
_SETTING_NAME = re.compile(r"[a-z][a-z0-9.-]*")


def check_clients(load: object, **owned: Mapping[str, str | None]) -> None:
    """
    Check the settings that all loads by clients share, and store Kafka's settings as pairs.

    `owned` are further Kafka settings that the load sets itself, by parameter, as in `check_settings`.
    """
    kind, rack = type(load).__name__, load.client_rack
    if rack is not None and (not isinstance(rack, str) or not rack or not rack.isprintable()):
        raise refusal(f"{kind} client_rack", rack, f"None, {REGION!r} or the name of a rack")
    for name, common in _OWNED.items():
        object.__setattr__(load, name, setting_pairs(load, name))
        check_settings(load, name, {**common, **owned.get(name, {})})
    if load.payload == "json" and load.record_bytes < SMALLEST_JSON_BYTES:
        raise ParameterError(
            f"{kind} record_bytes is {load.record_bytes}; JSON records have at least {SMALLEST_JSON_BYTES}."
        )


def check_sent_bytes(load: object, sent_bytes: int) -> None:
    """Raise ParameterError if a load sends more than its `most_bytes`."""
    if sent_bytes > load.most_bytes:
        raise ParameterError(
            f"{type(load).__name__} would send {sent_bytes:,} bytes; most_bytes allows {load.most_bytes:,.0f}. Send "
            "less or raise it."
        )


def rack_of(client_rack: str | None, region: str) -> str | None:
    """Return the client.rack of a client in a region."""
    return region if client_rack == REGION else client_rack


def setting_pairs(experiment: object, parameter: str) -> tuple[tuple[str, str], ...]:
    """Return Kafka's settings as sorted pairs of text, which are comparable, hashable and serialisable."""
    settings = getattr(experiment, parameter)
    try:
        items = dict(settings).items()
    except (TypeError, ValueError):  # the value is not shown: it may be a secret
        given = f"{type(experiment).__name__} {parameter} is a {type(settings).__name__}"
        raise ParameterError(f"{given}; allowed: a mapping of names to values.") from None
    texts = ((str(name), str(value).lower() if isinstance(value, bool) else str(value)) for name, value in items)
    return tuple(sorted(texts))


def check_settings(experiment: object, parameter: str, owned: Mapping[str, str | None]) -> None:
    """
    Reject Kafka settings that are secret, malformed, or set by the experiment itself (`owned`, with what to use
    instead).
    """
    label = f"{type(experiment).__name__} {parameter}"
    for key, value in getattr(experiment, parameter):
        if may_hold_secret(key):  # before an error that shows the value
            raise ParameterError(
                f"{label} has {key!r}, a secret; give the clients' security to the cluster, not to the experiment."
            )
        if not _SETTING_NAME.fullmatch(key) or not value or "=" in value or not value.isprintable():
            raise ParameterError(
                f"{label} has {key!r}: {value!r}; allowed: names like 'fetch.min.bytes', and values that are one line "
                "of text without '='."
            )
        if key in owned:
            raise ParameterError(f"{label} has {key!r}; {owned[key] or 'the load sets it itself'}.")
