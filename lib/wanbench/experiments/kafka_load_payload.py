"""Records that look like those of an application, made the same way every time: compression depends on them."""

from __future__ import annotations

import json
import random

LARGEST_FILE_BYTES = 8 << 20
"""The tool holds all records of the file in memory."""
MOST_RECORDS = 10_000
"""So that a batch rarely holds a record twice, which would compress better than an application's records."""
SMALLEST_RECORD_BYTES = 150
"""So much hold the fields without a note."""

_REGIONS = ("eu-central-1", "eu-west-2", "us-east-1", "us-west-2", "ap-southeast-1", "sa-east-1")
_KINDS = ("order.created", "order.paid", "order.shipped", "basket.changed", "account.opened", "search.done")
_WORDS = (
    "amber", "basin", "candle", "delta", "ember", "fjord", "garnet", "harbour", "island", "juniper", "kernel",
    "lantern", "meadow", "nickel", "orchard", "pebble", "quartz", "ribbon", "saddle", "timber", "umber", "valley",
    "willow", "yarrow",
)  # fmt: skip


def json_records(record_bytes: int, seed: int) -> bytes:
    """
    Lines of JSON of exactly `record_bytes` each, as many as `LARGEST_FILE_BYTES` and `MOST_RECORDS` allow.

    Names and structure repeat as in an application's records, values differ: numbers, identifiers and words.

    Examples
    --------
    >>> records = json_records(200, seed=0).splitlines()
    >>> len(records), {len(record) for record in records}
    (10000, {200})
    >>> json_records(200, seed=0) == json_records(200, seed=0)
    True
    """
    rng = random.Random(seed)
    n = max(1, min(MOST_RECORDS, LARGEST_FILE_BYTES // (record_bytes + 1)))
    return b"".join(_record(rng, record_bytes) + b"\n" for _ in range(n))


def _record(rng, record_bytes):
    about = {
        "id": f"{rng.getrandbits(64):016x}",
        "kind": rng.choice(_KINDS),
        "region": rng.choice(_REGIONS),
        "at": 1_700_000_000_000 + rng.randrange(10**9),
        "amount": round(rng.expovariate(0.02), 2),
        "items": rng.randrange(1, 12),
        "note": "",
    }
    bare = json.dumps(about, separators=(",", ":"))
    return json.dumps(about | {"note": _note(rng, record_bytes - len(bare))}, separators=(",", ":")).encode()


def _note(rng, length):
    words, so_far = [], 0
    while so_far <= length:
        more = rng.choices((*_WORDS, f"{rng.randrange(10**6):06d}"), k=16)
        words += more
        so_far += sum(map(len, more)) + len(more)
    return " ".join(words)[:length]
