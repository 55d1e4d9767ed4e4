"""Workloads and drivers of the OpenMessaging Benchmark: read, written, converted; by its own parser, where it is."""

import json
import os
import random
import subprocess
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wanbench.errors import ParameterError
from wanbench.experiments import KafkaOpenLoop
from wanbench.experiments.flat_yaml import read_flat
from wanbench.experiments.java_properties import read_properties
from wanbench.experiments.openmessaging_fields import LARGEST_INT, LARGEST_LONG
from wanbench.experiments.openmessaging_files import (
    KAFKA_DRIVER,
    KEY_DISTRIBUTORS,
    Driver,
    Workload,
    read_driver,
    read_workload,
)

DISTRIBUTION, CLONES = os.environ.get("WANBENCH_OMB"), os.environ.get("WANBENCH_OMB_CLONES")
WORKLOAD = Workload(
    topics=2,
    partitionsPerTopic=3,
    messageSize=1024,
    subscriptionsPerTopic=4,
    producersPerTopic=5,
    consumerPerSubscription=3,
    producerRate=600,
    testDurationMinutes=2,
    warmupDurationMinutes=1,
    useRandomizedPayloads=True,
    randomBytesRatio=1.0,
    randomizedPayloadPoolSize=10,
)
TEXT = """
name: 1 topic / 16 partitions   # made up

topics: 1
partitionsPerTopic: 16
messageSize: 1_024
keyDistributor: "NO_KEY"
payloadFile: payload/a.data
subscriptionsPerTopic: 1
producersPerTopic: 1
consumerPerSubscription: 1
producerRate: 50000
consumerBacklogSizeGB: 0
testDurationMinutes: 15
"""
DRIVER = """
name: Kafka
driverClass: io.openmessaging.benchmark.driver.kafka.KafkaBenchmarkDriver
replicationFactor: 3
reset: true
topicConfig: |
  min.insync.replicas=2
commonConfig: |
  bootstrap.servers=localhost:9092
  request.timeout.ms=120000
producerConfig: |
  acks=1
  linger.ms=1
  batch.size=131072
consumerConfig: |
  auto.offset.reset=earliest
  enable.auto.commit=false
"""


def file(tmp_path, text):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    return path


def test_a_workload_is_read_and_what_is_not_there_is_none(tmp_path):
    found = read_workload(file(tmp_path, TEXT))
    assert found.name == "1 topic / 16 partitions" and found.messageSize == 1024
    assert found.warmupDurationMinutes is None and found.consumerBacklogSizeGB == 0
    assert "warmupDurationMinutes" not in found.text()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "producerRate: 50000",
            "producerRat: 50000",
            "Workload has no field 'producerRat'; allowed: topics, ",
        ),
        ("topics: 1\n", "", "Workload lacks topics"),
        ("topics: 1\n", "topics: one\n", "line 4: Workload topics is 'one'; allowed: a whole number from 0"),
        ("topics: 1\n", "topics: '1'\n", "line 4: Workload topics is '1'; allowed: a whole number"),
        ("topics: 1\n", "topics: [1, 2]\n", "Workload topics is [1, 2]; allowed: a whole number"),
        ("topics: 1\n", "topics:\n", "Workload topics is None; allowed: a whole number"),
        (
            "Minutes: 15",
            "Minutes: 0.5",
            "line 14: Workload testDurationMinutes is 0.5; allowed: a whole number",
        ),
        ("Minutes: 15", "Minutes: 3000000000", "Workload testDurationMinutes is 3000000000"),
        (
            '"NO_KEY"',
            "SOME_KEY",
            "keyDistributor is 'SOME_KEY'; allowed: 'NO_KEY', 'KEY_ROUND_ROBIN', 'RANDOM_NANO'",
        ),
        (
            "topics: 1\n",
            "topics: 1\nuseRandomizedPayloads: yes\n",
            "useRandomizedPayloads is 'yes'; allowed: True",
        ),
        (
            "topics: 1\n",
            "topics: 1\nrandomBytesRatio: 1.5\n",
            "randomBytesRatio is 1.5; allowed: a number from 0 to 1",
        ),
        ("topics: 1\n", "topics: 1\nproducerRateList: [[1]]\n", "a list of [minutes, rate]"),
        ("topics: 1\n", "topics: 1\nexistingTopicList: [1]\n", "a list of names"),
    ],
)
def test_errors_name_file_line_field_and_what_is_allowed(tmp_path, old, new, said):
    path = file(tmp_path, TEXT.replace(old, new))
    with pytest.raises(ParameterError) as error:
        read_workload(path)
    assert said in str(error.value) and str(path) in str(error.value)


