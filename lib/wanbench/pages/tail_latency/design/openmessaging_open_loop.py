"""Convert OpenMessaging workloads and Kafka drivers to open-loop loads and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields

from wanbench.checks import refusal
from wanbench.errors import ParameterError
from wanbench.measure.experiments.kafka_open_loop import KafkaOpenLoop

from .java_properties import properties_text
from .openmessaging_settings import Lost, java_names, of_driver

MINUTE_S = 60
WARMUP_MINUTES = 1
"""The benchmark's default; Redpanda's fork has 30, and Confluent's always 1."""
POOL_BYTES = 1 << 20
"""Limit of the random payloads that the benchmark sends to its workers before the run."""
_LOST: tuple[tuple[Callable, Lost], ...] = (
    (
        lambda w: w.keyDistributor not in (None, "NO_KEY"),
        Lost("keyDistributor", "records of an open-loop load have no key"),
    ),
    (
        lambda w: w.producerRate == 0 and w.producerRateList is None,
        Lost("producerRate", "0 makes the benchmark search the highest rate", "rate_records_per_s"),
    ),
    (
        lambda w: w.producerRateList is not None,
        Lost("producerRateList", "the rate of an open-loop load does not change", "rate_records_per_s"),
    ),
    (
        lambda w: bool(w.consumerBacklogSizeGB),
        Lost("consumerBacklogSizeGB", "consumers of an open-loop load never pause to build a backlog"),
    ),
    (lambda w: bool(w.consumerOnly), Lost("consumerOnly", "an open-loop load always produces")),
    (
        lambda w: w.payloadFile is not None and not w.useRandomizedPayloads,
        Lost("payloadFile", "an open-loop load makes its payload itself", "payload"),
    ),
    (
        lambda w: bool(w.useRandomizedPayloads) and w.randomBytesRatio != 1.0,
        Lost("randomBytesRatio", "payloads of an open-loop load are not partly zeros", "payload"),
    ),
    (lambda w: w.testDurationMinutes == 0, Lost("testDurationMinutes", "0 never ends", "duration_s")),
    (
        lambda w: w.partitionsPerTopicList is not None,
        Lost("partitionsPerTopicList", "all topics of an open-loop load have as many partitions", "partitions"),
    ),
    (
        lambda w: w.producersPerTopicList is not None,
        Lost("producersPerTopicList", "all topics of an open-loop load have as many producers", "producers"),
    ),
    *(
        (lambda w, name=name: bool(getattr(w, name)), Lost(name, "an open-loop load makes its own topics"))
        for name in ("existingTopicList", "existingProduceTopicList", "existingConsumeTopicList")
    ),
)


def open_loop(workload, driver, ignoring: Iterable[str], changes: Mapping[str, object]) -> KafkaOpenLoop:
    """See `openmessaging_files.Workload.open_loop`."""
    if isinstance(ignoring, str):
        raise refusal("ignoring", ignoring, "a list of names of fields and settings")
    ignoring, known = set(ignoring), {each.name for each in fields(KafkaOpenLoop)}
    for name in changes:
        if name not in known:
            raise refusal("changes", name, f"fields of KafkaOpenLoop: {', '.join(sorted(known))}")
    lost = [each for is_lost, each in _LOST if is_lost(workload)]
    by_driver, more = ({}, []) if driver is None else of_driver(driver)
    open_ = [each for each in lost + more if each.name not in ignoring and each.instead not in changes]
    if open_:
        reasons = "; ".join(
            f"{each.name} ({each.why}{f'; or give {each.instead}' if each.instead else ''})" for each in open_
        )
        raise ParameterError(
            f"the workload {workload.name or ''!r} has fields that a KafkaOpenLoop cannot carry: "
            f"{reasons}. Name these in "
            "`ignoring` to leave them out."
        )
    warmup = WARMUP_MINUTES if workload.warmupDurationMinutes is None else workload.warmupDurationMinutes
    settings = {
        "rate_records_per_s": workload.producerRate,
        "record_bytes": workload.messageSize,
        "topics": workload.topics,
        "partitions": workload.partitionsPerTopic,
        "producers": workload.producersPerTopic,
        "groups": workload.subscriptionsPerTopic,
        "consumers": workload.consumerPerSubscription,
        "duration_s": workload.testDurationMinutes * MINUTE_S,
        "warmup_s": warmup * MINUTE_S,
        "payload": "random",
    }
    return KafkaOpenLoop(**{**settings, **by_driver, **changes})


