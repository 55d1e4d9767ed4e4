"""
Whether a cluster truly serves: `python -m wanbench.kafka.serving <client file> <brokers>`, on a host of the lab.

It ends with 0 once that many brokers are known to the cluster and a record has been produced to a partition that each
of them leads, with acks=all, and consumed again by a group. Until then it prints a line whenever something changes.
"""

from __future__ import annotations

import json
import logging
import socket
import sys
import time
import uuid
from pathlib import Path

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
from kafka.structs import TopicPartition

PAUSE_S = 0.1
ATTEMPT_MS = 20_000
EAGER = {"reconnect_backoff_ms": 50, "reconnect_backoff_max_ms": 200, "retry_backoff_ms": 50}
"""Settings of clients that try again at once: without them one that came too early waits for half a minute."""


def await_listener(addresses: list[str]) -> None:
    """Return once somebody listens at one of these addresses ("host:port")."""
    while True:
        for address in addresses:
            host, _, port = address.rpartition(":")
            try:
                socket.create_connection((host.strip("[]"), int(port)), timeout=1).close()
                return
            except OSError:
                continue
        time.sleep(PAUSE_S)


def await_brokers(client: dict, brokers: int) -> KafkaAdminClient:
    """An admin client, once the cluster has that many brokers that are not fenced off."""
    known, admin = None, None
    while True:
        try:
            admin = admin or KafkaAdminClient(**client, **EAGER, request_timeout_ms=ATTEMPT_MS)
            found = len(admin.describe_cluster()["brokers"])
        except (KafkaError, OSError, ValueError):
            found = 0
            if admin is not None:
                admin.close()
                admin = None
        if found != known:
            known = found
            say(f"{found} of {brokers} brokers are there")
        if found >= brokers:
            return admin
        time.sleep(PAUSE_S)


def first_record(client: dict, admin: KafkaAdminClient, brokers: int) -> None:
    """Produce a record to a partition on each broker and consume them all; the topic and the group are deleted."""
    topic = f"wanbench-first-{uuid.uuid4().hex[:8]}"
    admin.create_topics(
        {topic: {"num_partitions": brokers, "replication_factor": min(3, brokers)}}, wait_for_metadata=True
    )
    producer = KafkaProducer(**client, **EAGER, acks="all", linger_ms=0, max_block_ms=ATTEMPT_MS)
    consumer = KafkaConsumer(
        topic,
        **client,
        **EAGER,
        group_id=topic,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=50,
    )
    try:
        sent = [producer.send(topic, b"first", partition=number) for number in range(brokers)]
        for future in sent:
            future.get(ATTEMPT_MS / 1000)
        say("records are acknowledged")
        missing, end = set(range(brokers)), time.monotonic() + ATTEMPT_MS / 1000
        while missing:
            for partition in consumer.poll(timeout_ms=200):
                missing.discard(TopicPartition(*partition).partition)
            if time.monotonic() > end:
                raise TimeoutError(f"records of the partitions {sorted(missing)} were not consumed")
    finally:
        producer.close(timeout=0)
        consumer.close(autocommit=False)
    admin.delete_topics([topic])


def say(words: str) -> None:
    print(words, flush=True)


def main() -> None:
    """Wait until the cluster serves; whoever started this gives up on it by ending it."""
    logging.disable(logging.CRITICAL)
    client, brokers = json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2])
    await_listener(client["bootstrap_servers"])
    while True:
        admin = await_brokers(client, brokers)
        try:
            first_record(client, admin, brokers)
            break
        except (KafkaError, TimeoutError) as error:
            say(f"not yet: {type(error).__name__}: {str(error)[:200]}")
            time.sleep(PAUSE_S)
        finally:
            admin.close()
    say("it serves")


if __name__ == "__main__":
    main()
