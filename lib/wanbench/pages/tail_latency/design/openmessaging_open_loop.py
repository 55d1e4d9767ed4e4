"""Convert workload and driver files of the OpenMessaging Benchmark to open-loop loads (`KafkaOpenLoop`), and back."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from wanbench.checks import refusal
from wanbench.errors import ParameterError
from wanbench.measure.experiments.kafka_open_loop import KafkaOpenLoop
from wanbench.measure.kafka.access import may_hold_secret

from .openmessaging_files import Driver, Workload, properties_text

OF_BOTH = frozenset(
    (
        "acks", "allow.auto.create.topics", "auto.commit.interval.ms", "batch.size", "check.crcs",
        "client.dns.lookup", "client.rack", "compression.type", "connections.max.idle.ms",
        "delivery.timeout.ms", "enable.auto.commit", "enable.idempotence", "enable.metrics.push",
        "fetch.max.bytes", "fetch.min.bytes", "group.instance.id", "group.protocol",
        "group.remote.assignor", "heartbeat.interval.ms", "isolation.level", "linger.ms",
        "max.in.flight.requests.per.connection", "max.partition.fetch.bytes", "max.poll.interval.ms",
        "metadata.max.age.ms", "reconnect.backoff.max.ms", "reconnect.backoff.ms", "request.timeout.ms",
        "retries", "retry.backoff.max.ms", "retry.backoff.ms", "session.timeout.ms",
        "socket.connection.setup.timeout.ms",
    )
)  # fmt: skip
"""Settings that Kafka's Java clients and librdkafka have under the same name and with the same meaning."""
_KBYTES = "queue.buffering.max.kbytes"
_RENAMED = {
    "buffer.memory": _KBYTES,
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
"""Maps names of settings in Java to those in librdkafka."""
_BUFFERS = ("socket.receive.buffer.bytes", "socket.send.buffer.bytes")
"""Buffers whose size the kernel chooses if the setting is -1 in Java's clients, or 0 in librdkafka."""
_FIELDS = {"acks": "acks", "linger.ms": "linger_ms", "batch.size": "batch_bytes", "compression.type": "compression"}
_JAVA_DEFAULTS: dict[str, Any] = {"acks": "all", "linger_ms": 0, "batch_bytes": 16_384, "compression": "none"}
"""Defaults of the Java producer up to Kafka 3.9; the benchmark uses Kafka 3.6."""
_OVERRULED = {"bootstrap.servers", "group.id", "key.serializer", "value.serializer"}
_OVERRULED |= {"key.deserializer", "value.deserializer"}
"""Settings whose values in the driver are ignored: the lab sets the address, and the benchmark sets all others."""


class Lost(NamedTuple):
    """A field or setting that a KafkaOpenLoop cannot have, the reason, and the field of the load to give instead."""

    name: str
    why: str
    instead: str | None = None


def of_driver(driver: Driver) -> tuple[dict[str, Any], list[Lost]]:
    """Convert a driver to fields of KafkaOpenLoop, and list the driver's settings that cannot be converted."""
    lost: list[Lost] = []
    producer, consumer = driver.settings("producer"), driver.settings("consumer")
    values = {**_JAVA_DEFAULTS, "replication": driver.replicationFactor}
    for name, field in _FIELDS.items():
        if name in producer:
            text = producer.pop(name)
            values[field] = text if field in ("acks", "compression") else _whole(name, text)
    producer.pop("enable.idempotence", None)  # see `to_open_loop`
    if values["acks"] == "-1":
        values["acks"] = "all"
    if consumer.get("enable.auto.commit") == "false":
        consumer.pop("enable.auto.commit")  # see `to_open_loop`
    if consumer.get("auto.offset.reset") == "earliest":
        consumer.pop("auto.offset.reset")  # as the load has it
    if "client.rack" in consumer:
        values["client_rack"] = consumer.pop("client.rack")
    producer = _translated(producer, lost)
    values["producer_settings"], values["consumer_settings"] = producer, _translated(consumer, lost)
    values["topic_settings"] = driver.settings("topic")
    return values, list(dict.fromkeys(lost))


def is_security(name: str) -> bool:
    """Return whether the setting of this name belongs to the clients' security, which the cluster sets."""
    return may_hold_secret(name) or name.startswith(("security.", "sasl.", "ssl."))


def _translated(settings: Mapping[str, str], lost: list[Lost]) -> dict[str, str]:
    translated = {}
    for name, text in settings.items():
        if is_security(name):
            lost.append(Lost(name, "the clients' security is set by the cluster"))
        elif name in _RENAMED or name in OF_BOTH:
            own = _RENAMED.get(name, name)
            text = "0" if own in _BUFFERS and text == "-1" else text
            translated[own] = str(_whole(own, text) // 1024) if own == _KBYTES else text
        elif name not in _OVERRULED:
            lost.append(Lost(name, "librdkafka has no such setting, or the load sets it"))
    return translated


def _whole(name: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise refusal(f"the driver's {name}", text, "a whole number")
    return int(text)


def java_names(kind: str, load: KafkaOpenLoop) -> dict[str, str]:
    """
    Return the settings in the field `kind` of a load, by the names that Kafka's Java clients use.

    Raises ParameterError: Java clients lack one of the settings.
    """
    java_of = {name: name for name in OF_BOTH} | {own: java for java, own in _RENAMED.items()}
    translated = {}
    for name, text in getattr(load, kind):
        if name not in java_of:
            raise ParameterError(
                f"KafkaOpenLoop {kind} has {name!r}, which Kafka's Java clients do not have; leave it "
                "out, or set Java's equivalent in the driver."
            )
        text = "-1" if name in _BUFFERS and text == "0" else text
        translated[java_of[name]] = str(_whole(name, text) * 1024) if name == _KBYTES else text
    return translated


MINUTE_S = 60
_WORKLOAD_FIELDS = {"topics": "topics", "partitions": "partitionsPerTopic", "record_bytes": "messageSize"}
_WORKLOAD_FIELDS |= {"groups": "subscriptionsPerTopic", "producers": "producersPerTopic"}
_WORKLOAD_FIELDS |= {"consumers": "consumerPerSubscription"}
"""Maps fields of KafkaOpenLoop to those of Workload."""
WARMUP_MINUTES = 1  # The benchmark's default; Redpanda's fork has 30, and Confluent's always 1.
POOL_BYTES = 1 << 20  # Maximum size of the random payloads, which the benchmark sends to its workers before the run.
_LOST = (
    Lost("producerRateList", "the rate of an open-loop load does not change", "rate_records_per_s"),
    Lost("consumerBacklogSizeGB", "consumers of an open-loop load never pause to build a backlog"),
    Lost("consumerOnly", "an open-loop load always produces"),
    Lost("partitionsPerTopicList", "all topics of an open-loop load have the same number of partitions", "partitions"),
    Lost("producersPerTopicList", "all topics of an open-loop load have the same number of producers", "producers"),
    *(Lost(f"existing{kind}TopicList", "an open-loop load makes topics itself") for kind in ("", "Produce", "Consume")),
)
"""Fields of a workload that an open-loop load does not have."""


def _of_workload(workload: Workload) -> Iterator[Lost]:
    """Yield the fields of a workload that an open-loop load cannot have."""
    if workload.keyDistributor not in (None, "NO_KEY"):
        yield Lost("keyDistributor", "records of an open-loop load have no key")
    if workload.producerRate == 0 and workload.producerRateList is None:
        yield Lost("producerRate", "0 makes the benchmark search the highest rate", "rate_records_per_s")
    if workload.payloadFile is not None and not workload.useRandomizedPayloads:
        yield Lost("payloadFile", "an open-loop load makes its payload itself", "payload")
    if workload.useRandomizedPayloads and workload.randomBytesRatio != 1.0:
        yield Lost("randomBytesRatio", "payloads of an open-loop load are not partly zeros", "payload")
    if workload.testDurationMinutes == 0:
        yield Lost("testDurationMinutes", "0 never ends", "duration_s")
    yield from (lost for lost in _LOST if getattr(workload, lost.name))


def to_open_loop(
    workload: Workload, driver: Driver | None = None, *, ignoring: Iterable[str] = (), **changes: Any
) -> KafkaOpenLoop:
    """
    Convert a workload, and the settings of a driver, to the KafkaOpenLoop that offers the same load.

    Some differences remain. The benchmark counts end-to-end latency from the producer's time stamp, in whole
    milliseconds, and drops values that are not above zero; an open-loop load counts from when a record was due. The
    benchmark's producer fills a batch for one partition before the next; an open-loop load sends to the partitions in
    turn. The benchmark uses Kafka's Java clients, which are idempotent by default, and its consumers commit after every
    poll.

    `ignoring` names fields and settings to leave out, because a KafkaOpenLoop cannot have them; `changes` replaces
    fields of the result. Raises ParameterError: the files have another field or setting that a KafkaOpenLoop cannot
    have.
    """
    if isinstance(ignoring, str):
        raise refusal("ignoring", ignoring, "a list of names of fields and settings")
    ignoring, allowed = set(ignoring), {each.name for each in fields(KafkaOpenLoop)}
    if unknown := [name for name in changes if name not in allowed]:
        raise refusal("changes", unknown[0], f"fields of KafkaOpenLoop: {', '.join(sorted(allowed))}")
    by_driver, more = ({}, []) if driver is None else of_driver(driver)
    if lost := [
        one for one in [*_of_workload(workload), *more] if one.name not in ignoring and one.instead not in changes
    ]:
        reasons = "; ".join(f"{one.name} ({one.why}{f'; or give {one.instead}' * bool(one.instead)})" for one in lost)
        raise ParameterError(
            f"the workload {workload.name or ''!r} has fields that a KafkaOpenLoop cannot have: {reasons}. Name these "
            "in `ignoring` to leave them out."
        )
    warmup = WARMUP_MINUTES if workload.warmupDurationMinutes is None else workload.warmupDurationMinutes
    settings = {name: getattr(workload, field) for name, field in _WORKLOAD_FIELDS.items()}
    settings |= {"rate_records_per_s": workload.producerRate, "duration_s": workload.testDurationMinutes * MINUTE_S}
    return KafkaOpenLoop(**{**settings, "warmup_s": warmup * MINUTE_S, "payload": "random", **by_driver, **changes})


def workload_of(load: KafkaOpenLoop, **changes: Any) -> Workload:
    """
    Convert a KafkaOpenLoop to the workload that offers the same load; `changes` replaces fields of the workload.

    Raises ParameterError: the rate is not a whole number, a duration is not whole minutes, or the payload is not
    random, and `changes` does not replace it.
    """
    values = {field: getattr(load, name) for name, field in _WORKLOAD_FIELDS.items()}
    rate = f"{load.rate_records_per_s:g}/s, {load.record_bytes} bytes"
    values |= {"name": f"{load.topics} x {load.partitions} partitions, {rate}", "consumerBacklogSizeGB": 0}
    if "producerRate" not in changes:
        rate = load.rate_records_per_s
        if rate != int(rate):
            raise refusal("KafkaOpenLoop rate_records_per_s", rate, "a whole number, or give producerRate")
        values["producerRate"] = int(rate)
    for name, seconds in (("testDurationMinutes", load.duration_s), ("warmupDurationMinutes", load.warmup_s)):
        if name not in changes:
            if seconds % MINUTE_S:
                given = "duration_s" if name == "testDurationMinutes" else "warmup_s"
                raise refusal(f"KafkaOpenLoop {given}", seconds, f"whole minutes, as in the benchmark, or give {name}")
            values[name] = int(seconds // MINUTE_S)
    if not {"payloadFile", "useRandomizedPayloads"} & set(changes):
        if load.payload != "random":
            raise refusal("KafkaOpenLoop payload", load.payload, "'random', or give payloadFile")
        pool = max(1, min(1_000, POOL_BYTES // load.record_bytes))
        values |= {"useRandomizedPayloads": True, "randomBytesRatio": 1.0, "randomizedPayloadPoolSize": pool}
    return Workload(**{**values, **changes})


def driver_of(load: KafkaOpenLoop, bootstrap: str | None = None, **changes: Any) -> Driver:
    """
    Convert the settings of a KafkaOpenLoop to a driver, by the names that Kafka's Java clients use.

    `bootstrap` is "host:port,host:port", or None for `OpenMessaging`, which sets it; `changes` replaces fields of the
    driver. Raises ParameterError: the load has a setting that only librdkafka has, a linger that is not a whole number
    of milliseconds, or clients with different racks.
    """
    if load.linger_ms != int(load.linger_ms):
        raise refusal("KafkaOpenLoop linger_ms", load.linger_ms, "a whole number, as Java's linger.ms")
    if load.transaction_ms:
        raise refusal("KafkaOpenLoop transaction_ms", load.transaction_ms, "None, as the benchmark has no transactions")
    producer = {"acks": load.acks, "linger.ms": str(int(load.linger_ms)), "batch.size": str(load.batch_bytes)}
    producer |= {"compression.type": load.compression, "enable.idempotence": str(load.idempotence).lower()}
    producer |= java_names("producer_settings", load)
    consumer = {"auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    if load.client_rack == "region":
        raise refusal("KafkaOpenLoop client_rack", load.client_rack, "the name of one rack, as a driver has one")
    if load.client_rack is not None:
        consumer["client.rack"] = load.client_rack
    consumer |= java_names("consumer_settings", load)
    common = {} if bootstrap is None else {"bootstrap.servers": bootstrap}
    values: dict[str, Any] = {
        "replicationFactor": load.replication,
        "topicConfig": properties_text(dict(load.topic_settings)),
        "commonConfig": properties_text(common),
        "producerConfig": properties_text(producer),
        "consumerConfig": properties_text(consumer),
    }
    return Driver(**{**values, **changes})