def test_a_driver_is_read_and_never_shows_its_settings(tmp_path):
    found = read_driver(file(tmp_path, DRIVER))
    assert found.replicationFactor == 3 and found.reset is True and found.driverClass == KAFKA_DRIVER
    assert found.settings("producer") == {
        "bootstrap.servers": "localhost:9092", "request.timeout.ms": "120000", "acks": "1", "linger.ms": "1",
        "batch.size": "131072",
    }  # fmt: skip
    assert "localhost" not in repr(found)
    for old, new, said in (
        ("KafkaBenchmarkDriver", "PulsarDriver", "Driver driverClass is"),
        ("replicationFactor: 3", "replicationFactor: 99999", "Driver replicationFactor is 99999"),
        ("topicConfig: |\n  min.insync.replicas=2\n", "", "Driver lacks topicConfig"),
        ("acks=1", "password=hunter2\\uxyz", "four hexadecimal digits"),
        ("replicationFactor: 3", "replicationFactor: 3\nclusterName: x", "Driver has no field 'clusterName'"),
    ):
        with pytest.raises(ParameterError) as error:
            read_driver(file(tmp_path, DRIVER.replace(old, new)))
        assert said in str(error.value) and "hunter2" not in str(error.value)
    with pytest.raises(ParameterError) as error:
        Driver(producerConfig="a=hunter2\0")
    assert "hunter2" not in str(error.value)


def test_a_file_needs_the_ending_without_which_the_benchmark_fails(tmp_path):
    with pytest.raises(ParameterError, match=r"a name that ends in .yaml"):
        WORKLOAD.write(tmp_path / "workload")


LINE = st.text(st.characters(codec="utf-8"), max_size=12).filter(str.isprintable)
WHOLE = st.integers(0, LARGEST_INT)
KINDS = {
    "whole": WHOLE,
    "share": st.floats(0, 1),
    "flag": st.booleans(),
    "text": LINE,
    "texts": st.lists(LINE, max_size=3).map(tuple),
    "wholes": st.lists(WHOLE, max_size=3).map(tuple),
    "rows": st.lists(st.tuples(WHOLE, WHOLE) | st.tuples(WHOLE, WHOLE, WHOLE), max_size=3).map(tuple),
    "properties": st.lists(LINE, max_size=3).map("\n".join) | st.text("a=\\ \n\t#:", max_size=9),
}


def made_up(kind):
    parts = {}
    for each in fields(kind):
        metadata = each.metadata
        values = st.sampled_from(metadata["allowed"]) if "allowed" in metadata else KINDS[metadata["kind"]]
        if each.name == "consumerBacklogSizeGB":
            values = st.integers(0, LARGEST_LONG)
        if each.name == "replicationFactor":
            values = st.integers(0, 2**15 - 1)
        parts[each.name] = values | st.none() if each.default is None or each.name == "name" else values

    def build(found):
        try:
            return kind(**found)
        except ParameterError:  # a broken escape in a properties text
            return None

    return st.fixed_dictionaries(parts).map(build).filter(lambda found: found is not None)


@given(workload=made_up(Workload), driver=made_up(Driver))
def test_what_is_written_reads_equal(tmp_path_factory, workload, driver):
    path = tmp_path_factory.getbasetemp() / "made-up.yaml"
    assert read_workload(workload.write(path)) == workload
    assert read_driver(driver.write(path)) == driver


