"""The OpenMessaging Benchmark as load, by made-up scripts in its place on this machine; and itself, where it is."""

import json
import os
from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
from mock_kafka import HereHost
from patience import comes_about

from wanbench.errors import ClusterError, ParameterError
from wanbench.measure.experiments import ExperimentError, KafkaTrial
from wanbench.pages.tail_latency.design.openmessaging import OpenMessaging
from wanbench.pages.tail_latency.design.openmessaging_files import Driver, Workload, read_driver, read_workload
from wanbench.pages.tail_latency.latencies import of_benchmark
from wanbench.read.ingest import openmessaging as reader
from wanbench.read.ingest.readers import reader_in_run

DISTRIBUTION = os.environ.get("WANBENCH_OMB")
WORKLOAD = Workload(
    topics=1,
    partitionsPerTopic=3,
    messageSize=1_000,
    subscriptionsPerTopic=1,
    producersPerTopic=1,
    consumerPerSubscription=1,
    producerRate=200,
    testDurationMinutes=1,
    warmupDurationMinutes=0,
    useRandomizedPayloads=True,
    randomBytesRatio=1.0,
    randomizedPayloadPoolSize=10,
)
DRIVER = Driver(topicConfig="min.insync.replicas=2", commonConfig="bootstrap.servers=localhost:9092")
RESULT = {"publishRate": [1.0], "consumeRate": [1.0], "aggregatedPublishLatencyQuantiles": {"50.0": 2.0, "100.0": 3.0}}
BEGIN = """
echo "10:00:00.000 [main] INFO Benchmark - called with $* and $HEAP_OPTS"
test -f workload.yaml && test -f driver.yaml || exit 3
echo "10:00:00.000 [main] INFO WorkloadGenerator - ----- Starting benchmark traffic (1m)------"
"""
MEASURES = f"""{BEGIN}
echo "10:00:01.000 [main] INFO Benchmark - Writing test result into result.json"
printf '{{"half'  > result.json; sleep 0.3
echo '{json.dumps(RESULT)}' > result.json
sleep 600
"""
FAILS = f"""{BEGIN}
echo "10:00:01.000 [main] ERROR Benchmark - Failed to run the workload 'x' for driver 'driver.yaml'"
echo "java.lang.RuntimeException: Timed out waiting for consumers to be ready"
echo "	at io.openmessaging.benchmark.WorkloadGenerator.run(WorkloadGenerator.java:83)"
sleep 600
"""
SAYS_NOTHING = f"{BEGIN}\necho 'the last words'\n"
NEVER_ENDS = f"{BEGIN}\nsleep 600\n"
LISTENS = 'echo "10:00:00 [main] INFO Javalin - Javalin has started \\o/"; echo "called with $*"; sleep 600\n'
DIES = "echo '10:00:00 [main] ERROR BenchmarkWorker - java.net.BindException: Address already in use'; exit 1\n"


class Cluster:
    """A cluster that knows the topics which the made-up benchmark makes, and who made the others."""

    bootstrap, brokers = "10.0.0.1:9092,10.0.0.2:9092", ()

    def __init__(self, folder):
        self.hosts = {region: [HereHost(region, folder)] for region in ("a", "b", "c")}
        for (host,) in self.hosts.values():
            host.cluster = self
        self.lab = SimpleNamespace(hosts=self.hosts, host=lambda region, number=0: self.hosts[region][number])
        self.asked, self.deleted, self.client, self.death = 0, [], None, None

    def ask(self, host, verb):
        self.asked += 1
        names = ["test-topic-old", "other", *["test-topic-0000000-x"] * (self.asked > 1)]
        return [{"name": name} for name in names]

    def delete_topic(self, name):
        self.deleted.append(name)

    def client_file(self, host):
        return self.client

    def check(self):
        if self.death:
            raise self.death


