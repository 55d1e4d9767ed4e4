"""Check the settings that Kafka loads share, and generate records of known compressibility."""

import hashlib
import json
import random
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wanbench.checks import refusal
from wanbench.errors import ParameterError
from wanbench.measure.kafka.access import may_hold_secret
from wanbench.measure.labs.base import Host
from wanbench.measure.labs.programs import put_whole

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
"""Kafka settings that a load sets itself, by parameter; each value says what to use instead of the setting."""
_SETTING_NAME = re.compile(r"[a-z][a-z0-9.-]*")


def check_clients(load: Any, **owned: Mapping[str, str | None]) -> None:
    """
    Check the settings that all loads by clients share, and replace mappings of Kafka settings by sorted pairs.

    `owned` holds, by parameter such as `topic_settings`, further Kafka settings that the load sets itself, as
    `check_settings` describes.
    """
    kind, rack = type(load).__name__, load.client_rack
    if rack is not None and (not isinstance(rack, str) or not rack or not rack.isprintable()):
        raise refusal(f"{kind} client_rack", rack, f"None, {REGION!r} or the name of a rack")
    for name, common in _OWNED.items():
        object.__setattr__(load, name, setting_pairs(load, name))
        check_settings(load, name, {**common, **owned.get(name, {})})
    if load.payload == "json" and load.record_bytes < SMALLEST_JSON_BYTES:
        message = f"{kind} record_bytes is {load.record_bytes}; JSON records have at least {SMALLEST_JSON_BYTES}."
        raise ParameterError(message)


def check_sent_bytes(load: Any, sent_bytes: int) -> None:
    """Raise ParameterError if a load sends more than its `most_bytes`."""
    if sent_bytes > load.most_bytes:
        most = f"most_bytes allows {load.most_bytes:,.0f}. Send less or raise it"
        raise ParameterError(f"{type(load).__name__} would send {sent_bytes:,} bytes; {most}.")


def rack_of(client_rack: str | None, region: str) -> str | None:
    """Return the client.rack of a client in a region: `client_rack`, or the region if `client_rack` is "region"."""
    return region if client_rack == REGION else client_rack


