"""A cluster for tests that need clients and no broker: librdkafka's mock brokers, and hosts that are this machine."""

import json
import sys
from contextlib import contextmanager
from types import SimpleNamespace

from confluent_kafka import Producer

from wanbench.measure.kafka.base import BaseCluster
from wanbench.measure.labs.base import Host
from wanbench.measure.labs.processes import EnteredProcess, result_of

PARTITIONS = 4
"""Of every topic of the mock."""
REPLICAS = [[1 + (n + k) % 3 for k in range(3)] for n in range(PARTITIONS)]
SOON = {"session.timeout.ms": 5000, "heartbeat.interval.ms": 500}
"""A mock broker makes a member that comes late wait for the length of a session less a second, else for 44 s."""
_WATCH = """
import json, sys, time
isr = json.loads(sys.argv[1])
while True:
    partitions = [{"partition": n, "leader": r[0], "isr": r, "replicas": r} for n, r in enumerate(isr)]
    print(json.dumps({"at_s": time.time(), "took_s": 0.01, "node_id": 1, "topics": [{"partitions": partitions}]}))
    print(json.dumps({"at_s": time.time(), "took_s": 0.01, "group": "g", "state": "Stable",
                      "members": [{"client_id": "consumer-0", "partitions": [["t", 0]]}]}), flush=True)
    time.sleep(0.25)
"""


class HereHost(Host):
    """A host whose commands run on this machine, in a folder of its own."""

    def __init__(self, region, folder):
        self.name, self.region, self.address = f"{region}/0", region, "127.0.0.1"
        self._folder = folder / region
        self._folder.mkdir()
        self.started = []

    @property
    def scratch(self):
        return str(self._folder)

    def run(self, command, *, timeout_s, ok=(0,)):
        return result_of(self.start(command), timeout_s, ok)

    def start(self, command):
        process = EnteredProcess(command, ["setsid", "--wait", "--"])
        self.started.append(process)
        return process

    def put(self, source, target):
        with open(source, "rb") as file, open(target, "wb") as copy:
            copy.write(file.read())

    def get(self, source, target):
        self.put(source, target)


class RecordingLinks:
    """Links that only write down what they were told; `fails` holds the calls that raise."""

    def __init__(self, regions, fails=()):
        from wanbench.measure.links import LinkSettings

        self.links = {(a, b): LinkSettings(10) for a in regions for b in regions if a != b}
        self.told, self.fails = [], dict(fails)

    def __getattr__(self, name):
        def call(*arguments, **options):
            self.told.append((name, *arguments))
            if (error := self.fails.get((name, *arguments))) is not None:
                raise error

        if name.startswith("_"):
            raise AttributeError(name)
        return call


class MockCluster(BaseCluster):
    """Three mock brokers, one in each region; answers what an episode asks, as a healthy cluster would."""

    def __init__(self, hosts):
        self._mock = Producer({"test.mock.num.brokers": 3, "bootstrap.servers": "none", "log_level": 2})
        brokers = self._mock.list_topics(timeout=30).brokers.values()
        self.bootstrap = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
        self.lab = SimpleNamespace(hosts={host.region: [host] for host in hosts})
        self._racks, self.brokers = [host.region for host in hosts], ()
        self.watched_isr, self.log_ends = REPLICAS, []
        for host in hosts:
            host.cluster = self

    def librdkafka_client_file(self, host):
        path = f"{host.scratch}/client.json"
        with open(path, "w") as file:
            json.dump({"bootstrap.servers": self.bootstrap, **SOON}, file)
        return path

    @contextmanager
    def watching(self, host, duration_s, **_):
        process = host.start([sys.executable, "-c", _WATCH, json.dumps(self.watched_isr)])
        try:
            yield process
        finally:
            process.stop()

    def ask(self, host, verb, **arguments):
        partitions = [{"partition": n, "leader": r[0], "isr": r, "replicas": r} for n, r in enumerate(REPLICAS)]
        if verb == "cluster":
            brokers = [{"node_id": n, "rack": rack} for n, rack in enumerate(self._racks, 1)]
            return {"controller": 2, "brokers": brokers}
        if verb == "create_topic":
            return {"name": arguments["name"], "partitions": partitions}
        if verb == "log_ends":
            return self.log_ends
        return [{"name": "t", "partitions": partitions}] if verb == "topics" else {"changed": 0}

    def check(self):
        """Nothing can have died."""

    def _running_host(self):
        """Any host will do: no answer depends on it."""

    def _open_jars(self):
        raise NotImplementedError

    _open_clients = _open_jars
