"""Perf tools of a few lines on this machine, in place of Kafka's, and one run of a load with them."""

import json
import sys
from pathlib import Path

import pytest

from wanbench.errors import ClusterError
from wanbench.measure.experiments.base import ExperimentError
from wanbench.measure.experiments.kafka_load import KafkaLoad
from wanbench.measure.experiments.kafka_tools import CONSUMER, PRODUCER
from wanbench.measure.labs.base import Host
from wanbench.measure.labs.processes import EnteredProcess, result_of

START = """
import sys, time
number = next(word for word in sys.argv if word.startswith("client.id=")).rpartition("-")[2]
def window(n=10):
    print(f"{n} records sent, 9.9 records/sec (0.01 MB/sec), 1.0 ms avg latency, 2.0 ms max latency.", flush=True)
def summary(n=10, what=""):
    print(f"{n}{what} records sent, 9.900000 records/sec (0.01 MB/sec), 1.00 ms avg latency, 2.00 ms max latency, "
          "1 ms 50th, 2 ms 95th, 2 ms 99th, 2 ms 99.9th.", flush=True)
"""
FOR_EVER = "while True:\n    window()\n    time.sleep(0.05)"
ENDS = "window()\ntime.sleep(0.5)\nwindow()\nsummary(20)"
DIES = """
if number == "1":
    window()
    print("org.apache.kafka.common.KafkaException: the cause", file=sys.stderr)
    print("\\tat org.apache.kafka.tools.ProducerPerformance.main(ProducerPerformance.java:52)", file=sys.stderr)
    print("\\t... 7 more", file=sys.stderr)
    sys.exit(1)
"""
READS = "print('time, threadId')\ntime.sleep(2)"
READS_ON = "print('time, threadId', flush=True)\ntime.sleep(600)"
STARVES = "print('WARNING: Exiting before consuming the expected number of records: timeout')"


class Here(Host):
    """This machine, without a namespace."""

    def __init__(self, folder, name="here/0"):
        self.name, self.region, self.address = name, name.partition("/")[0], "127.0.0.1"
        self._scratch = folder / f"scratch-{name.replace('/', '-')}"
        self._scratch.mkdir()
        self.started = []

    @property
    def scratch(self):
        return str(self._scratch)

    def start(self, command):
        self.started.append(EnteredProcess(command, ["setsid", "--wait"]))
        return self.started[-1]

    def run(self, command, *, timeout_s, ok=(0,)):
        return result_of(self.start(command), timeout_s, ok)

    def put(self, source, target):
        Path(target).write_bytes(Path(source).read_bytes())

    def get(self, source, target):
        Path(target).write_bytes(Path(source).read_bytes())


class MadeUp:
    """A cluster whose tools are programs of a few lines."""

    bootstrap, brokers = "10.0.0.1:9092", ()

    def __init__(self, producer, consumer=READS):
        self.sources = {PRODUCER: START + producer, CONSUMER: START + consumer}
        self.topics, self.settings, self.commands, self.there = [], {}, [], set()
        self.death = self.undeletable = None

    def java(self, host, main_class, *arguments, heap_mb, jvm):
        self.commands.append((host.name, main_class, list(arguments)))
        return [sys.executable, "-c", self.sources[main_class], *arguments]

    def client_file(self, host):
        return None

    def create_topic(self, name, partitions, replication, settings, placement=None):
        if name in self.there:
            raise ClusterError(f"TopicAlreadyExistsError: {name}")
        self.topics.append(name)
        self.settings = settings

    def delete_topic(self, name):
        if self.undeletable:
            raise self.undeletable
        self.topics.remove(name)

    def ask(self, host, verb, **arguments):
        raise ClusterError("nobody may look into its logs")

    def check(self):
        if self.death:
            raise self.death


def run(load, cluster, folder, hosts=1):
    here = [Here(folder, f"here/{n}") for n in range(hosts)]
    for host in here:
        host.cluster = cluster
    try:
        return load.run_on(here, here[:1], folder, "s")
    finally:
        assert not [process.command for host in here for process in host.started if process.is_running()]
        assert cluster.topics == [] or cluster.undeletable


def fails(load, cluster, folder):
    with pytest.raises(ExperimentError) as raised:
        run(load, cluster, folder)
    for file in raised.value.files:
        assert (folder / file.path).stat().st_size == file.bytes
    return str(raised.value), {file.path.removeprefix("kafka_load/s.") for file in raised.value.files}


def recorded(folder, what):
    return json.loads((folder / f"kafka_load/s.{what}.json").read_text())


STOPPED = KafkaLoad(producers=2, duration_s=1, warmup_s=0.5, consumers=1)
COUNTED = KafkaLoad(producers=2, records=20, duration_s=None)
