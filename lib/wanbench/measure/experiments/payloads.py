"""Records of known compressibility for Kafka loads, and the files on hosts that hold them."""

from __future__ import annotations

import hashlib
import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from wanbench.measure.labs.base import Host
from wanbench.measure.labs.programs import put_whole

SMALLEST_JSON_BYTES = 150  # The size of a JSON record without its note.
LARGEST_FILE_BYTES = 8 << 20  # maximum size of the file; the tool keeps all its records in memory
MOST_RECORDS = 10_000
"""Maximum number of records, so large that a batch rarely repeats one: it would compress better than real data."""
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
"""A translation table that maps any byte to an ASCII character other than a line end."""


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


def put_records(load, hosts: Sequence[Host]) -> tuple[dict[str, str], dict[str, object]]:
    """
    Put a load's records on hosts, unless the same content is there; return each host's path by name, and a description.
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


def _random_record(rng, record_bytes):
    return rng.randbytes(record_bytes).translate(_SEVEN_BITS)


def _log_record(rng, record_bytes):
    lines, so_far = [], 0
    while so_far <= record_bytes:
        values = {
            "id": f"{rng.getrandbits(48):012x}",
            "n": rng.randrange(10**6),
            "m": rng.randrange(100),
            "ms": round(rng.expovariate(0.05), 1),
        }
        at = f"2026-03-{rng.randrange(1, 29):02d}T{rng.randrange(24):02d}:{rng.randrange(60):02d}"
        at += f":{rng.randrange(60):02d}.{rng.randrange(1000):03d}Z"
        thread, where = f"[http-{rng.randrange(1, 33)}]", rng.choice(_CLASSES)
        message = rng.choice(_MESSAGES).format(**values)
        lines.append(f"{at} {rng.choice(_LEVELS)} {thread} {where} - {message}")
        so_far += len(lines[-1]) + 1
    return "\t".join(lines)[:record_bytes].encode()


def _json_record(rng, record_bytes):
    about = {
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


_MAKERS = {"json": _json_record, "log": _log_record, "random": _random_record}
GENERATED = tuple(_MAKERS)  # names of the payloads
