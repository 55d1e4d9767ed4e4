"""Workloads and drivers of the OpenMessaging Benchmark as open-loop loads, and back."""

from dataclasses import replace

import pytest
from openmessaging_examples import DRIVER, WORKLOAD, file

from wanbench.errors import ParameterError
from wanbench.measure.experiments import KafkaOpenLoop
from wanbench.pages.tail_latency.design.openmessaging_files import Driver, read_driver, read_properties
from wanbench.pages.tail_latency.design.openmessaging_open_loop import driver_of, to_open_loop, workload_of


def test_an_open_loop_load_of_a_workload(tmp_path):
    load = to_open_loop(WORKLOAD, read_driver(file(tmp_path, DRIVER)))
    assert load == KafkaOpenLoop(
        600, record_bytes=1024, topics=2, partitions=3, replication=3, producers=5, groups=4, consumers=3, acks="1",
        linger_ms=1, batch_bytes=131_072, compression="none", duration_s=120, warmup_s=60,
        topic_settings={"min.insync.replicas": 2},
        producer_settings={"request.timeout.ms": 120_000},
        consumer_settings={"request.timeout.ms": 120_000},
    )  # fmt: skip
    assert to_open_loop(WORKLOAD).linger_ms == KafkaOpenLoop(1).linger_ms
    assert to_open_loop(WORKLOAD, Driver()).linger_ms == 0
    assert to_open_loop(WORKLOAD, duration_s=7).duration_s == 7
    assert to_open_loop(replace(WORKLOAD, warmupDurationMinutes=None)).warmup_s == 60


@pytest.mark.parametrize(
    ("change", "said", "way_out"),
    [
        ({"keyDistributor": "RANDOM_NANO"}, "keyDistributor (records of an open-loop load have no key)", None),
        ({"producerRate": 0}, "producerRate (0 makes the benchmark search", {"rate_records_per_s": 5}),
        ({"consumerBacklogSizeGB": 1}, "consumerBacklogSizeGB", None),
        ({"consumerOnly": True}, "consumerOnly", None),
        ({"useRandomizedPayloads": None, "payloadFile": "a"}, "payloadFile", {"payload": "json"}),
        ({"randomBytesRatio": 0.5}, "randomBytesRatio", {"payload": "random"}),
        ({"testDurationMinutes": 0}, "testDurationMinutes (0 never ends; or give duration_s)", {"duration_s": 10}),
        ({"partitionsPerTopicList": (1, 2)}, "partitionsPerTopicList", {"partitions": 3}),
        ({"producersPerTopicList": (1, 2)}, "producersPerTopicList", {"producers": 1}),
        ({"producerRateList": ((0, 5),)}, "producerRateList", {"rate_records_per_s": 5}),
        ({"existingTopicList": ("a",)}, "existingTopicList", None),
    ],
)
def test_what_cannot_be_carried_over_is_an_error_unless_somebody_decides(change, said, way_out):
    workload, (name, *_) = replace(WORKLOAD, **change), reversed(change)
    with pytest.raises(ParameterError) as error:
        to_open_loop(workload)
    assert said in str(error.value)
    if way_out:
        assert to_open_loop(workload, **way_out)
    elif name != "testDurationMinutes":
        assert to_open_loop(workload, ignoring=[name])


def test_settings_that_librdkafka_lacks_are_an_error_and_others_are_translated():
    driver = Driver(
        producerConfig="acks=-1\nbuffer.memory=67108864\nsend.buffer.bytes=-1\nmax.request.size=2097152\n",
        consumerConfig="auto.offset.reset=earliest\nfetch.max.wait.ms=7\ngroup.id=x\nclient.rack=r\n",
    )
    load = to_open_loop(WORKLOAD, driver)
    assert load.acks == "all" and load.client_rack == "r"
    assert dict(load.producer_settings) == {
        "queue.buffering.max.kbytes": "65536", "socket.send.buffer.bytes": "0", "message.max.bytes": "2097152",
    }  # fmt: skip
    assert dict(load.consumer_settings) == {"fetch.wait.max.ms": "7"}
    back = driver_of(load, "a:1")
    assert read_properties(back.commonConfig) == {"bootstrap.servers": "a:1"}
    assert (back.settings("producer") | {"acks": "-1"}).items() >= driver.settings("producer").items()
    assert back.settings("consumer")["fetch.max.wait.ms"] == "7"
    for name in ("max.block.ms=5", "transactional.id=t", "partitioner.class=x"):
        odd = Driver(producerConfig=name)
        with pytest.raises(ParameterError, match="librdkafka has no such setting"):
            to_open_loop(WORKLOAD, odd)
        assert to_open_loop(WORKLOAD, odd, ignoring=[name.partition("=")[0]])
    secret = Driver(commonConfig="sasl.jaas.config=hunter2")
    with pytest.raises(ParameterError, match="the clients' security is set by the cluster") as error:
        to_open_loop(WORKLOAD, secret)
    assert "hunter2" not in str(error.value)
    for odd in ("linger.ms=x", "batch.size=-1"):
        with pytest.raises(ParameterError, match=r"allowed: "):
            to_open_loop(WORKLOAD, Driver(producerConfig=odd))
    with pytest.raises(ParameterError, match="fields of KafkaOpenLoop"):
        to_open_loop(WORKLOAD, rate=5)


def test_shared_settings_are_known_to_librdkafka():
    import confluent_kafka

    from wanbench.pages.tail_latency.design.openmessaging_open_loop import _RENAMED, OF_BOTH

    for name in {*OF_BOTH, *_RENAMED.values()}:
        try:
            confluent_kafka.Producer({name: "1"})
        except confluent_kafka.KafkaException as error:
            assert "No such configuration property" not in str(error), name


def test_a_workload_and_a_driver_of_an_open_loop_load():
    load = to_open_loop(WORKLOAD, Driver(producerConfig="acks=all\nlinger.ms=3\n"))
    there = workload_of(load)
    assert to_open_loop(there, driver_of(load)) == replace(load, consumer_settings=load.consumer_settings)
    assert there.randomizedPayloadPoolSize * there.messageSize <= 1 << 20
    assert workload_of(load, name="x", testDurationMinutes=9).testDurationMinutes == 9
    for change, said in (
        ({"duration_s": 90}, "duration_s is 90"),
        ({"warmup_s": 5}, "warmup_s is 5"),
        ({"rate_records_per_s": 0.5}, "rate_records_per_s is 0.5"),
        ({"payload": "json"}, "payload is 'json'"),
    ):
        with pytest.raises(ParameterError, match=said):
            workload_of(replace(load, **change))
    for change, said in (
        ({"linger_ms": 0.5}, "linger_ms is 0.5"),
        ({"producer_settings": {"sticky.partitioning.linger.ms": 5}}, "Java clients do not have"),
        ({"client_rack": "region"}, "the name of one rack"),
    ):
        with pytest.raises(ParameterError, match=said):
            driver_of(replace(load, **change))
