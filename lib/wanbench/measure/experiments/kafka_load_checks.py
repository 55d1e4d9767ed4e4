"""Checks of a load's parameters."""

from __future__ import annotations

from wanbench.checks import check_choice, check_fields, check_flag, refusal
from wanbench.errors import ParameterError
from wanbench.measure.kafka.java_commands import checked_flags

from .kafka_checks import ACKS, check_placement, check_rack, check_settings
from .kafka_load_payload import MADE, SMALLEST_RECORD_BYTES

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
TIMESTAMPS = ("LogAppendTime", "CreateTime")
PAYLOADS = ("letters", *MADE)
REQUEST_BYTES = 1 << 20
"""Default max.request.size of a producer and, to within a few bytes, message.max.bytes of a broker."""
RECORD_MARGIN_BYTES = 1024
"""Headers of record and batch, with a margin."""
_HEAP_MARGIN_MB = 64
"""Heap that the tool needs besides its buffers."""
_MOST_PROCESSES = 200
"""Maximum number of tools: each is a Java process, and more would load the machine before they load a cluster."""
_WHOLE = (
    ("topics", 1, 1000),
    ("partitions", 1, 10_000),
    ("replication", 1, 9),
    ("producers", 1, 100),
    ("consumer_groups", 0, 100),
    ("consumers", 0, 100),
    ("batch_bytes", 0, 2**30),
    ("buffer_bytes", 1 << 16, 2**36),
    ("max_in_flight", 1, 1000),
    ("record_bytes", 1, 2**28),
    ("records", 1, 10**12),
    ("warmup_records", 0, 10**12),
    ("payload_seed", 0, 2**63),
    ("heap_mb", 64, 2**20),
)
_NUMBERS = (
    ("linger_ms", 0, 60_000),
    ("target_records_per_s", 0.01, 1e7),
    ("duration_s", 1, 86_400),
    ("warmup_s", 0, 3600),
    ("reporting_interval_s", 0.1, 600),
    ("consumer_timeout_s", 0.5, 86_400),
    ("most_bytes", 1, 2**50),
    ("start_timeout_s", 1, 3600),
    ("timeout_s", 1, 1e6),
)
_OPTIONAL = ("target_records_per_s", "records", "duration_s", "timeout_s")
_TRANSACTIONS = (
    "a load does not use transactions: their markers in the log would be counted as batches, and producers of one "
    "transactional.id fence each other off"
)
_OWNED = {
    "producer_settings": {
        "bootstrap.servers": None,
        "client.id": None,
        "key.serializer": None,
        "value.serializer": None,
        "transactional.id": _TRANSACTIONS,
        "acks": "give acks",
        "batch.size": "give batch_bytes",
        "linger.ms": "give linger_ms",
        "compression.type": "give compression",
        "enable.idempotence": "give idempotence",
        "buffer.memory": "give buffer_bytes",
        "max.in.flight.requests.per.connection": "give max_in_flight",
    },
    "consumer_settings": {
        "bootstrap.servers": None,
        "client.id": None,
        "group.id": None,
        "key.deserializer": None,
        "value.deserializer": None,
        "auto.offset.reset": None,
        "client.rack": "give client_rack",
    },
    "topic_settings": {"message.timestamp.type": "give timestamps"},
}


def check_load(load) -> None:
    """Raise ParameterError, with what is allowed, for invalid parameters of a load."""
    check_fields(load, *_WHOLE, whole=True, optional=_OPTIONAL)
    check_fields(load, *_NUMBERS, optional=_OPTIONAL)
    if load.linger_ms != int(load.linger_ms):
        raise refusal("KafkaLoad linger_ms", load.linger_ms, "whole milliseconds, as in Kafka")
    for name, allowed in (
        ("acks", ACKS),
        ("compression", COMPRESSIONS),
        ("timestamps", TIMESTAMPS),
        ("payload", PAYLOADS),
    ):
        check_choice(f"KafkaLoad {name}", getattr(load, name), allowed)
    for name in ("idempotence", "consumer_windows", "print_metrics", "drain"):
        check_flag(f"KafkaLoad {name}", getattr(load, name), optional=name == "idempotence")
    check_placement(load)
    check_rack(load)
    checked_flags(load.jvm)
    for name in _OWNED:
        check_settings(load, name, _OWNED[name])
    _check_amount(load)
    _check_together(load)


