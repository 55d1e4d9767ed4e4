"""
Whether a cluster serves: `python -m wanbench.measure.kafka.programs.readiness <client file> <node.ids>`, on a host.

It ends with 0 once these brokers ("1,2,3") are known to the cluster and a record has been produced to a partition that
each of them leads, with acks=all, and consumed again by a group. Until then it prints a line whenever something
changes.
"""

import json
import logging
import socket
import sys
import time
import uuid
from contextlib import ExitStack, suppress
from pathlib import Path

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

PAUSE_S = 0.1
ATTEMPT_MS = 20_000  # timeout of a request to brokers that may just have started
REPLICAS = 3
# Settings of clients that try again at once: with Kafka's defaults a client that comes too early waits half a minute.
EAGER = {"reconnect_backoff_ms": 50, "reconnect_backoff_max_ms": 200, "retry_backoff_ms": 50}


def await_listener(addresses: list[str]) -> None:
    """Return once one of these addresses ("host:port") accepts connections."""
    while True:
        for address in addresses:
            host, _, port = address.rpartition(":")
            try:
                socket.create_connection((host.strip("[]"), int(port)), timeout=1).close()
                return
            except OSError:
                continue
        time.sleep(PAUSE_S)


def await_brokers(client: dict, brokers: set[int]) -> KafkaAdminClient:
    """An admin client, once the cluster has these brokers (node.ids), all unfenced."""
    reported, admin = None, None
    while True:
        try:
            admin = admin or KafkaAdminClient(**client, **EAGER, request_timeout_ms=ATTEMPT_MS)
            rows = admin.describe_cluster()["brokers"]
            there = brokers & {row["broker_id"] for row in rows if not row.get("is_fenced")}
        except (KafkaError, OSError, ValueError):
            there = set()
            if admin is not None:
                admin.close()
                admin = None
        if there != reported:
            reported = there
            print_line(f"{len(there)} of {len(brokers)} brokers are present")
        if there == brokers:
            return admin
        time.sleep(PAUSE_S)


def first_record(client: dict, admin: KafkaAdminClient, brokers: set[int]) -> None:
    """
    Produce a record to a partition on each broker, with up to three replicas, and consume them all.

    The topic and the group are deleted at the end.
    """
    name, ids = f"wanbench-first-{uuid.uuid4().hex[:8]}", sorted(brokers)
    placement = [(ids[first:] + ids[:first])[:REPLICAS] for first in range(len(ids))]
    with ExitStack() as ending:
        ending.callback(forget, admin, name)
        admin.create_topics(
            {name: {"assignments": dict(enumerate(placement)), "configs": {"min.insync.replicas": "1"}}},
            wait_for_metadata=True,
        )
        producer = KafkaProducer(**client, **EAGER, acks="all", linger_ms=0, max_block_ms=ATTEMPT_MS)
        ending.callback(producer.close, timeout=0)
        consumer = KafkaConsumer(
            name,
            **client,
            **EAGER,
            group_id=name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=50,
        )
        ending.callback(consumer.close, autocommit=False)
        sent = [producer.send(name, b"first", partition=number) for number in range(len(ids))]
        for future in sent:
            future.get(ATTEMPT_MS / 1000)
        print_line("records are acknowledged")
        missing, end = set(range(len(ids))), time.monotonic() + ATTEMPT_MS / 1000
        while missing:
            for partition in consumer.poll(timeout_ms=200):
                missing.discard(partition.partition)
            if time.monotonic() > end:
                raise TimeoutError(f"records of the partitions {sorted(missing)} were not consumed")


def forget(admin: KafkaAdminClient, name: str) -> None:
    """Delete the topic and the group of that name, if they exist."""
    with suppress(KafkaError):
        admin.delete_topics([name])
    with suppress(KafkaError):
        admin.delete_groups([name])


def print_line(line: str) -> None:
    """Print a line and flush it."""
    print(line, flush=True)


def main() -> None:
    """Wait until the cluster serves; the caller ends it to give up."""
    logging.disable(logging.CRITICAL)
    client, brokers = json.loads(Path(sys.argv[1]).read_text()), set(map(int, sys.argv[2].split(",")))
    await_listener(client["bootstrap_servers"])
    while True:
        admin = await_brokers(client, brokers)
        try:
            first_record(client, admin, brokers)
            break
        except (KafkaError, TimeoutError) as error:
            print_line(f"not yet: {type(error).__name__}: {str(error)[:200]}")
            time.sleep(PAUSE_S)
        finally:
            admin.close()
    print_line("it serves")


if __name__ == "__main__":
    main()
