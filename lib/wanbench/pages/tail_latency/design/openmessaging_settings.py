"""Translate client settings between Kafka's Java clients (OpenMessaging drivers) and librdkafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from wanbench.checks import refusal
from wanbench.errors import ParameterError
from wanbench.measure.kafka.access import names_secret

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
"""Settings that Kafka's Java clients and librdkafka both have, by the same name and with the same meaning."""
_KBYTES = {"queue.buffering.max.kbytes"}
_RENAMED = {
    "buffer.memory": "queue.buffering.max.kbytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
"""Names in Java to names in librdkafka."""
_KERNEL_DECIDES = {"socket.receive.buffer.bytes": ("-1", "0"), "socket.send.buffer.bytes": ("-1", "0")}
"""Values by which Java and librdkafka let the kernel size a buffer."""
_FIELDS = {"acks": "acks", "linger.ms": "linger_ms", "batch.size": "batch_bytes", "compression.type": "compression"}
_JAVA_DEFAULTS = {"acks": "all", "linger_ms": 0, "batch_bytes": 16_384, "compression": "none"}
"""Default of the Java producer up to Kafka 3.9; the benchmark uses Kafka 3.6."""
_OVERRULED = (
    "bootstrap.servers",
    "group.id",
    "key.serializer",
    "value.serializer",
    "key.deserializer",
    "value.deserializer",
)
"""Set by the lab (the address) or by the benchmark, overriding the driver."""


class Lost(NamedTuple):
    """A field or setting that an open-loop load cannot carry, the reason, and the field to use instead."""

    name: str
    why: str
    instead: str | None = None


def of_driver(driver) -> tuple[dict, list[Lost]]:
    """Fields of KafkaOpenLoop, and the settings of a driver that are lost."""
    lost: list[Lost] = []
    producer, consumer = driver.settings("producer"), driver.settings("consumer")
    found = {**_JAVA_DEFAULTS, "replication": driver.replicationFactor}
    for name, field in _FIELDS.items():
        if name in producer:
            found[field] = _value(name, producer.pop(name))
    producer.pop("enable.idempotence", None)  # see `cautions`
    if found["acks"] == "-1":
        found["acks"] = "all"
    if consumer.get("enable.auto.commit") == "false":
        consumer.pop("enable.auto.commit")  # see `cautions`
    if consumer.get("auto.offset.reset") == "earliest":
        consumer.pop("auto.offset.reset")  # as the load has it
    if "client.rack" in consumer:
        found["client_rack"] = consumer.pop("client.rack")
    producer = _translated(producer, lost)
    found["producer_settings"], found["consumer_settings"] = producer, _translated(consumer, lost)
    found["topic_settings"] = driver.settings("topic")
    return found, list(dict.fromkeys(lost))


def _translated(settings: Mapping[str, str], lost: list[Lost]) -> dict[str, str]:
    """Settings by librdkafka's names; unsupported ones go to `lost`."""
    found = {}
    for name, text in settings.items():
        if name in _OVERRULED:
            continue
        if names_secret(name) or name.startswith(("security.", "sasl.", "ssl.")):
            lost.append(Lost(name, "the cluster has the clients' security"))
        elif name in _RENAMED:
            name = _RENAMED[name]
            java, own = _KERNEL_DECIDES.get(name, ("", ""))
            text = own if text == java else text
            found[name] = str(_whole(name, text) // 1024) if name in _KBYTES else text
        elif name in OF_BOTH:
            found[name] = text
        else:
            lost.append(Lost(name, "librdkafka has no such setting, or the load sets it"))
    return found


def _value(name: str, text: str):
    return _whole(name, text) if name in ("linger.ms", "batch.size") else text


def _whole(name: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise refusal(f"the driver's {name}", text, "a whole number")
    return int(text)


def java_names(kind: str, load) -> dict[str, str]:
    java_of = {own: java for java, own in _RENAMED.items()}
    found = {}
    for name, text in getattr(load, kind):
        if name in java_of:
            java, own = _KERNEL_DECIDES.get(name, ("", ""))
            text = java if text == own and java else text
            found[java_of[name]] = str(_whole(name, text) * 1024) if name in _KBYTES else text
        elif name in OF_BOTH:
            found[name] = text
        else:
            raise ParameterError(
                f"KafkaOpenLoop {kind} has {name!r}, which Kafka's Java clients do not have; leave it "
                "out, or set Java's equivalent in the driver."
            )
    return found