def _check_amount(load):
    if (load.duration_s is None) == (load.records is None):
        raise ParameterError(
            f"KafkaLoad needs exactly one of duration_s ({load.duration_s!r}) and records ({load.records!r})."
        )
    if load.warmup_records and load.records is None:
        raise ParameterError("KafkaLoad warmup_records is for loads by records; with duration_s give warmup_s.")
    if load.warmup_s and load.duration_s is None:
        raise ParameterError("KafkaLoad warmup_s is for loads by duration_s; with records give warmup_records.")
    if load.producers < load.topics:
        raise ParameterError(
            f"KafkaLoad has {load.producers} producers for {load.topics} topics; each topic needs one."
        )
    if load.producers + load.n_consumers > _MOST_PROCESSES:
        raise ParameterError(
            f"KafkaLoad has {load.producers} producers and {load.n_consumers} consumers (topics x groups x consumers "
            f"of each); allowed: {_MOST_PROCESSES} processes."
        )
    if load.consumer_groups and not 1 <= load.consumers <= load.partitions:
        raise ParameterError(
            f"KafkaLoad has {load.consumers} consumers in each group for {load.partitions} partitions of a topic; each "
            "consumer needs one, and each group a consumer (or give consumer_groups 0)."
        )
    if load.records_to_send < 1:
        raise ParameterError(f"KafkaLoad most_bytes {load.most_bytes:g} is less than a record of each producer.")
    sent_bytes = load.records_to_send * load.producers * load.record_bytes
    if sent_bytes > load.most_bytes:
        raise ParameterError(
            f"KafkaLoad would send {sent_bytes:,} bytes; most_bytes allows {load.most_bytes:,.0f}. Send less or "
            "raise it."
        )


def _check_together(load):
    producer, topic = dict(load.producer_settings), dict(load.topic_settings)
    if load.idempotence and (load.acks != "all" or load.max_in_flight > 5):
        raise ParameterError(
            f"KafkaLoad idempotence needs acks 'all' and max_in_flight of at most 5; given were {load.acks!r} and "
            f"{load.max_in_flight}."
        )
    if load.buffer_bytes < load.batch_bytes:
        raise ParameterError(
            f"KafkaLoad buffer_bytes is {load.buffer_bytes}, less than one batch of {load.batch_bytes}."
        )
    if load.heap_mb < load.buffer_bytes / 2**20 + _HEAP_MARGIN_MB:
        raise ParameterError(
            f"KafkaLoad heap_mb is {load.heap_mb}; buffers of {load.buffer_bytes} bytes need "
            f"{load.buffer_bytes / 2**20 + _HEAP_MARGIN_MB:.0f} at least."
        )
    for name, size, margin in (
        ("batch_bytes", load.batch_bytes, 0),
        ("record_bytes", load.record_bytes, RECORD_MARGIN_BYTES),
    ):
        if size + margin > REQUEST_BYTES and not ("max.request.size" in producer and "max.message.bytes" in topic):
            raise ParameterError(
                f"KafkaLoad {name} is {size}; above {REQUEST_BYTES - margin} it takes producer_settings "
                "max.request.size and topic_settings max.message.bytes."
            )
    if load.payload == "json" and load.record_bytes < SMALLEST_RECORD_BYTES:
        raise ParameterError(
            f"KafkaLoad record_bytes is {load.record_bytes}; JSON records have at least {SMALLEST_RECORD_BYTES}."
        )
