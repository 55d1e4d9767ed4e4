"""Files of a probe as its programs would leave them, made up, for tests that need no Kafka."""

import hashlib
import json
from pathlib import Path

START_NS, INTERVAL_NS = 1_700_000_000_000_000_000, 20_000_000


def lines(values) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def producer(
    records=4, *, sent=None, acknowledged=None, failed=(), stopped_ns=None, ended=True, publish_ms=30
) -> bytes:
    """Everything well, unless asked otherwise: each record is sent 0.1 ms after it was due, and answered later."""
    output = [{"program": "probe producer", "format": 1, "start_ns": START_NS, "interval_ns": INTERVAL_NS}]
    output[0]["records"] = records
    sent = range(records) if sent is None else sent
    acknowledged = sent if acknowledged is None else acknowledged
    for n in sent:
        output.append(["sent", n, START_NS + n * INTERVAL_NS + 100_000, 0.1])
    for n in acknowledged:
        output.append(
            ["acknowledged", n, START_NS + n * INTERVAL_NS + round(1e6 * publish_ms) + 100_000, 0, n]
        )
    output += [["failed", n, START_NS + n * INTERVAL_NS + 30_100_000, why] for n, why in failed]
    return lines(output + ([{"ended": {}, "stopped_ns": stopped_ns}] if ended else []))


def receipt(n, latency_ms, *, offset=None, right=True) -> list:
    intended = START_NS + n * INTERVAL_NS
    at = intended + round(latency_ms * 1e6)
    offset = n if offset is None else offset
    return ["received", n if right else None, intended if right else None, at, 0, offset, right]


def consumer(receipts) -> bytes:
    return lines(
        [{"program": "probe consumer", "format": 1, "ready": {}}, *receipts, {"ended": {}, "complete": True}]
    )


def write(
    folder: Path,
    producer: bytes,
    *consumers: bytes,
    clock=(0.0, 0.0, "one machine, one clock"),
    settings=None,
    leaders=(),
    **more,
) -> Path:
    """The files of one probe; the path of the one that the reader starts from."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {"0001.1.producer.jsonl": producer}
    names |= {f"0001.1.consumer-{n}.jsonl": content for n, content in enumerate(consumers)}
    files = []
    for name, content in names.items():
        (folder / name).write_bytes(content)
        files.append({"name": name, "sha256": hashlib.sha256(content).hexdigest()})
    about = {"format": 1, "settings": {"record_bytes": 1024} | (settings or {})} | more
    about["topic"] = {"partitions": [{"partition": n, "leader": leader} for n, leader in enumerate(leaders)]}
    about["clock"] = dict(zip(("offset_ms", "error_ms", "method"), clock, strict=True))
    about["files"] = {"producer": files[0], "consumers": files[1:]} | more.get("files", {})
    path = folder / "0001.1.probe.json"
    path.write_text(json.dumps(about))
    return path