def kinds_of_files(folder):
    """Workload and Kafka driver files below a folder, with their readers; what is neither is left out."""
    for path in sorted(Path(folder).rglob("*.yaml")):
        try:
            names = set(read_flat(path))
        except ParameterError:
            continue
        if {
            "messageSize",
            "topics",
        } <= names and "nameFormat" not in names:  # not a template of many workloads
            yield path, read_workload
        elif f"\ndriverClass: {KAFKA_DRIVER}\n" in path.read_text():
            yield path, read_driver


@pytest.mark.skipif(not CLONES, reason="WANBENCH_OMB_CLONES names no folder of clones")
def test_files_of_others_read_write_and_read_equal(tmp_path):
    import yaml

    found = list(kinds_of_files(CLONES))
    assert {read for _, read in found} == {read_workload, read_driver}
    for path, read in found:
        one = read(path)
        written = one.write(tmp_path / "again.yaml")
        assert read(written) == one
        assert yaml.safe_load(written.read_text()) == yaml.safe_load(path.read_text()), path


def test_an_open_loop_load_of_a_workload(tmp_path):
    load = WORKLOAD.open_loop(read_driver(file(tmp_path, DRIVER)))
    assert load == KafkaOpenLoop(
        600, record_bytes=1024, topics=2, partitions=3, replication=3, producers=5, groups=4, consumers=3, acks="1",
        linger_ms=1, batch_bytes=131_072, compression="none", idempotence=None, duration_s=120, warmup_s=60,
        topic_settings={"min.insync.replicas": 2},
        producer_settings={"request.timeout.ms": 120_000, "max.in.flight.requests.per.connection": 5},
        consumer_settings={"request.timeout.ms": 120_000},
    )  # fmt: skip
    assert WORKLOAD.open_loop().linger_ms == KafkaOpenLoop(1).linger_ms
    assert WORKLOAD.open_loop(Driver()).linger_ms == 0
    assert WORKLOAD.open_loop(duration_s=7).duration_s == 7
    assert replace(WORKLOAD, warmupDurationMinutes=None).open_loop().warmup_s == 60


@pytest.mark.parametrize(
    ("change", "said", "way_out"),
    [
        (
            {"keyDistributor": "RANDOM_NANO"},
            "keyDistributor (records of an open-loop load have no key)",
            None,
        ),
        ({"producerRate": 0}, "producerRate (0 makes the benchmark search", {"rate_records_per_s": 5}),
        ({"consumerBacklogSizeGB": 1}, "consumerBacklogSizeGB", None),
        ({"consumerOnly": True}, "consumerOnly", None),
        ({"useRandomizedPayloads": None, "payloadFile": "a"}, "payloadFile", {"payload": "json"}),
        ({"randomBytesRatio": 0.5}, "randomBytesRatio", {"payload": "random"}),
        (
            {"testDurationMinutes": 0},
            "testDurationMinutes (0 never ends; or give duration_s)",
            {"duration_s": 10},
        ),
        ({"partitionsPerTopicList": (1, 2)}, "partitionsPerTopicList", {"partitions": 3}),
        ({"producersPerTopicList": (1, 2)}, "producersPerTopicList", {"producers": 1}),
        ({"producerRateList": ((0, 5),)}, "producerRateList", {"rate_records_per_s": 5}),
        ({"existingTopicList": ("a",)}, "existingTopicList", None),
    ],
)
def test_what_cannot_be_carried_over_is_an_error_unless_somebody_decides(change, said, way_out):
    workload, (name, *_) = replace(WORKLOAD, **change), reversed(change)
    with pytest.raises(ParameterError) as error:
        workload.open_loop()
    assert said in str(error.value)
    if way_out:
        assert workload.open_loop(**way_out)
    elif name != "testDurationMinutes":
        assert workload.open_loop(ignoring=[name])