def cautions(workload, driver) -> tuple[str, ...]:
    """See `openmessaging_files.Workload.cautions`."""
    said = [
        "The benchmark counts end-to-end latency from the producer's time stamp, in whole milliseconds, and leaves out "
        "what is not above zero; an open-loop load counts from when a record was due.",
        "The benchmark's producer fills a batch for one partition before it turns to the next; records of an open-loop "
        "load go to the partitions in turn, so its batches have fewer records where there are several partitions.",
        "The benchmark's clients are Kafka's Java clients, idempotent by default; those of an open-loop load are "
        "librdkafka, not idempotent, with as many requests in flight (see KafkaOpenLoop).",
        "The benchmark stops at its scheduled end; an open-loop load waits drain_s for records in transit.",
    ]
    if workload.warmupDurationMinutes is None:
        said.append(
            f"The workload has no warm-up; {WARMUP_MINUTES} minute is used, as in the benchmark (Redpanda's fork: 30)."
        )
    if workload.useRandomizedPayloads:
        said.append("The benchmark draws its payloads from a pool, which matters where batches are compressed.")
    for name in ("sampleRateMillis", "logIntervalMillis"):
        if getattr(workload, name) is not None:
            said.append(f"{name} is left out: windows of an open-loop load last a second.")
    if driver is not None:
        if driver.settings("consumer").get("enable.auto.commit", "true") == "false":
            said.append(
                "The benchmark's consumers commit after every poll; those of an open-loop load every five seconds."
            )
        if driver.reset:
            said.append("reset is left out: an open-loop load deletes its own topics at its end.")
    return tuple(said)


def workload_fields(load: KafkaOpenLoop, changes: Mapping[str, object]) -> dict[str, object]:
    """See `openmessaging_files.Workload.of`."""
    found = {
        "name": f"{load.topics} x {load.partitions} partitions, {load.rate_records_per_s:g}/s, "
        f"{load.record_bytes} bytes",
        "topics": load.topics,
        "partitionsPerTopic": load.partitions,
        "messageSize": load.record_bytes,
        "subscriptionsPerTopic": load.groups,
        "producersPerTopic": load.producers,
        "consumerPerSubscription": load.consumers,
        "consumerBacklogSizeGB": 0,
    }
    if "producerRate" not in changes:
        rate = load.rate_records_per_s
        if rate != int(rate):
            raise refusal("KafkaOpenLoop rate_records_per_s", rate, "a whole number, or give producerRate")
        found["producerRate"] = int(rate)
    for name, seconds in (("testDurationMinutes", load.duration_s), ("warmupDurationMinutes", load.warmup_s)):
        if name not in changes:
            if seconds % MINUTE_S:
                given = "duration_s" if name == "testDurationMinutes" else "warmup_s"
                raise refusal(f"KafkaOpenLoop {given}", seconds, f"whole minutes, as in the benchmark, or give {name}")
            found[name] = int(seconds // MINUTE_S)
    if not {"payloadFile", "useRandomizedPayloads"} & set(changes):
        if load.payload != "random":
            raise refusal("KafkaOpenLoop payload", load.payload, "'random', or give payloadFile")
        pool = max(1, min(1_000, POOL_BYTES // load.record_bytes))
        found |= {"useRandomizedPayloads": True, "randomBytesRatio": 1.0, "randomizedPayloadPoolSize": pool}
    return {**found, **changes}


def driver_fields(load: KafkaOpenLoop, bootstrap: str | None) -> dict[str, object]:
    """See `openmessaging_files.Driver.of`."""
    if load.linger_ms != int(load.linger_ms):
        raise refusal("KafkaOpenLoop linger_ms", load.linger_ms, "a whole number, as Java's linger.ms")
    producer = {
        "acks": load.acks,
        "linger.ms": str(int(load.linger_ms)),
        "batch.size": str(load.batch_bytes),
        "compression.type": load.compression,
        "enable.idempotence": str(load.idempotence).lower(),
        **java_names("producer_settings", load),
    }
    consumer = {"auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    if load.client_rack == "region":
        raise refusal("KafkaOpenLoop client_rack", load.client_rack, "the name of one rack, as a driver has one")
    if load.client_rack is not None:
        consumer["client.rack"] = load.client_rack
    consumer |= java_names("consumer_settings", load)
    common = {} if bootstrap is None else {"bootstrap.servers": bootstrap}
    return {
        "replicationFactor": load.replication,
        "topicConfig": properties_text(dict(load.topic_settings)),
        "commonConfig": properties_text(common),
        "producerConfig": properties_text(producer),
        "consumerConfig": properties_text(consumer),
    }
