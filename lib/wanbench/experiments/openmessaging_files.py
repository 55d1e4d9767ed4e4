"""
Workload and driver files of the OpenMessaging Benchmark, both ways.

The benchmark itself ignores names that it does not know, takes text and fractions for whole numbers (half a minute
becomes none, and none is a run without end), and an unknown key distributor for its default. Here these are errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path

from ..checks import check_choice, check_flag, check_number, refusal
from ..errors import ParameterError
from ..files import replace_file
from . import openmessaging_open_loop as carried
from .flat_yaml import Scalar, flat_text, read_flat
from .java_properties import read_properties

KEY_DISTRIBUTORS = ("NO_KEY", "KEY_ROUND_ROBIN", "RANDOM_NANO")
KAFKA_DRIVER = "io.openmessaging.benchmark.driver.kafka.KafkaBenchmarkDriver"
LARGEST_INT, LARGEST_LONG = 2**31 - 1, 2**63 - 1
"""Of Java's int and long, in which the benchmark keeps whole numbers."""
_MOST_ENTRIES = 10_000
"""Of a list."""


def _kept(kind: str, default=MISSING, **more):
    """A field of a file, of one of the kinds of `_check_value`. Without default it must be there."""
    metadata = {"kind": kind, **more}
    return field(metadata=metadata) if default is MISSING else field(default=default, metadata=metadata)


