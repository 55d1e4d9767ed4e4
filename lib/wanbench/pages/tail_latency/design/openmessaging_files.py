"""Read and write workload and driver files of the OpenMessaging Benchmark, strictly.

The benchmark itself ignores unknown names, truncates text and fractions to whole numbers (half a minute becomes 0, an
endless run), and replaces an unknown key distributor by its default. Here these are errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path

import yaml

from wanbench.checks import check_choice, check_flag, check_number, refusal
from wanbench.errors import ParameterError
from wanbench.files import replace_file

from . import openmessaging_open_loop as carried
from .java_properties import read_properties

LARGEST_BYTES = 64 << 10
"""Maximum size of a file: far above the largest known workload or driver file, 3 kB."""
DEEPEST = 3
"""Maximum depth: a list of lists in a mapping."""
_NULLS = ("", "~", "null", "Null", "NULL")
_FLAGS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9_]{0,24})")
_NUMBER = re.compile(r"[-+]?(?=.*[.eE])([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][-+]?[0-9]{1,3})?")


@dataclass(frozen=True)
class Scalar:
    """A scalar: its text, whether it is unquoted, and its line, from 1."""

    text: str
    plain: bool
    line: int

    @property
    def value(self) -> object:
        """
        None, a bool, int, float or str. Octal, hexadecimal, sexagesimal numbers and dates of YAML 1.1 stay text, as
        parsers disagree on them.
        """
        if not self.plain:
            return self.text
        if self.text in _NULLS:
            return None
        if self.text in _FLAGS:
            return _FLAGS[self.text]
        if _WHOLE.fullmatch(self.text):
            return int(self.text)
        return float(self.text) if _NUMBER.fullmatch(self.text) else self.text


def read_flat(path) -> dict[str, Scalar | list]:
    """
    The entries of a file by name: a Scalar, or a list of scalars or lists of scalars.

    Raises
    ------
    ParameterError
        If the file cannot be read, has more than `LARGEST_BYTES`, is not YAML, or has more than one document, a name
        twice, a tag, an anchor or alias, or a deeper structure; names file and line.
    """
    path = Path(path)
    try:
        if not path.is_file():
            raise ParameterError(f"{path} is not a file; allowed: a YAML file.")
        with open(path, "rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ParameterError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    if len(content) > LARGEST_BYTES:
        raise ParameterError(f"{path} has more than {LARGEST_BYTES:,} bytes; allowed: a smaller file.")
    try:
        return _entries(path, content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ParameterError(f"{path} is not UTF-8; allowed: text in UTF-8.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise ParameterError(
            f"{path}{line}: {getattr(error, 'problem', None) or 'this is not YAML'}; allowed: YAML."
        ) from None


def _entries(path: Path, text: str) -> dict[str, Scalar | list]:
    entries: dict[str, Scalar | list] = {}
    name, open_lists, documents, in_mapping = None, [], 0, False
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 1

        def refuse(what, allowed, line=line):
            raise ParameterError(f"{path}, line {line}: there is {what}; allowed: {allowed}.")

        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            refuse("an anchor or alias", "values written out")
        if getattr(event, "tag", None):
            refuse(f"the tag {event.tag[:60]!r}", "values without tags")
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                refuse("a second document", "one")
        elif isinstance(event, yaml.MappingStartEvent):
            if in_mapping:
                refuse("a mapping in the mapping", "scalars and lists")
            in_mapping = True
        elif isinstance(event, yaml.SequenceStartEvent):
            if name is None or len(open_lists) + 2 > DEEPEST:
                refuse("a list in this place", "names with scalars, or lists of scalars or of such lists")
            made: list = []
            if open_lists:
                open_lists[-1].append(made)
            else:
                entries[name] = made
            open_lists.append(made)
        elif isinstance(event, yaml.SequenceEndEvent):
            open_lists.pop()
            name = name if open_lists else None
        elif isinstance(event, yaml.ScalarEvent):
            scalar = Scalar(event.value, event.implicit[0], line)
            if not in_mapping:
                refuse(f"the text {event.value[:60]!r}", "names with values")
            if open_lists:
                open_lists[-1].append(scalar.value)
            elif name is None:
                name = event.value
                if name in entries:
                    refuse(f"{name[:60]!r} twice", "each name once")
            else:
                entries[name], name = scalar, None
    if not in_mapping:
        raise ParameterError(f"{path} is empty; allowed: names with values.")
    return entries


def flat_text(entries: dict[str, object]) -> str:
    r"""
    The text of a file with these entries, which `read_flat` reads back.

    >>> print(flat_text({"name": "a", "topics": 1, "rates": [[0, 5]], "config": "a=1\nb=2\n"}), end="")
    name: "a"
    topics: 1
    rates: [[0, 5]]
    config: |
      a=1
      b=2
    """
    return "".join(f"{name}: {_written(value)}\n" for name, value in entries.items())


def _written(value) -> str:
    if isinstance(value, str) and _fits_block(value):
        return "|\n" + "\n".join(f"  {line}" if line else "" for line in value.split("\n")[:-1])
    return _inline(value)


def _fits_block(text: str) -> bool:
    """Whether a literal block represents it exactly: no leading space, and one line end at the end."""
    return text[-1:] == "\n" and not text[:1].isspace() and text[-2:-1] != "\n" and "\t" not in text


def _inline(value) -> str:
    """A value on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_inline, value))}]"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


