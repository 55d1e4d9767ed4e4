"""
Wait on a host until a cluster serves: `python -m wanbench.measure.kafka.programs.readiness <client file> <node.ids>`.

The cluster serves once it knows all given brokers ("1,2,3"), a record has been produced with acks=all to a partition
led by each of them, and a group has consumed these records. The program then ends with status 0; until then it prints a
line whenever the state changes.
"""

import json
import logging
import socket
import sys
import time
import uuid
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

PAUSE_S = 0.1
ATTEMPT_MS = 20_000  # timeout of a request, long because brokers may just have started
REPLICAS = 3
# Clients retry at once: with Kafka's default settings, a client that connects too early waits half a minute.
EAGER: dict[str, Any] = {"reconnect_backoff_ms": 50, "reconnect_backoff_max_ms": 200, "retry_backoff_ms": 50}


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


def await_brokers(client: dict[str, Any], brokers: set[int]) -> Any:
    """Return an admin client once the cluster knows all these brokers (node.ids) and none is fenced."""
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
            print(f"{len(there)} of {len(brokers)} brokers are present", flush=True)
        if there == brokers:
            return admin
        time.sleep(PAUSE_S)


def first_record(client: dict[str, Any], admin: Any, brokers: set[int]) -> None:
    """
    Produce a record to a partition on each broker, with up to three replicas, and consume all records.

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
        settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "fetch_max_wait_ms": 50}
        consumer = KafkaConsumer(name, **client, **EAGER, **settings, group_id=name)
        ending.callback(consumer.close, autocommit=False)
        sent = [producer.send(name, b"first", partition=number) for number in range(len(ids))]
        for future in sent:
            future.get(ATTEMPT_MS / 1000)
        print("records are acknowledged", flush=True)
        missing, end = set(range(len(ids))), time.monotonic() + ATTEMPT_MS / 1000
        while missing:
            for partition in consumer.poll(timeout_ms=200):
                missing.discard(partition.partition)
            if time.monotonic() > end:
                raise TimeoutError(f"records of the partitions {sorted(missing)} were not consumed")


def forget(admin: Any, name: str) -> None:
    """Delete the topic and the group of this name, if they exist."""
    with suppress(KafkaError):
        admin.delete_topics([name])
    with suppress(KafkaError):
        admin.delete_groups([name])


def main() -> None:
    """Wait until the cluster serves; to give up, the caller stops the program."""
    logging.disable(logging.CRITICAL)
    client, brokers = json.loads(Path(sys.argv[1]).read_text()), set(map(int, sys.argv[2].split(",")))
    await_listener(client["bootstrap_servers"])
    while True:
        admin = await_brokers(client, brokers)
        try:
            first_record(client, admin, brokers)
            break
        except (KafkaError, TimeoutError) as error:
            print(f"not yet: {type(error).__name__}: {str(error)[:200]}", flush=True)
            time.sleep(PAUSE_S)
        finally:
            admin.close()
    print("it serves", flush=True)


if __name__ == "__main__":
    main()