class _File:
    """What both kinds of files share: a dataclass whose fields are those of the file; None where one is not there."""

    def __post_init__(self):
        for each in fields(self):
            value = getattr(self, each.name)
            object.__setattr__(self, each.name, _check_value(type(self), each, value))

    @classmethod
    def of_mapping(cls, values: Mapping):
        """
        From names and values, as they stand in a file.

        Raises
        ------
        ParameterError
            If a name is unknown or missing, or a value is not of its kind; names what is allowed.
        """
        if not isinstance(values, Mapping):
            raise refusal(cls.__name__, values, "a mapping of its fields")
        _check_names(cls, values)
        return cls(**values)

    def as_mapping(self) -> dict[str, object]:
        """The fields that are there, in the order of a file."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def text(self) -> str:
        """The content of its file."""
        return flat_text(self.as_mapping())

    def write(self, path) -> Path:
        """
        Write the file, whole or not at all; returns its path. The name must have an ending such as .yaml, without which
        the benchmark does not read it.
        """
        path = Path(path)
        if path.suffix not in (".yaml", ".yml"):
            raise refusal("path", str(path), "a name that ends in .yaml or .yml")
        replace_file(path, self.text().encode())
        return path


@dataclass(frozen=True)
class Workload(_File):
    """
    A workload: what is sent, at which rate, and who receives it. Fields have the benchmark's names.

    None is a field that the file does not have; the benchmark then uses its own default, which differs between forks:
    `warmupDurationMinutes` is 1 in the benchmark and 30 in Redpanda's fork.

    Parameters
    ----------
    topics, partitionsPerTopic, messageSize, producersPerTopic : int
        `messageSize` in bytes.
    subscriptionsPerTopic, consumerPerSubscription : int
        Consumer groups of each topic, and consumers of each group.
    producerRate : int
        Messages per second of all producers of all topics together (WorkloadGenerator gives all of it to the workers,
        which divide it). 0: the benchmark looks for the highest rate that it can sustain.
    testDurationMinutes : int
        Whole minutes; 0 never ends.
    keyDistributor : one of `KEY_DISTRIBUTORS`
    useRandomizedPayloads, randomBytesRatio, randomizedPayloadPoolSize
        Payloads with this share of random bytes, the rest zeros, drawn from a pool; in place of `payloadFile`.
    consumerBacklogSizeGB, backlogDrainRatio
        The backlog that is built before consumers start, and how far it must be drained.
    warmupDurationMinutes : int
    sampleRateMillis, existingTopicList, existingProduceTopicList, existingConsumeTopicList
        Of Redpanda's fork.
    partitionsPerTopicList, producersPerTopicList, producerRateList, randomTopicNames, logIntervalMillis
        Of AutoMQ's fork.
    consumerOnly : bool
        Of Confluent's and StreamNative's forks.
    """

    topics: int = _kept("whole")
    partitionsPerTopic: int = _kept("whole")
    messageSize: int = _kept("whole")
    subscriptionsPerTopic: int = _kept("whole")
    producersPerTopic: int = _kept("whole")
    consumerPerSubscription: int = _kept("whole")
    producerRate: int = _kept("whole")
    testDurationMinutes: int = _kept("whole")
    name: str | None = _kept("text", None)
    keyDistributor: str | None = _kept("choice", None, allowed=KEY_DISTRIBUTORS)
    useRandomizedPayloads: bool | None = _kept("flag", None)
    randomBytesRatio: float | None = _kept("share", None)
    randomizedPayloadPoolSize: int | None = _kept("whole", None)
    payloadFile: str | None = _kept("text", None)
    consumerBacklogSizeGB: int | None = _kept("whole", None, high=LARGEST_LONG)
    backlogDrainRatio: float | None = _kept("share", None)
    warmupDurationMinutes: int | None = _kept("whole", None)
    sampleRateMillis: int | None = _kept("whole", None)
    existingTopicList: tuple[str, ...] | None = _kept("texts", None)
    existingProduceTopicList: tuple[str, ...] | None = _kept("texts", None)
    existingConsumeTopicList: tuple[str, ...] | None = _kept("texts", None)
    partitionsPerTopicList: tuple[int, ...] | None = _kept("wholes", None)
    producersPerTopicList: tuple[int, ...] | None = _kept("wholes", None)
    producerRateList: tuple[tuple[int, ...], ...] | None = _kept("rows", None)
    randomTopicNames: bool | None = _kept("flag", None)
    logIntervalMillis: int | None = _kept("whole", None)
    consumerOnly: bool | None = _kept("flag", None)

    def open_loop(self, driver: Driver | None = None, *, ignoring: Iterable[str] = (), **changes):
        """
        The KafkaOpenLoop that offers the same load.

        Parameters
        ----------
        driver : Driver, optional
            Gives replication, settings of topics and clients. None: those of KafkaOpenLoop.
        ignoring : iterable of str
            Fields and settings that cannot be carried over and shall be left out.
        **changes
            Fields of KafkaOpenLoop, over what the files say.

        Raises
        ------
        ParameterError
            If something cannot be carried over and is neither in `ignoring` nor replaced in `changes`: the error names
            all of it. What is carried over but is not quite the same is in `cautions`.
        """
        return carried.open_loop(self, driver, ignoring, changes)

    def cautions(self, driver: Driver | None = None) -> tuple[str, ...]:
        """In what a KafkaOpenLoop of this workload differs from the benchmark, in sentences."""
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
class Driver(_File):
    """
    A Kafka driver: settings of topics and clients, each as the text of a Java properties file.

    Parameters
    ----------
    name : str
    driverClass : str
        The driver of Kafka; files of other systems are refused.
    replicationFactor : int
    topicConfig, commonConfig, producerConfig, consumerConfig : str
        Not shown, for they may hold secrets.
    reset : bool, optional
        Of the forks: delete all topics of earlier runs first.
    """

    name: str | None = _kept("text", "Kafka")
    driverClass: str = _kept("choice", KAFKA_DRIVER, allowed=(KAFKA_DRIVER,))
    replicationFactor: int = _kept("whole", 3, high=2**15 - 1)
    topicConfig: str = field(default="", repr=False, metadata={"kind": "properties"})
    commonConfig: str = field(default="", repr=False, metadata={"kind": "properties"})
    producerConfig: str = field(default="", repr=False, metadata={"kind": "properties"})
    consumerConfig: str = field(default="", repr=False, metadata={"kind": "properties"})
    reset: bool | None = _kept("flag", None)

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
            "host:port,host:port". None: without an address, as `OpenMessaging` takes it.
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
    return _read(Workload, path, required=None)


def read_driver(path) -> Driver:
    """Read a driver file of Kafka; errors are as in `read_workload`, and show no values that may be secret."""
    return _read(Driver, path, required={each.name for each in fields(Driver)} - {"name", "reset"})


def _read(cls, path, required):
    entries = read_flat(path)
    _check_names(cls, entries, required, place=f"{path}: ")
    values = {}
    for each in fields(cls):
        if each.name not in entries:
            values[each.name] = None  # of those that are required none is missing
            continue
        given = entries[each.name]
        line = f", line {given.line}" if isinstance(given, Scalar) else ""
        try:
            values[each.name] = _check_value(cls, each, _as_kind(each, given))
        except ParameterError as error:
            raise ParameterError(f"{path}{line}: {error}") from None
    return cls(**values)


def _as_kind(each, given):
    """The value of an entry; text fields have the text of any scalar but null, as in the benchmark."""
    if not isinstance(given, Scalar):
        return given
    is_text = each.metadata["kind"] in ("text", "properties", "choice")
    return given.text if is_text and given.value is not None else given.value


def _check_names(cls, given, required=None, place=""):
    names = [each.name for each in fields(cls)]
    if required is None:
        required = {each.name for each in fields(cls) if each.default is MISSING}
    for name in given:
        if name not in names:
            raise ParameterError(
                f"{place}{cls.__name__} has no field {str(name)[:100]!r}; allowed: {', '.join(names)}."
            )
    if missing := [name for name in names if name in required and name not in given]:
        raise ParameterError(f"{place}{cls.__name__} lacks {', '.join(missing)}.")


def _check_value(cls, each, value):
    label, kind = f"{cls.__name__} {each.name}", each.metadata["kind"]
    if value is None and (each.default is None or each.name == "name"):
        return None
    if kind == "whole":
        return check_number(label, value, 0, each.metadata.get("high", LARGEST_INT), whole=True)
    if kind == "share":
        return float(check_number(label, value, 0, 1))
    if kind == "flag":
        return check_flag(label, value)
    if kind == "choice":
        return check_choice(label, value, each.metadata["allowed"])
    if kind == "text":
        if not isinstance(value, str) or not value.isprintable():
            raise refusal(label, value, "one line of text")
        return value
    if kind == "properties":
        return _check_properties(label, value)
    if not isinstance(value, list | tuple) or len(value) > _MOST_ENTRIES:
        raise refusal(label, value, f"a list of up to {_MOST_ENTRIES:,} entries")
    if kind == "texts":
        if not all(isinstance(entry, str) and entry.isprintable() for entry in value):
            raise refusal(label, value, "a list of names")
        return tuple(value)
    if kind == "rows":
        if not all(isinstance(row, list | tuple) and len(row) in (2, 3) for row in value):
            raise refusal(label, value, "a list of [minutes, rate] or [hour, minute, rate]")
        return tuple(tuple(_whole(label, number) for number in row) for row in value)
    return tuple(_whole(label, number) for number in value)


def _whole(label, number):
    return check_number(f"a number in {label}", number, 0, LARGEST_INT, whole=True)


def _check_properties(label, value):
    """Text of printable characters, tabs and line ends; an error does not show it."""
    fault = None
    if not isinstance(value, str):
        fault = f"a {type(value).__name__}"
    elif not value.replace("\n", "").replace("\t", "").isprintable():
        fault = "text with characters that cannot be printed"
    if fault:
        raise ParameterError(f"{label} is {fault}; allowed: the text of a Java properties file.")
    try:
        read_properties(value)
    except ParameterError as error:
        raise ParameterError(f"{label}: {error}") from None
    return value
