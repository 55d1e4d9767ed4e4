"""Small hand-made files of a fault episode, as the experiment leaves them."""

# ruff: noqa: E501  # lines of files are long

import gzip
import hashlib
import json

ORIGIN_NS = 1_790_000_000 * 10**9
START_NS = ORIGIN_NS + 2 * 10**9


def producer(number=0, lines=(), due=None):
    head = {"program": "fault producer", "format": 1, "origin_ns": ORIGIN_NS, "number": number}
    end = [] if due is None else [{"ended": 9_000_000, "due": due}]
    return [head, {"start_ns": START_NS, "interval_ns": 100_000_000}, *lines, *end]


def consumer(number=0, lines=()):
    return [{"program": "fault consumer", "format": 1, "origin_ns": ORIGIN_NS, "number": number}, *lines]


def log(lines=()):
    ends = {"ends": {"0": 9, "1": 9}}
    return [
        {"program": "log reader", "format": 1, "origin_ns": ORIGIN_NS},
        ends,
        *lines,
        {"ended": 1, "complete": True},
    ]


EPISODE = {
    ("producer", 0): producer(
        lines=[
            ["sent", 0, 2_000_100],
            ["acknowledged", 0, 2_050_000, 0, 5],
            ["sent", 1, 2_100_200],
            ["error", 2_150_000, "_TRANSPORT", "no route"],
            ["failed", 1, 2_500_000, "_MSG_TIMED_OUT"],
            ["sent", 2, 2_200_000],
        ],
        due=4,
    ),
    ("consumer", 0): consumer(
        lines=[
            ["assigned", 1_000_000, [0, 1]],
            ["received", 0, 0, 0, 5, 2_060_000, False],
            ["received", None, None, 1, 3, 2_300_000, True],
            ["revoked", 2_400_000, [1]],
        ]
    ),
    ("log", 0): log([[0, 5, 0, 0, False], [1, 3, None, None, True]]),
    ("watch", 0): [
        [1_790_000_001.0, 0.04, 2, [[1, [1, 2]], [2, [1, 2]]]],
        [1_790_000_001.25, 0.05, 2, None],
        [1_790_000_001.5, 1.0, "RequestTimedOutError", "no answer"],
        [1_790_000_002.5, 0.04, 1, [[1, [1]], [None, []]]],
    ],
    ("groups", 0): [
        [1_790_000_001.0, "g", "Stable", [[0, 2]]],
        [1_790_000_002.0, "g", "Empty", []],
        [1_790_000_003.0, "g", "NodeNotReadyError", "none"],
    ],
}
LOG_LINES = """\
2026-09-21T13:33:20.500Z INFO [QuorumController id=1] Becoming the active controller at epoch 3, next write offset 9. (QuorumController)
2026-09-21T13:33:21.500Z INFO [QuorumController id=1] Fencing broker 2 at epoch 12 because its session has timed out. (ReplicationControlManager)
2026-09-21T13:33:21.600Z INFO [Broker id=1] Leader t-1 with topic id Some(0Tz) starts at leader epoch 1 from offset 7, ISR [1,3]. (logger)
2026-09-21T13:33:21.601Z INFO [Broker id=1] Leader other-1 with topic id Some(0Tz) starts at leader epoch 1 from offset 7. (logger)
2026-09-21T13:33:22.000Z INFO [Partition t-0 broker=1] Shrinking ISR from 1,2,3 to 1,3. Leader: (highWatermark: 7). (Partition)
2026-09-21T13:33:25.000Z INFO [QuorumController id=1] The request from broker 2 to unfence has been granted because it has caught up. (BrokerHeartbeatManager)
2026-09-21T13:33:22.100Z INFO [Partition t-0 broker=1] ISR updated to 1,3  and version updated to 2 (Partition)
2026-09-21T13:33:26.000Z INFO [Partition t-0 broker=1] ISR updated to 1,3,2  and version updated to 3 (Partition)
2026-09-21T13:33:26.100Z INFO [Partition t-1 broker=1] ISR updated to 1,3,2  and version updated to 3 (Partition)
"""
SETTINGS = {
    "fault": "cut", "at": "eu", "acks": "all", "replication": 2, "partitions": 2, "records_per_s": 10.0,
    "record_bytes": 64, "topic_settings": [["min.insync.replicas", "2"]],
    "client_settings": [["group.protocol", "classic"], ["session.timeout.ms", "6000"]], "broker_settings": None,
    "damage": None,
}  # fmt: skip
TIMES = {"started_at_s": 1_790_000_002.0, "fault_at_s": 1_790_000_003.0, "heal_at_s": 1_790_000_004.0}


def write(folder, programs=None, text=None, top=None, log_lines=LOG_LINES, **changes):
    """
    Write an episode into a folder; returns the path that the reader starts from.

    `programs` replaces lines of programs; `text`, by the same keys, what their files hold, whatever it is;
    `top` and `changes` replace members of the file itself.
    """
    described = []
    for (role, number), lines in {**EPISODE, **(programs or {})}.items():
        content = "".join(json.dumps(line) + "\n" for line in lines).encode()
        content = gzip.compress((text or {}).get((role, number), content), mtime=0)
        path = folder / f"t.{role}-{number}.jsonl.gz"
        path.write_bytes(content)
        about = {"name": path.name, "sha256": hashlib.sha256(content).hexdigest()}
        described.append(
            {
                "role": role,
                "number": number,
                "region": "eu",
                "host": "eu/0",
                "started_at_s": 1_790_000_000.5,
                "ended_at_s": None,
                "killed": False,
                "file": about,
            }
        )
    packed = gzip.compress(log_lines.encode(), mtime=0)
    (folder / "t.node-1.log.gz").write_bytes(packed)
    named = {"name": "t.node-1.log.gz", "sha256": hashlib.sha256(packed).hexdigest()}
    about = {
        "topic": "t",
        "logs": [{"node_id": 1, "region": "eu", "file": named}],
        "format": 1, "settings": SETTINGS, "hit": ["eu"], "times": TIMES, "error": None, "programs": described,
    }  # fmt: skip
    path = folder / "t.fault.json"
    path.write_text(json.dumps(about | changes | (top or {})))
    return path