def test_settings_that_librdkafka_lacks_are_an_error_and_others_are_translated():
    driver = Driver(
        producerConfig="acks=-1\nbuffer.memory=67108864\nsend.buffer.bytes=-1\nmax.request.size=2097152\n",
        consumerConfig="auto.offset.reset=earliest\nfetch.max.wait.ms=7\ngroup.id=x\nclient.rack=r\n",
    )
    load = WORKLOAD.open_loop(driver)
    assert load.acks == "all" and load.client_rack == "r"
    assert dict(load.producer_settings) == {
        "queue.buffering.max.kbytes": "65536", "socket.send.buffer.bytes": "0", "message.max.bytes": "2097152",
    }  # fmt: skip
    assert dict(load.consumer_settings) == {"fetch.wait.max.ms": "7"}
    back = Driver.of(load, "a:1")
    assert read_properties(back.commonConfig) == {"bootstrap.servers": "a:1"}
    assert (back.settings("producer") | {"acks": "-1"}).items() >= driver.settings("producer").items()
    assert back.settings("consumer")["fetch.max.wait.ms"] == "7"
    for name in ("max.block.ms=5", "transactional.id=t", "partitioner.class=x"):
        odd = Driver(producerConfig=name)
        with pytest.raises(ParameterError, match="librdkafka has no such setting"):
            WORKLOAD.open_loop(odd)
        assert WORKLOAD.open_loop(odd, ignoring=[name.partition("=")[0]])
    secret = Driver(commonConfig="sasl.jaas.config=hunter2")
    with pytest.raises(ParameterError, match="the cluster has the clients' security") as error:
        WORKLOAD.open_loop(secret)
    assert "hunter2" not in str(error.value)
    for odd in ("linger.ms=x", "batch.size=-1", "enable.idempotence=perhaps"):
        with pytest.raises(ParameterError, match=r"allowed: "):
            WORKLOAD.open_loop(Driver(producerConfig=odd))
    with pytest.raises(ParameterError, match="fields of KafkaOpenLoop"):
        WORKLOAD.open_loop(rate=5)


def test_shared_settings_are_known_to_librdkafka():
    import confluent_kafka

    from wanbench.experiments.openmessaging_settings import _RENAMED, OF_BOTH

    for name in {*OF_BOTH, *_RENAMED.values()}:
        try:
            confluent_kafka.Producer({name: "1"})
        except confluent_kafka.KafkaException as error:
            assert "No such configuration property" not in str(error), name


def test_cautions_say_what_is_not_quite_the_same(tmp_path):
    said = " ".join(
        replace(WORKLOAD, warmupDurationMinutes=None, logIntervalMillis=1).cautions(
            read_driver(file(tmp_path, DRIVER))
        )
    )
    for part in (
        "whole milliseconds",
        "in turn",
        "no warm-up",
        "logIntervalMillis",
        "commit",
        "reset",
        "drain_s",
    ):
        assert part in said


def test_a_workload_and_a_driver_of_an_open_loop_load():
    load = WORKLOAD.open_loop(Driver(producerConfig="acks=all\nlinger.ms=3\n"))
    there = Workload.of(load)
    assert there.open_loop(Driver.of(load)) == replace(
        load, idempotence=True, consumer_settings=load.consumer_settings
    )
    assert there.randomizedPayloadPoolSize * there.messageSize <= 1 << 20
    assert Workload.of(load, name="x", testDurationMinutes=9).testDurationMinutes == 9
    for change, said in (
        ({"duration_s": 90}, "duration_s is 90"),
        ({"warmup_s": 5}, "warmup_s is 5"),
        ({"rate_records_per_s": 0.5}, "rate_records_per_s is 0.5"),
        ({"payload": "json"}, "payload is 'json'"),
    ):
        with pytest.raises(ParameterError, match=said):
            Workload.of(replace(load, **change))
    for change, said in (
        ({"linger_ms": 0.5}, "linger_ms is 0.5"),
        ({"producer_settings": {"sticky.partitioning.linger.ms": 5}}, "Java clients do not have"),
        ({"client_rack": "region"}, "the name of one rack"),
    ):
        with pytest.raises(ParameterError, match=said):
            Driver.of(replace(load, **change))


