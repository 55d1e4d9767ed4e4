"""Workloads and drivers of the OpenMessaging Benchmark: read and written; by its own parser, where it is."""

import json
import os
import random
import subprocess
from dataclasses import asdict, fields
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from openmessaging_examples import DRIVER, TEXT, WORKLOAD, file

from wanbench.errors import ParameterError
from wanbench.pages.tail_latency.design.openmessaging_files import (
    KAFKA_DRIVER,
    KEY_DISTRIBUTORS,
    LARGEST_BYTES,
    LARGEST_INT,
    LARGEST_LONG,
    Driver,
    Workload,
    read_driver,
    read_properties,
    read_workload,
)

DISTRIBUTION, CLONES = os.environ.get("WANBENCH_OMB"), os.environ.get("WANBENCH_OMB_CLONES")


def test_a_workload_is_read_and_what_is_not_there_is_none(tmp_path):
    found = read_workload(file(tmp_path, TEXT))
    assert found.name == "1 topic / 16 partitions" and found.messageSize == 1024
    assert found.warmupDurationMinutes is None and found.consumerBacklogSizeGB == 0
    assert "warmupDurationMinutes" not in found.text()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("producerRate: 50000", "producerRat: 50000", "Workload has no field 'producerRat'; allowed: topics, "),
        ("topics: 1\n", "", "Workload lacks topics"),
        ("topics: 1\n", "topics: one\n", "Workload topics is 'one'; allowed: a whole number from 0"),
        ("topics: 1\n", "topics: '1'\n", "Workload topics is '1'; allowed: a whole number"),
        ("topics: 1\n", "topics: [1, 2]\n", "Workload topics is [1, 2]; allowed: a whole number"),
        ("topics: 1\n", "topics:\n", "Workload topics is None; allowed: a whole number"),
        ("Minutes: 15", "Minutes: 0.5", "Workload testDurationMinutes is 0.5; allowed: a whole number"),
        ("Minutes: 15", "Minutes: 3000000000", "Workload testDurationMinutes is 3000000000"),
        ('"NO_KEY"', "SOME_KEY", "keyDistributor is 'SOME_KEY'; allowed: 'NO_KEY', 'KEY_ROUND_ROBIN', 'RANDOM_NANO'"),
        ("topics: 1\n", "topics: 1\nuseRandomizedPayloads: 1\n", "useRandomizedPayloads is 1; allowed: True"),
        ("topics: 1\n", "topics: 1\nrandomBytesRatio: 1.5\n", "randomBytesRatio is 1.5; allowed: a number from 0 to 1"),
        ("topics: 1\n", "topics: 1\nproducerRateList: [[1]]\n", "entries [minutes, rate]"),
        ("topics: 1\n", "topics: 1\nexistingTopicList: [1]\n", "a list of up to 10,000 names"),
    ],
)
def test_errors_name_file_field_and_what_is_allowed(tmp_path, old, new, said):
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
        ("KafkaBenchmarkDriver", "PulsarDriver\nnamesrvAddr: x", "Driver driverClass is"),
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


BOMB = "a: &a [x, x]\n" + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(9))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, "line 2: there is an alias; allowed: YAML"),
        ("a: !!python/object/apply:os.system [ls]\n", "line 1: could not determine a constructor for the tag"),
        ("a: !!bool hunter2\n", "has a value that its YAML type cannot hold"),
        ("a: !!timestamp x\n", "cannot hold"),
        ("a: 1\nb: 2\na: 3\n", "there is 'a' twice; allowed: YAML"),
        ("a: 1\n---\na: 2\n", "line 2: but found another document"),
        ("topics: {b: 1}\n", "Workload topics is {'b': 1}; allowed: a whole number"),
        ("producerRateList: [[[1]]]\n", "Workload producerRateList is [[[1]]]; allowed: a list"),
        ("? [a]\n: 1\n", "line 1: found unhashable key"),
        ("1: 2\n", "Workload has no field '1'"),
        ("- hunter2\n", "it holds list; allowed: names with values"),
        ("hunter2", "it holds str; allowed: names with values"),
        ("# nothing\n", "it holds NoneType; allowed: names with values"),
        ("a: [1\n", "line 2"),
        ("a: '%\n", "allowed: YAML"),
        ("a: %x\n", "allowed: YAML"),
        ("[" * 60_000, "cannot be read"),
        ("topics: " + "9" * 5_000, "cannot hold"),
        (b"a: \xff\n", "utf-8"),
        (b"a: \x00\n", "allowed: YAML"),
        ("a: " + "x" * LARGEST_BYTES, f"more than {LARGEST_BYTES:,} bytes"),
    ],
)
def test_files_that_are_refused(tmp_path, text, said):
    path = tmp_path / "a.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    for read in (read_workload, read_driver):
        with pytest.raises(ParameterError) as error:
            read(path)
        assert "a.yaml" in str(error.value) and "hunter2" not in str(error.value)
        assert said in str(error.value) or (read is read_driver and "Workload" in said)


