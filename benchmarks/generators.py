"""
Measure what load generators cost: processor time of each client by rate, RTT and guarantee.

    python benchmarks/generators.py [--rates 50 500 5000] [--rtts 2 20 300] [--seconds 8] [--loops 0]
    python benchmarks/generators.py --reproduce

One client at a time sends records of 2 KB to three partitions, with acks=all, a linger of 10 ms, batches of 16 KB and
five requests in flight. Clients are Kafka's own (ProducerPerformance, with the JVM flags that the library gives it) and
librdkafka, each idempotent and not. The cluster has three brokers in a local lab, with each RTT. Processor time is that
of the client's process without its start; for Java, the start is estimated by a run of one record. `--loops` also
starts this many endless loops, to see what a busy machine changes.

`--reproduce` needs no lab and nothing of this library: librdkafka's mock brokers answer 100 records/s with an RTT of
300 ms. An idempotent producer then uses half a processor and more while records wait. Once five records of a partition
are in flight, no request may be sent; but the broker thread computes its next wake-up from the oldest waiting record,
which is in the past, and so polls with a timeout of zero until the answer comes. The producer also has a single batch
in flight per partition, because rd_kafka_toppar_producer_serve() compares the number of records in flight with the
limit of five requests.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from itertools import permutations

from measured import record

RECORD_BYTES, PARTITIONS, LINGER_MS, BATCH_BYTES = 2_048, 3, 10, 16_384
LOOP = [sys.executable, "-c", "while True: pass"]
IN_FLIGHT = "max.in.flight.requests.per.connection"


def main() -> int:
    """Print the table, or the three lines of `--reproduce`."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--rates", type=float, nargs="+", default=[50, 500, 5_000])
    options.add_argument("--rtts", type=float, nargs="+", default=[2, 20, 300])
    options.add_argument("--seconds", type=float, default=8)
    options.add_argument("--loops", type=int, default=0)
    options.add_argument("--reproduce", action="store_true")
    options.add_argument("--send", help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.send:
        print(json.dumps(send(**json.loads(asked.send))), flush=True)
        os._exit(0)  # librdkafka would wait for what it cannot deliver
    loops = [subprocess.Popen(LOOP) for _ in range(asked.loops)]
    try:
        return reproduce(asked.seconds) if asked.reproduce else compare(asked)
    finally:
        for loop in loops:
            loop.kill()


def send(settings: dict, topic: str, rate: float, seconds: float) -> dict:
    """
    Send records at a rate (records/s) by librdkafka; return what this took.

    The result has processor time (`used_s`), the number of acknowledged records, and the median latency from when a
    record was due to its acknowledgement (`p50_ms`).
    """
    import confluent_kafka

    client, latencies = confluent_kafka.Producer(settings), []
    for partition in range(PARTITIONS):
        client.produce(topic, b"first", partition=partition)
    client.flush(60)
    value, sent = bytes(RECORD_BYTES), 0
    began_s, used_s = time.monotonic(), time.process_time()
    while (now_s := time.monotonic()) < began_s + seconds:
        while (due_s := began_s + sent / rate) <= now_s:

            def answered(error, _, due_s=due_s):
                if error is None:
                    latencies.append(time.monotonic() - due_s)

            try:
                client.produce(topic, value, partition=sent % PARTITIONS, on_delivery=answered)
            except BufferError:
                break
            sent += 1
        client.poll(min(max(due_s - time.monotonic(), 0.001), 0.05))
    used_s, latencies = time.process_time() - used_s, sorted(latencies)
    return {
        "used_s": used_s, "acknowledged": len(latencies),
        "p50_ms": 1e3 * latencies[len(latencies) // 2] if latencies else None,
    }  # fmt: skip


def librdkafka(bootstrap: str, idempotent: bool, **more) -> dict:
    """Return the settings of a librdkafka producer."""
    return {
        "bootstrap.servers": bootstrap, "acks": "all", "linger.ms": LINGER_MS, "batch.size": BATCH_BYTES,
        "socket.nagle.disable": True, "enable.idempotence": idempotent, IN_FLIGHT: 5, **more,
    }  # fmt: skip


def print_line(rtt_ms, rate, client, used_s, acknowledged, p50_ms, seconds) -> None:
    """Print one line of the table."""
    per_record = f"{1e6 * used_s / acknowledged:8,.0f}" if acknowledged else "       -"
    latency = "-" if p50_ms is None else f"{p50_ms:,.0f}"
    print(
        f"RTT {rtt_ms:5g} ms  {rate:6g} records/s  {client:28}  {used_s / seconds:6.3f} processors  {per_record} us a "
        f"record  {acknowledged / seconds:7,.0f} acknowledged/s  p50 {latency} ms",
        flush=True,
    )


def run_send(settings: dict, topic: str, rate: float, seconds: float, enter=()) -> dict:
    """Call `send` in a separate process, started by the command `enter`, and return its result."""
    work = json.dumps({"settings": settings, "topic": topic, "rate": rate, "seconds": seconds})
    done = subprocess.run([*enter, sys.executable, __file__, "--send", work], capture_output=True, check=True)
    return json.loads(done.stdout)


def reproduce(seconds: float) -> int:
    """Send to mock brokers by an idempotent producer and by two others, and print a line for each."""
    import confluent_kafka

    mock = confluent_kafka.Producer(
        {"bootstrap.servers": "none", "test.mock.num.brokers": 3, "test.mock.broker.rtt": 300, "log_level": 2}
    )
    bootstrap = ",".join(f"{each.host}:{each.port}" for each in mock.list_topics(timeout=30).brokers.values())
    print(f"confluent-kafka {confluent_kafka.__version__}, librdkafka {confluent_kafka.libversion()[0]}")
    for name, idempotent, in_flight in (
        ("idempotent, 5 in flight", True, 5),
        ("not idempotent, 5", False, 5),
        ("not idempotent, 1,000", False, 1_000),
    ):
        settings = librdkafka(bootstrap, idempotent, **{IN_FLIGHT: in_flight})
        found = run_send(settings, "t", 100, seconds)
        print_line(300, 100, name, *found.values(), seconds)
    return 0


def compare(asked) -> int:
    """Send to a cluster in a local lab by each client, and print a line for each RTT, rate and client."""
    from wanbench.measure.kafka import Cluster, unavailable
    from wanbench.measure.labs.local import LocalLab
    from wanbench.measure.links import LinkSettings

    if reason := unavailable() or LocalLab.unavailable():
        print(reason, file=sys.stderr)
        return 1
    regions = ["client", "a", "b", "c"]
    print(f"{os.cpu_count()} processors, {asked.loops} endless loops, load average {os.getloadavg()[0]:.1f}")
    for rtt_ms in asked.rtts:
        links = dict.fromkeys(permutations(regions, 2), LinkSettings(rtt_ms / 2, rate_bps=1e9))
        with LocalLab(regions, links) as lab, Cluster(lab, regions[1:], profile="functional") as cluster:
            host, enter = lab.host("client"), lab.entering("client")
            with open(cluster.librdkafka_client_file(host)) as file:
                bootstrap = json.load(file)["bootstrap.servers"]
            cluster.ask(host, "create_topic", name="t", partitions=PARTITIONS, replication=3, settings={})
            for rate in asked.rates:
                for idempotent in (True, False):
                    word = "idempotent" if idempotent else "not idempotent"
                    ours = run_send(librdkafka(bootstrap, idempotent), "t", rate, asked.seconds, enter)
                    print_line(rtt_ms, rate, f"librdkafka, {word}", *ours.values(), asked.seconds)
                    start_s, _, _ = java(host, bootstrap, 1, rate, idempotent)
                    n = round(asked.seconds * min(rate, window_rate(rtt_ms)))
                    used_s, took_s, p50_ms = java(host, bootstrap, n, rate, idempotent)
                    print_line(rtt_ms, rate, f"Java, {word}", max(used_s - start_s, 0), n, p50_ms, took_s)
                    if rtt_ms == max(asked.rtts):
                        name = f"a producer that is {word}, {rate:g} records/s of 2 KB at RTT {rtt_ms:g} ms"
                        peer = {"peer": "Kafka's own client", "of_peer": max(used_s - start_s, 0.01) / took_s}
                        record(name, ours["used_s"] / asked.seconds, "processors", **peer)
    return 0


def window_rate(rtt_ms: float) -> float:
    """Return the records/s that five batches in flight per partition allow: Java is given no more than it can send."""
    return 5 * (BATCH_BYTES // RECORD_BYTES) * PARTITIONS / (rtt_ms / 1e3)


def java(host, bootstrap: str, records: int, rate: float, idempotent: bool) -> tuple[float, float, float | None]:
    """Send records by Kafka's own tool; return its processor time (s), duration (s) and median latency (ms)."""
    from wanbench.measure.kafka.java_commands import kafka_jars

    command = [
        "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-cp", f"{kafka_jars()}/*",
        "org.apache.kafka.tools.ProducerPerformance", "--topic", "t", "--num-records", str(records),
        "--record-size", str(RECORD_BYTES), "--throughput", f"{rate:g}", "--producer-props",
        f"bootstrap.servers={bootstrap}", "acks=all", f"linger.ms={LINGER_MS}", f"batch.size={BATCH_BYTES}",
        f"enable.idempotence={str(idempotent).lower()}",
    ]  # fmt: skip
    timed = ["bash", "-c", 'time "$@"', "time", *command]
    began_s = time.monotonic()
    done = host.run(timed, timeout_s=300)
    took_s = time.monotonic() - began_s
    times = dict(line.split("\t") for line in done.stderr.decode().splitlines() if line.startswith(("user\t", "sys\t")))
    used_s = sum(60 * float(text.split("m")[0]) + float(text.split("m")[1].rstrip("s")) for text in times.values())
    found = [part for part in done.stdout.decode().split(", ") if part.endswith(" ms 50th")]
    return used_s, took_s, float(found[-1].split()[0]) if found else None


if __name__ == "__main__":
    sys.exit(main())