JAVA = """
import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import java.io.*;
import java.util.*;

public class Parse {
    public static void main(String[] paths) throws Exception {
        // as in the benchmark; and once more with unknown names refused, which it only passes over
        ObjectMapper mapper = new ObjectMapper(new YAMLFactory())
            .configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);
        mapper.enable(DeserializationFeature.READ_UNKNOWN_ENUM_VALUES_USING_DEFAULT_VALUE);
        ObjectMapper strict = new ObjectMapper(new YAMLFactory());
        Map<String, Object> all = new TreeMap<>();
        for (String path : paths) {
            boolean driver = path.endsWith("driver.yaml");
            Class<?> kind = Class.forName(driver ? "io.openmessaging.benchmark.driver.kafka.Config"
                                                 : "io.openmessaging.benchmark.Workload");
            Object read = mapper.readValue(new File(path), kind);
            if (!driver && path.contains("own")) strict.readValue(new File(path), kind);
            Map<String, Object> found = mapper.convertValue(read, TreeMap.class);
            if (driver) {
                Object about = mapper.readValue(
                    new File(path), Class.forName("io.openmessaging.benchmark.DriverConfiguration"));
                found.putAll(mapper.convertValue(about, TreeMap.class));
                for (String name : List.of("topicConfig", "commonConfig", "producerConfig", "consumerConfig")) {
                    Properties properties = new Properties();
                    properties.load(new StringReader((String) found.get(name)));
                    found.put(name + " read", properties);
                }
            }
            all.put(path, found);
        }
        new ObjectMapper().writeValue(System.out, all);
    }
}
"""
OF_FORKS = {
    "sampleRateMillis", "existingTopicList", "existingProduceTopicList", "existingConsumeTopicList",
    "partitionsPerTopicList", "producersPerTopicList", "producerRateList", "randomTopicNames", "logIntervalMillis",
    "consumerOnly",
}  # fmt: skip


def drawn(rng, kind):
    """A made-up workload or driver, with upstream's fields."""
    text = "".join(rng.choice("abc ABC:#=\\'\"%@-|>?üß😀") for _ in range(rng.randrange(12)))
    lines = "".join(f"{rng.choice('abc')}.ms={rng.choice('xyz')}{text}\n" for _ in range(rng.randrange(4)))
    lines = lines.replace("\\", "\\\\")
    values = {}
    for each in fields(kind):
        if each.name in OF_FORKS or (each.default is None and rng.random() < 0.3):
            continue
        values[each.name] = {
            "whole": lambda: rng.randrange(30_000),
            "share": lambda: rng.choice([0.0, 1.0, rng.random(), 1e-7]),
            "flag": lambda: rng.random() < 0.5,
            "text": lambda text=text: text,
            "choice": lambda each=each: rng.choice(each.metadata["allowed"]),
            "properties": lambda lines=lines: lines[: rng.choice([None, -1])],
        }[each.metadata["kind"]]()
    return kind(**values)


@pytest.mark.skipif(not DISTRIBUTION, reason="WANBENCH_OMB names no distribution of the benchmark")
def test_the_benchmarks_own_parser_reads_what_is_written(tmp_path):
    rng = random.Random(0)
    written = {}
    for number in range(60):
        for kind, name in ((Workload, "own.yaml"), (Driver, "driver.yaml")):
            one = drawn(rng, kind)
            written[str(one.write(tmp_path / f"{number}-{name}"))] = one
    halves = tmp_path / "half.yaml"
    halves.write_text(TEXT.replace("Minutes: 15", "Minutes: 0.5"))
    (tmp_path / "Parse.java").write_text(JAVA)
    command = ["java", "-cp", f"{DISTRIBUTION}/lib/*", str(tmp_path / "Parse.java"), *written, str(halves)]
    done = subprocess.run(command, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    read = json.loads(done.stdout)
    for path, one in written.items():
        for name, value in one.as_mapping().items():
            if name != "reset":  # of the forks
                assert read[path][name] == value, (path, name)
        for name in ("topicConfig", "commonConfig", "producerConfig", "consumerConfig") * isinstance(
            one, Driver
        ):
            assert read[path][f"{name} read"] == read_properties(getattr(one, name))
        if isinstance(one, Workload):
            assert read[path]["warmupDurationMinutes"] == (
                1 if one.warmupDurationMinutes is None else one.warmupDurationMinutes
            )
            assert read[path]["keyDistributor"] == (one.keyDistributor or KEY_DISTRIBUTORS[0])
    assert read[str(halves)]["testDurationMinutes"] == 0, (
        "the benchmark cuts half a minute to none, without end"
    )
