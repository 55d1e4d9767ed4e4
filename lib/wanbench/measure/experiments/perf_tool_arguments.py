"""The arguments of Kafka's perf tools, from the settings of a load."""

from __future__ import annotations

from collections.abc import Mapping

from .kafka_checks import rack_of

PRODUCER = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER = "org.apache.kafka.tools.ConsumerPerformance"
CONSUMER_OPTIONS = {"receive.buffer.bytes": "--socket-buffer-size", "max.partition.fetch.bytes": "--fetch-size"}
"""Consumer settings that the tool accepts as options only, and overrides elsewhere."""


def producer_arguments(
    load, *, bootstrap: str, topic: str, number: int, payload: str | None, client_file: str | None
) -> list[str]:
    """
    Arguments of the producer tool.

    Parameters
    ----------
    load : wanbench.measure.experiments.kafka_load.KafkaLoad
    number : int
        Number of the producer, for its client.id.
    payload : str or None
        The file of records on its host; None for the tool's own random letters.
    """
    rate = load.target_records_per_s
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic]
    arguments += ["--num-records", str(load.records_to_send)]
    arguments += ["--throughput", "-1" if rate is None else f"{rate:.15g}"]
    arguments += ["--record-size", str(load.record_bytes)] if payload is None else ["--payload-file", payload]
    arguments += ["--warmup-records", str(load.records_to_warm)] if load.records_to_warm else []
    arguments += ["--reporting-interval", str(round(load.reporting_interval_s * 1000))]
    arguments += ["--print-metrics"] if load.print_metrics else []
    arguments += ["--command-config", client_file] if client_file else []
    settings = {
        "client.id": f"load-producer-{number}",
        "acks": load.acks,
        "batch.size": load.batch_bytes,
        "linger.ms": f"{load.linger_ms:g}",
        "compression.type": load.compression,
        "buffer.memory": load.buffer_bytes,
        "max.in.flight.requests.per.connection": load.max_in_flight,
    }
    if load.idempotence is not None:
        settings["enable.idempotence"] = str(load.idempotence).lower()
    return [*arguments, "--command-property", *assigned(settings), *assigned(dict(load.producer_settings))]


def consumer_arguments(
    load, *, bootstrap: str, topic: str, group: str, number: int, client_file: str | None, region: str = ""
) -> list[str]:
    """Arguments of the consumer tool, which ends after the topic's records, or when none arrive for a while."""
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--group", group]
    arguments += ["--num-records", str(load.records_of_topic(topic_number(topic)))]
    arguments += ["--timeout", str(round(load.consumer_timeout_s * 1000))]
    arguments += ["--reporting-interval", str(round(load.reporting_interval_s * 1000))]
    arguments += ["--show-detailed-stats"] if load.consumer_windows else []
    arguments += ["--print-metrics"] if load.print_metrics else []
    arguments += ["--command-config", client_file] if client_file else []
    settings = {"client.id": f"load-consumer-{number}", **dict(load.consumer_settings)}
    if rack := rack_of(load.client_rack, region):
        settings["client.rack"] = rack
    for name, option in CONSUMER_OPTIONS.items():
        if name in settings:
            arguments.append(f"{option}={settings.pop(name)}")
    for setting in assigned(settings):
        arguments += ["--command-property", setting]
    return arguments


def assigned(settings: Mapping[str, object]) -> list[str]:
    """
    Settings in the tools' syntax.

    >>> assigned({"acks": "all", "batch.size": 16384})
    ['acks=all', 'batch.size=16384']
    """
    return [f"{name}={value}" for name, value in settings.items()]


def topic_name(stem: str, number: int) -> str:
    """
    A load's topic name, from the stem of its raw files.

    >>> topic_name("0001-eu-us.1", 0)
    'load-0001-eu-us.1-0'
    """
    return f"load-{stem}-{number}"


def topic_number(name: str) -> int:
    """The number at the end of a topic name."""
    return int(name.rpartition("-")[2])