@pytest.fixture
def cluster(tmp_path):
    (tmp_path / "hosts").mkdir()
    there = Cluster(tmp_path / "hosts")
    yield there
    for (host,) in there.hosts.values():
        assert not [process.command for process in host.started if process.is_running()]
        assert not list((tmp_path / "hosts" / host.region).glob("openmessaging-*")), "folders are left on a host"


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    """A function that makes a distribution of two scripts; java is there."""

    def made(benchmark, worker=LISTENS, java=0):
        programs = {"bin/benchmark": benchmark, "bin/benchmark-worker": worker, "path/java": f"exit {java}\n"}
        for name, text in programs.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(f"#!/bin/bash\n{text}")
            (tmp_path / name).chmod(0o755)
        (tmp_path / "lib").mkdir(exist_ok=True)
        (tmp_path / "lib/x-benchmark-framework-1.jar").touch()
        return str(tmp_path)

    monkeypatch.setenv("PATH", f"{tmp_path}/path:{os.environ['PATH']}")
    return made


def run(load, cluster, folder, **more):
    return load.run(cluster.lab.host("a"), cluster.lab.host("b"), folder / "run", "0001.1", **more)


def fails(load, cluster, folder):
    with pytest.raises(ExperimentError) as error:
        run(load, cluster, folder)
    for file in error.value.files:
        assert (folder / "run" / file.path).stat().st_size == file.bytes
    return str(error.value), {file.path.removeprefix("openmessaging/0001.1.") for file in error.value.files}


def test_a_run_keeps_result_files_and_log_and_deletes_its_topics(tmp_path, cluster, distribution):
    load, sending = OpenMessaging(distribution(MEASURES), WORKLOAD, DRIVER, heap_mb=99), []
    files = run(load, cluster, tmp_path, when_sending=lambda: sending.append(1))
    names = [file.path.removeprefix("openmessaging/0001.1.") for file in files if "stderr" not in file.path]
    assert names == ["workload.yaml", "driver.yaml", "result.json", "benchmark.txt"] and sending == [1]
    kept = tmp_path / "run/openmessaging"
    assert json.loads((kept / "0001.1.result.json").read_text()) == RESULT
    assert read_workload(kept / "0001.1.workload.yaml") == WORKLOAD
    driver = read_driver(kept / "0001.1.driver.yaml")
    assert driver.settings("common") == {"bootstrap.servers": cluster.bootstrap}
    assert "called with --drivers driver.yaml --output result.json workload.yaml and -Xms99m -Xmx99m" in (
        (kept / "0001.1.benchmark.txt").read_text()
    )
    assert cluster.deleted == ["test-topic-0000000-x"]
    assert reader_in_run("openmessaging", "0001.1.result.json").read is reader.read
    assert reader_in_run("openmessaging", "0001.1.driver.yaml") is None


def test_workers_listen_before_the_benchmark_starts(tmp_path, cluster, distribution):
    load = OpenMessaging(distribution(MEASURES), WORKLOAD, workers=("a", "b", "a", "c"), port=20_000)
    files = {file.path.removeprefix("openmessaging/0001.1.") for file in run(load, cluster, tmp_path)}
    assert {f"worker-{n}.txt" for n in range(4)} <= files
    printed = (tmp_path / "run/openmessaging/0001.1.benchmark.txt").read_text()
    addresses = ",".join(f"http://127.0.0.1:{port}" for port in (20_000, 20_000, 20_002, 20_000))
    assert f"--workers {addresses} workload.yaml" in printed
    worker = (tmp_path / "run/openmessaging/0001.1.worker-2.txt").read_text()
    assert "called with --port 20002 --stats-port 20003" in worker


def test_a_secured_cluster_is_in_the_driver_by_reference_alone(tmp_path, cluster, distribution):
    client = tmp_path / "client.properties"
    client.write_text("security.protocol=SASL_SSL\nsasl.jaas.config=hunter2=x\n")
    cluster.client = str(client)
    run(OpenMessaging(distribution(MEASURES), WORKLOAD, DRIVER), cluster, tmp_path)
    driver = read_driver(tmp_path / "run/openmessaging/0001.1.driver.yaml")
    common = driver.settings("common")
    assert common["sasl.jaas.config"] == f"${{file:{client}:sasl.jaas.config}}"
    assert common["config.providers"] == "file" and "hunter2" not in driver.text()


