"""
Read and write workload and driver files of the OpenMessaging Benchmark, strictly.

The benchmark itself ignores unknown names, truncates text and fractions to whole numbers (half a minute becomes 0, an
endless run), and replaces an unknown key distributor by its default. Here these are errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from wanbench.checks import check_choice

from . import openmessaging_open_loop as carried
from .java_properties import read_properties
from .openmessaging_fields import LARGEST_LONG, FlatFile, kept, read_file

KEY_DISTRIBUTORS = ("NO_KEY", "KEY_ROUND_ROBIN", "RANDOM_NANO")
KAFKA_DRIVER = "io.openmessaging.benchmark.driver.kafka.KafkaBenchmarkDriver"


@dataclass(frozen=True)
class Workload(FlatFile):
    """
    A workload: records, rate and receivers. Fields have the benchmark's names.

    None means that the file lacks the field; the benchmark then uses its own default, which differs between forks:
    `warmupDurationMinutes` is 1 in the benchmark and 30 in Redpanda's fork.

    Parameters
    ----------
    topics, partitionsPerTopic, messageSize, producersPerTopic : int
        `messageSize` in bytes.
    subscriptionsPerTopic, consumerPerSubscription : int
        Consumer groups of each topic, and consumers of each group.
    producerRate : int
        Messages per second of all producers of all topics together (WorkloadGenerator gives all of it to the workers,
        which divide it). 0: the benchmark searches for the highest rate that it can sustain.
    testDurationMinutes : int
        Whole minutes; 0 never ends.
    keyDistributor : one of `KEY_DISTRIBUTORS`
    useRandomizedPayloads, randomBytesRatio, randomizedPayloadPoolSize
        Payloads with this share of random bytes, the rest zeros, drawn from a pool; in place of `payloadFile`.
    consumerBacklogSizeGB, backlogDrainRatio
        The backlog that is built before consumers start, and how far it must be drained.
    warmupDurationMinutes : int
    sampleRateMillis, existingTopicList, existingProduceTopicList, existingConsumeTopicList
        Only in Redpanda's fork.
    partitionsPerTopicList, producersPerTopicList, producerRateList, randomTopicNames, logIntervalMillis
        Only in AutoMQ's fork.
    consumerOnly : bool
        Only in Confluent's and StreamNative's forks.
    """

    topics: int = kept("whole")
    partitionsPerTopic: int = kept("whole")
    messageSize: int = kept("whole")
    subscriptionsPerTopic: int = kept("whole")
    producersPerTopic: int = kept("whole")
    consumerPerSubscription: int = kept("whole")
    producerRate: int = kept("whole")
    testDurationMinutes: int = kept("whole")
    name: str | None = kept("text", None)
    keyDistributor: str | None = kept("choice", None, allowed=KEY_DISTRIBUTORS)
    useRandomizedPayloads: bool | None = kept("flag", None)
    randomBytesRatio: float | None = kept("share", None)
    randomizedPayloadPoolSize: int | None = kept("whole", None)
    payloadFile: str | None = kept("text", None)
    consumerBacklogSizeGB: int | None = kept("whole", None, high=LARGEST_LONG)
    backlogDrainRatio: float | None = kept("share", None)
    warmupDurationMinutes: int | None = kept("whole", None)
    sampleRateMillis: int | None = kept("whole", None)
    existingTopicList: tuple[str, ...] | None = kept("texts", None)
    existingProduceTopicList: tuple[str, ...] | None = kept("texts", None)
    existingConsumeTopicList: tuple[str, ...] | None = kept("texts", None)
    partitionsPerTopicList: tuple[int, ...] | None = kept("wholes", None)
    producersPerTopicList: tuple[int, ...] | None = kept("wholes", None)
    producerRateList: tuple[tuple[int, ...], ...] | None = kept("rows", None)
    randomTopicNames: bool | None = kept("flag", None)
    logIntervalMillis: int | None = kept("whole", None)
    consumerOnly: bool | None = kept("flag", None)

    def open_loop(self, driver: Driver | None = None, *, ignoring: Iterable[str] = (), **changes):
        """
        The KafkaOpenLoop that offers the same load.

        Parameters
        ----------
        driver : Driver, optional
            Gives replication, settings of topics and clients. None: those of KafkaOpenLoop.
        ignoring : iterable of str
            Fields and settings to leave out because they cannot be carried over.
        **changes
            Fields of KafkaOpenLoop that replace those from the files.

        Raises
        ------
        ParameterError
            If something cannot be carried over and is neither in `ignoring` nor replaced in `changes`: the error names
            all such fields. Differences in those that are carried over are in `cautions`.
        """
        return carried.open_loop(self, driver, ignoring, changes)

    def cautions(self, driver: Driver | None = None) -> tuple[str, ...]:
        """How a KafkaOpenLoop of this workload differs from the benchmark, in sentences."""
        return carried.cautions(self, driver)

    @classmethod
    def of(cls, load, **changes) -> Workload:
        """
        The workload that offers the same load as a KafkaOpenLoop; `changes` are fields of Workload.

        Raises
        ------
        ParameterError
            If the rate is not a whole number, or the durations are not whole minutes, and `changes` does not say
            otherwise; or the payload is neither random nor given as a file.
        """
        return cls(**carried.workload_fields(load, changes))


@dataclass(frozen=True)
class Driver(FlatFile):
    """
    A Kafka driver: settings of topics and clients, each as the text of a Java properties file.

    Parameters
    ----------
    name : str
    driverClass : str
        The driver of Kafka; files of other systems are refused.
    replicationFactor : int
    topicConfig, commonConfig, producerConfig, consumerConfig : str
        Not shown, because they may hold secrets.
    reset : bool, optional
        Only in the forks: first delete all topics of earlier runs.
    """

    name: str | None = kept("text", "Kafka")
    driverClass: str = kept("choice", KAFKA_DRIVER, allowed=(KAFKA_DRIVER,))
    replicationFactor: int = kept("whole", 3, high=2**15 - 1)
    topicConfig: str = kept("properties", "", shown=False)
    commonConfig: str = kept("properties", "", shown=False)
    producerConfig: str = kept("properties", "", shown=False)
    consumerConfig: str = kept("properties", "", shown=False)
    reset: bool | None = kept("flag", None)

    def settings(self, what: str) -> dict[str, str]:
        """The settings of "topic", "producer" or "consumer" clients; the clients' include the common ones."""
        check_choice("what", what, ("topic", "common", "producer", "consumer"))
        common = read_properties(self.commonConfig) if what in ("producer", "consumer") else {}
        return {**common, **read_properties(getattr(self, f"{what}Config"))}

    @classmethod
    def of(cls, load, bootstrap: str | None = None, **changes) -> Driver:
        """
        The driver with the settings of a KafkaOpenLoop, by their names in Java.

        Parameters
        ----------
        load : KafkaOpenLoop
        bootstrap : str, optional
            "host:port,host:port". None: without an address, as `OpenMessaging` requires.
        **changes
            Fields of Driver.

        Raises
        ------
        ParameterError
            If the load has a setting that only librdkafka has, or a linger of a fraction of a millisecond.
        """
        return cls(**{**carried.driver_fields(load, bootstrap), **changes})


def read_workload(path) -> Workload:
    """
    Read a workload file. Comments are not kept.

    Raises
    ------
    ParameterError
        If the file cannot be read, is not plain YAML of one level, or has an unknown, missing or malformed field; names
        the file, the line, the field, what was given and what is allowed.
    """
    return read_file(Workload, path)


def read_driver(path) -> Driver:
    """Read a Kafka driver file; errors are as in `read_workload`, and show no possibly secret values."""
    return read_file(Driver, path, required={each.name for each in fields(Driver)} - {"name", "reset"})