def setting_pairs(experiment: object, parameter: str) -> tuple[tuple[str, str], ...]:
    """
    Return the Kafka settings in the field `parameter` as sorted pairs of text, which are comparable, hashable and
    serialisable.
    """
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
    Raise ParameterError if Kafka settings of an experiment are secret, malformed, or set by the experiment itself.

    `owned` maps each setting that the experiment sets itself to advice on what to use instead, or None.
    """
    label = f"{type(experiment).__name__} {parameter}"
    for key, value in getattr(experiment, parameter):
        if may_hold_secret(key):  # before an error that shows the value
            raise ParameterError(
                f"{label} has {key!r}, a secret; give the clients' security to the cluster, not to the experiment."
            )
        if not _SETTING_NAME.fullmatch(key) or not value or "=" in value or not value.isprintable():
            allowed = "names like 'fetch.min.bytes', and values that are one line of text without '='"
            raise ParameterError(f"{label} has {key!r}: {value!r}; allowed: {allowed}.")
        if key in owned:
            raise ParameterError(f"{label} has {key!r}; {owned[key] or 'the load sets it itself'}.")


SMALLEST_JSON_BYTES = 150  # The size of a JSON record without its note.
LARGEST_FILE_BYTES = 8 << 20  # maximum size of the file; the tool keeps all its records in memory
MOST_RECORDS = 10_000
"""
Maximum number of records. It is so large that a batch rarely repeats a record: batches that do compress better than
real data.
"""
_RUN_S = 30.0

_REGIONS = ("eu-central-1", "eu-west-2", "us-east-1", "us-west-2", "ap-southeast-1", "sa-east-1")
_KINDS = ("order.created", "order.paid", "order.shipped", "basket.changed", "account.opened", "search.done")
_WORDS = (
    "amber", "basin", "candle", "delta", "ember", "fjord", "garnet", "harbour", "island", "juniper", "kernel",
    "lantern", "meadow", "nickel", "orchard", "pebble", "quartz", "ribbon", "saddle", "timber", "umber", "valley",
    "willow", "yarrow",
)  # fmt: skip


_LEVELS = ("INFO", "INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR")
_CLASSES = ("c.shop.order.OrderService", "c.shop.basket.BasketController", "c.shop.search.SearchClient", "o.h.e.SqlLog")
_MESSAGES = (
    "request {id} GET /api/v2/orders/{n} answered 200 in {ms} ms", "user {n} added item {m} to basket {id}",
    "query took {ms} ms and gave {m} rows", "cache miss for key {id}, loaded in {ms} ms",
    "retry {m} of call {id} to payment after {ms} ms: connection reset by peer",
)  # fmt: skip
_SEVEN_BITS = bytes(11 if byte & 127 == 10 else byte & 127 for byte in range(256))
"""A translation table that maps every byte to an ASCII character other than a line end."""


def records(payload: str, record_bytes: int, seed: int) -> bytes:
    r"""
    Return lines of exactly `record_bytes` each, up to `LARGEST_FILE_BYTES` and `MOST_RECORDS`, for a producer tool.

    Payloads are valid UTF-8, as Kafka's tool requires. "json": names and structure repeat as in an application's
    records, while numbers, identifiers and words differ. "log": lines of a server's log, several per record, joined by
    tabs. "random": any ASCII characters, which carry 7 bits per byte; zstd and gzip compress them by a factor of 1.14,
    lz4 and snappy not at all.

    Examples
    --------
    >>> lines = records("json", 200, seed=0).split(b"\n")[:-1]
    >>> len(lines), {len(line) for line in lines}
    (10000, {200})
    """
    rng = random.Random(seed)
    n = max(1, min(MOST_RECORDS, LARGEST_FILE_BYTES // (record_bytes + 1)))
    return b"".join(_MAKERS[payload](rng, record_bytes) + b"\n" for _ in range(n))


def put_records(load: Any, hosts: Sequence[Host]) -> tuple[dict[str, str], dict[str, object]]:
    """
    Put a load's records on hosts that do not have them yet; return the file's path by host name, and the file's SHA-256
    and number of records.
    """
    content = records(load.payload, load.record_bytes, load.payload_seed)
    sha256 = hashlib.sha256(content).hexdigest()
    paths = {}
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        for host in hosts:
            path = paths[host.name] = f"{host.scratch}/records-{sha256[:16]}.txt"
            if host.run(["test", "-f", path], timeout_s=_RUN_S, ok=None).returncode:
                put_whole(host, Path(file.name), path)
    return paths, {"sha256": sha256, "records": content.count(b"\n")}


def _log_record(rng: random.Random, record_bytes: int) -> bytes:
    lines, so_far = [], 0
    while so_far <= record_bytes:
        values = {"id": f"{rng.getrandbits(48):012x}", "n": rng.randrange(10**6), "m": rng.randrange(100)}
        values["ms"] = round(rng.expovariate(0.05), 1)
        at = f"2026-03-{rng.randrange(1, 29):02d}T{rng.randrange(24):02d}:{rng.randrange(60):02d}"
        at += f":{rng.randrange(60):02d}.{rng.randrange(1000):03d}Z"
        thread, where = f"[http-{rng.randrange(1, 33)}]", rng.choice(_CLASSES)
        message = rng.choice(_MESSAGES).format(**values)
        lines.append(f"{at} {rng.choice(_LEVELS)} {thread} {where} - {message}")
        so_far += len(lines[-1]) + 1
    return "\t".join(lines)[:record_bytes].encode()


def _json_record(rng: random.Random, record_bytes: int) -> bytes:
    about: dict[str, Any] = {
        "id": f"{rng.getrandbits(64):016x}",
        "kind": rng.choice(_KINDS),
        "region": rng.choice(_REGIONS),
        "at": 1_700_000_000_000 + rng.randrange(10**9),
        "amount": round(rng.expovariate(0.02), 2),
        "items": rng.randrange(1, 12),
        "note": "",
    }
    length = record_bytes - len(json.dumps(about, separators=(",", ":")))
    while len(about["note"]) <= length:
        about["note"] += " ".join(rng.choices((*_WORDS, f"{rng.randrange(10**6):06d}"), k=16)) + " "
    return json.dumps(about | {"note": about["note"][:length]}, separators=(",", ":")).encode()


_MAKERS = {"json": _json_record, "log": _log_record, "random": lambda rng, n: rng.randbytes(n).translate(_SEVEN_BITS)}
GENERATED = tuple(_MAKERS)  # names of the payloads


def checked_placement(load: Any) -> tuple[tuple[int, ...], ...] | None:
    """
    Return the placement as tuples; raise ParameterError unless it has a node id for each replica of each partition.
    """
    placement, partitions, replication = load.placement, load.partitions, load.replication
    if placement is None:
        return None
    rows = placement if isinstance(placement, list | tuple) else ()
    rows = [nodes for nodes in rows if isinstance(nodes, list | tuple) and [*map(type, nodes)] == [int] * replication]
    if not len(rows) == len(placement) == partitions:
        allowed = f"{replication} node ids for each of {partitions} partitions"
        raise refusal(f"{type(load).__name__} placement", placement, allowed)
    return tuple(map(tuple, rows))