def test_what_is_no_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "none.yaml", ".", "a\0b"):
        with pytest.raises(ParameterError):
            read_workload(f"{tmp_path}/{name}")


def test_a_file_needs_the_ending_without_which_the_benchmark_fails(tmp_path):
    with pytest.raises(ParameterError, match=r"a name that ends in .yaml"):
        WORKLOAD.write(tmp_path / "workload")


LINE = st.text(st.characters(codec="utf-8"), max_size=12).filter(str.isprintable)
WHOLE = st.integers(0, LARGEST_INT)
KINDS = {
    "Whole": WHOLE,
    "Short": st.integers(0, 2**15 - 1),
    "Long": st.integers(0, LARGEST_LONG),
    "Share": st.floats(0, 1),
    "Flag": st.booleans(),
    "KeyDistributor": st.sampled_from(KEY_DISTRIBUTORS),
    "DriverClass": st.just(KAFKA_DRIVER),
    "Line": LINE,
    "Lines": st.lists(LINE, max_size=3).map(tuple),
    "Wholes": st.lists(WHOLE, max_size=3).map(tuple),
    "Rates": st.lists(st.tuples(WHOLE, WHOLE) | st.tuples(WHOLE, WHOLE, WHOLE), max_size=3).map(tuple),
    "Properties": st.lists(LINE, max_size=3).map("\n".join) | st.text("a=\\ \n\t#:", max_size=9),
}


def made_up(kind):
    parts = {each.name: KINDS[each.type.removesuffix(" | None")] for each in fields(kind)}
    parts |= {each.name: parts[each.name] | st.none() for each in fields(kind) if each.type.endswith("None")}

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
            names = set(yaml.safe_load(path.read_text()))
        except (yaml.YAMLError, TypeError):
            continue
        if {"messageSize", "topics"} <= names and "nameFormat" not in names:  # not a template of many workloads
            yield path, read_workload
        elif f"\ndriverClass: {KAFKA_DRIVER}\n" in path.read_text():
            yield path, read_driver


@pytest.mark.skipif(not CLONES, reason="WANBENCH_OMB_CLONES names no folder of clones")
def test_files_of_others_read_write_and_read_equal(tmp_path):
    found = list(kinds_of_files(CLONES))
    assert {read for _, read in found} == {read_workload, read_driver}
    for path, read in found:
        one = read(path)
        written = one.write(tmp_path / "again.yaml")
        assert read(written) == one
        assert yaml.safe_load(written.read_text()) == yaml.safe_load(path.read_text()), path


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
            "Whole": lambda: rng.randrange(30_000),
            "Share": lambda: rng.choice([0.0, 1.0, rng.random(), 1e-7]),
            "Flag": lambda: rng.random() < 0.5,
            "Line": lambda text=text: text,
            "KeyDistributor": lambda: rng.choice(KEY_DISTRIBUTORS),
            "DriverClass": lambda: KAFKA_DRIVER,
            "Properties": lambda lines=lines: lines[: rng.choice([None, -1])],
        }[{"Short": "Whole", "Long": "Whole"}.get(kind_of := each.type.removesuffix(" | None"), kind_of)]()
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
        for name, value in asdict(one).items():
            if name != "reset" and value is not None:  # reset: of the forks
                assert read[path][name] == value, (path, name)
        for name in ("topicConfig", "commonConfig", "producerConfig", "consumerConfig") * isinstance(one, Driver):
            assert read[path][f"{name} read"] == read_properties(getattr(one, name))
        if isinstance(one, Workload):
            assert read[path]["warmupDurationMinutes"] == (
                1 if one.warmupDurationMinutes is None else one.warmupDurationMinutes
            )
            assert read[path]["keyDistributor"] == (one.keyDistributor or KEY_DISTRIBUTORS[0])
    assert read[str(halves)]["testDurationMinutes"] == 0, "the benchmark cuts half a minute to none, without end"