@pytest.mark.parametrize(
    ("benchmark", "worker", "said"),
    [
        (FAILS, LISTENS, "failed: Benchmark - Failed to run the workload 'x' for driver 'driver.yaml': "
         "java.lang.RuntimeException: Timed out waiting for consumers to be ready"),
        (SAYS_NOTHING, LISTENS, "benchmark on a/0 ended with status 0: the last words"),
        ("exit 7", LISTENS, "benchmark on a/0 ended with status 7: it printed nothing"),
        (NEVER_ENDS, LISTENS, "benchmark on a/0 did not end within 3 s and was stopped"),
        (MEASURES, DIES, "worker-0 on a/0 did not listen"),
        (MEASURES, DIES, "Address already in use"),
        (NEVER_ENDS, LISTENS.replace("sleep 600", "sleep 0.5"), "ended before the benchmark did"),
    ],
)  # fmt: skip
def test_failures_say_why_and_leave_nothing(tmp_path, cluster, distribution, benchmark, worker, said):
    load = OpenMessaging(distribution(benchmark, worker), WORKLOAD, workers=("a", "b"), timeout_s=3)
    reason, files = fails(load, cluster, tmp_path)
    assert said in reason
    assert {"workload.yaml", "driver.yaml"} <= files and "result.json" not in files
    assert cluster.deleted == [] or benchmark != MEASURES


def test_a_broker_that_dies_ends_the_run(tmp_path, cluster, distribution):
    cluster.death = ClusterError("broker 1 has died")
    reason, files = fails(OpenMessaging(distribution(NEVER_ENDS), WORKLOAD), cluster, tmp_path)
    assert reason == "broker 1 has died" and "benchmark.txt" in files


def test_an_interruption_stops_everything(tmp_path, cluster, distribution):
    def interrupt():
        raise KeyboardInterrupt

    load = OpenMessaging(distribution(NEVER_ENDS), WORKLOAD, workers=("a", "b"))
    with pytest.raises(KeyboardInterrupt):
        run(load, cluster, tmp_path, when_sending=interrupt)
    assert comes_about(lambda: cluster.deleted == ["test-topic-0000000-x"])


def test_what_a_host_lacks_is_said_before_anything_starts(tmp_path, cluster, distribution):
    there = distribution(MEASURES)
    for change, said in (
        ({"distribution": "/nowhere"}, "OpenMessaging distribution is '/nowhere'; a/0 has no such folder"),
        ({"workers": ("a", "moon")}, "OpenMessaging workers has moon; the lab has a, b, c"),
        ({"workload": replace(WORKLOAD, useRandomizedPayloads=None, payloadFile="x/y")}, "no payloadFile"),
    ):
        assert said in fails(replace(OpenMessaging(there, WORKLOAD), **change), cluster, tmp_path)[0]
    (tmp_path / "bin/benchmark-worker").unlink()
    assert "has no " in fails(OpenMessaging(there, WORKLOAD, workers=("a", "b")), cluster, tmp_path)[0]
    distribution(MEASURES, java=127)
    assert "a/0 has no Java" in fails(OpenMessaging(there, WORKLOAD), cluster, tmp_path)[0]
    (tmp_path / "lib/x-benchmark-framework-1.jar").unlink()
    assert "has no jar of the benchmark" in fails(OpenMessaging(there, WORKLOAD), cluster, tmp_path)[0]
    (tmp_path / "bin/benchmark").unlink()
    assert fails(OpenMessaging(there, WORKLOAD), cluster, tmp_path)[0].endswith("/bin/benchmark")
    assert cluster.asked == 0, "nothing was started, so nothing was looked for"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"distribution": "omb"}, "an absolute path"),
        ({"workload": 3}, "a Workload, a mapping of its fields or a path"),
        ({"workload": {"topics": 1}}, "Workload lacks partitionsPerTopic"),
        ({"workload": {"topic": 1}}, "Workload has no field 'topic'"),
        ({"workload": replace(WORKLOAD, testDurationMinutes=0)}, "at least 1, as 0 never ends"),
        ({"workload": replace(WORKLOAD, topics=0)}, "topics is 0"),
        ({"workload": replace(WORKLOAD, useRandomizedPayloads=None)}, "payloadFile is None"),
        ({"workload": replace(WORKLOAD, randomizedPayloadPoolSize=0)}, "randomizedPayloadPoolSize is 0"),
        ({"workload": replace(WORKLOAD, consumerBacklogSizeGB=1)}, "give timeout_s"),
        ({"driver": {"reset": True}}, "deletes other topics"),
        ({"driver": {"commonConfig": "sasl.jaas.config=hunter2"}}, "the clients' security is set by the cluster"),
        ({"driver": {"producerConfig": "ssl.protocol=x"}}, "'ssl.protocol' in producerConfig"),
        ({"workers": ("a",)}, "two regions or more"),
        ({"workers": "ab"}, "two regions or more"),
        ({"port": 80}, "port is 80"),
        ({"heap_mb": 5}, "heap_mb is 5"),
        ({"timeout_s": 0}, "timeout_s is 0"),
    ],
)
def test_bad_settings_are_refused(change, said):
    with pytest.raises(ParameterError) as error:
        OpenMessaging(**{"distribution": "/x", "workload": WORKLOAD} | change)
    assert said in str(error.value) and "hunter2" not in str(error.value)