LARGEST_INT, LARGEST_LONG = 2**31 - 1, 2**63 - 1
"""Ranges of Java's int and long, the benchmark's whole numbers."""
_MOST_ENTRIES = 10_000
"""Maximum length of a list."""


def kept(kind: str, default=MISSING, *, shown: bool = True, **more):
    """Declare a field of a file, of a type that `_check_value` knows. Without default it is required."""
    metadata = {"kind": kind, **more}
    return field(default=default, repr=shown, metadata=metadata)


class FlatFile:
    """Base of both file types: a dataclass with the file's fields; None for a missing one."""

    def __post_init__(self):
        for each in fields(self):
            value = getattr(self, each.name)
            object.__setattr__(self, each.name, _check_value(type(self), each, value))

    @classmethod
    def of_mapping(cls, values: Mapping):
        """
        Build from names and values as in a file.

        Raises
        ------
        ParameterError
            If a name is unknown or missing, or a value has the wrong type; the error names what is allowed.
        """
        if not isinstance(values, Mapping):
            raise refusal(cls.__name__, values, "a mapping of its fields")
        _check_names(cls, values)
        return cls(**values)

    def as_mapping(self) -> dict[str, object]:
        """The present fields, in file order."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def text(self) -> str:
        """The file's content."""
        return flat_text(self.as_mapping())

    def write(self, path) -> Path:
        """Write the file atomically; returns its path. The benchmark requires an extension such as .yaml."""
        path = Path(path)
        if path.suffix not in (".yaml", ".yml"):
            raise refusal("path", str(path), "a name that ends in .yaml or .yml")
        replace_file(path, self.text().encode())
        return path


def read_file(cls, path, required=None):
    """Read a file of this type; `required` are its required names, by default those without a default."""
    entries = read_flat(path)
    known = {each.name: each for each in fields(cls)}
    in_order = sorted(entries, key=lambda name: name not in known or known[name].metadata["kind"] != "choice")
    values: dict[str, object] = dict.fromkeys(known)  # of those that are required none is missing
    for name in in_order:  # choices first: other fields may depend on them, as on the system of a driver
        given = entries[name]
        try:
            _check_names(cls, [name], ())
            values[name] = _check_value(cls, known[name], _as_kind(known[name], given))
        except ParameterError as error:
            line = f", line {given.line}" if isinstance(given, Scalar) else ""
            raise ParameterError(f"{path}{line}: {error}") from None
    _check_names(cls, entries, required, place=f"{path}: ")
    return cls(**values)


def _as_kind(each, given):
    """Convert an entry; text fields accept any scalar except null, as in the benchmark."""
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
    """Check for printable characters, tabs and line ends; errors do not show the text."""
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