def test_settings_come_from_mappings_and_files_and_are_kept_as_json(tmp_path):
    path = WORKLOAD.write(tmp_path / "w.yaml")
    DRIVER.write(tmp_path / "d.yaml")
    one = OpenMessaging("/x/", WORKLOAD, DRIVER)
    assert one == OpenMessaging("/x", asdict(WORKLOAD), asdict(DRIVER))
    assert one == OpenMessaging("/x", str(path), tmp_path / "d.yaml")
    kept = json.loads(json.dumps(asdict(one)))
    assert kept["workload"]["producerRate"] == 200 and kept["driver"]["replicationFactor"] == 3
    assert one.replication == 3 and one.topic_settings == (("min.insync.replicas", "2"),)
    assert "hosts" not in str(one) and str(one).startswith("OpenMessaging Benchmark: 200 records/s of 1000 bytes")
    assert one.expected_bytes(10.0) == 200 * 1_000 * 60
    assert replace(one, workload=replace(WORKLOAD, producerRate=0)).expected_bytes(10.0) is None
    inside = replace(WORKLOAD, payloadFile="payload/a", useRandomizedPayloads=None)
    assert OpenMessaging("/x", inside).workload_on_host().payloadFile == "/x/payload/a"


def test_it_is_the_load_of_a_trial(tmp_path, cluster, distribution):
    load = OpenMessaging(distribution(MEASURES), WORKLOAD)
    trial = KafkaTrial(load)
    files = trial.run(cluster.lab.host("a"), cluster.lab.host("b"), tmp_path / "run", "0001.1")
    assert "openmessaging/0001.1.result.json" in {file.path for file in files}
    spread = KafkaTrial(load, client_regions=("a", "b"))
    with pytest.raises(ExperimentError, match="name them as workers"):
        spread.run(cluster.lab.host("a"), cluster.lab.host("b"), tmp_path / "run", "0002.1")


@pytest.mark.kafka
@pytest.mark.skipif(not DISTRIBUTION, reason="WANBENCH_OMB names no distribution of the benchmark")
@pytest.mark.parametrize("workers", [None, ("eu", "us")], ids=["local worker", "two workers"])
def test_the_benchmark_itself_on_a_secured_cluster(tmp_path, shared_cluster, workers):
    lab = shared_cluster.lab
    load = OpenMessaging(DISTRIBUTION, WORKLOAD, Driver(producerConfig="acks=all\n"), workers=workers, timeout_s=600)
    load.run(lab.host("eu"), lab.host("us"), tmp_path, "0001.1")
    assert read_driver(tmp_path / "openmessaging/0001.1.driver.yaml")
    found = reader.read(tmp_path / "openmessaging/0001.1.result.json")
    tail = of_benchmark(found["quantiles"], found["benchmark_windows"])
    assert found["benchmark_runs"].n_windows[0] >= 5 and tail.n > 1_000
    assert tail.quantile(0.5) >= 20, "no record is acknowledged before it was at two replicas 20 ms away"
    assert not [each for each in shared_cluster.ask(lab.host("eu"), "topics") if "test-topic" in each["name"]]
