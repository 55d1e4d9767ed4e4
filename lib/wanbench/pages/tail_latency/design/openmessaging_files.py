"""
Read and write workload and driver files of the OpenMessaging Benchmark, strictly.

The benchmark itself ignores unknown names, truncates fractions to whole numbers (half a minute becomes 0, an endless
run), and replaces an unknown key distributor by its default. This module raises errors instead. Values are read as YAML
1.1: `yes` is true, `010` is 8, and a text that looks like a number or a date needs quotes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, get_args, get_type_hints

import javaproperties
import msgspec
import yaml
from msgspec import Meta

from wanbench.checks import check_choice, check_kind, refusal
from wanbench.errors import ParameterError
from wanbench.files import replace_file

KEY_DISTRIBUTORS = ("NO_KEY", "KEY_ROUND_ROBIN", "RANDOM_NANO")
KAFKA_DRIVER = "io.openmessaging.benchmark.driver.kafka.KafkaBenchmarkDriver"
LARGEST_INT, LARGEST_LONG = 2**31 - 1, 2**63 - 1  # Ranges of Java's int and long, the benchmark's whole numbers.
LARGEST_BYTES = 64 << 10  # Maximum size of a file: far above the largest known workload or driver file, 3 kB.
# Characters that no field may hold; a tab and a line end may stand in properties only.
_CONTROL = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"


def _whole(high: int) -> Meta:
    return Meta(ge=0, le=high, description=f"a whole number from 0 to {high}")


def _one_of(*names: str) -> Meta:
    return Meta(pattern=rf"^({'|'.join(map(re.escape, names))})\Z", description=", ".join(map(repr, names)))


def _list_of(names: str) -> Meta:
    return Meta(max_length=10_000, description=f"a list of up to 10,000 {names}")


Whole = Annotated[int, _whole(LARGEST_INT)]
Short = Annotated[int, _whole(2**15 - 1)]
Long = Annotated[int, _whole(LARGEST_LONG)]
Share = Annotated[float, Meta(ge=0, le=1, description="a number from 0 to 1")]
Flag = Annotated[bool, Meta(description="True or False")]
KeyDistributor = Annotated[str, _one_of(*KEY_DISTRIBUTORS)]
DriverClass = Annotated[str, _one_of(KAFKA_DRIVER)]
Line = Annotated[str, Meta(pattern=rf"^[^\t\n{_CONTROL}]*\Z", description="one line of text")]
Properties = Annotated[str, Meta(pattern=rf"^[^{_CONTROL}]*\Z", description="a Java properties file as printable text")]
Lines = Annotated[tuple[Line, ...], _list_of("names")]
Wholes = Annotated[tuple[Whole, ...], _list_of(f"whole numbers from 0 to {LARGEST_INT}")]
_Rate = Annotated[tuple[Whole, ...], Meta(min_length=2, max_length=3)]
Rates = Annotated[tuple[_Rate, ...], _list_of("entries [minutes, rate] or [hour, minute, rate]")]


class _Loader(yaml.SafeLoader):
    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):  # a few aliases of aliases fill the memory
            raise yaml.MarkedYAMLError(problem="there is an alias", problem_mark=self.peek_event().start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        for name, n in Counter(str(key.value) for key, _ in node.value).most_common(1):
            if n > 1:
                raise yaml.MarkedYAMLError(problem=f"there is {name[:60]!r} twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    def represent_text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _Dumper.represent_text)


def read_properties(text: str, name: str = "a property") -> dict[str, str]:
    """Parse the text of a Java properties file to its settings; `name` is what errors call the text."""
    try:
        return javaproperties.loads(text)
    except javaproperties.InvalidUEscapeError:
        raise ParameterError(f"{name} has an invalid \\u escape; allowed: \\u and four hexadecimal digits.") from None


def properties_text(settings: Mapping[str, Any]) -> str:
    """Format settings as the text of a Java properties file."""
    return javaproperties.dumps(settings, timestamp=False)


class FlatFile:
    """
    Base class of workload and driver files: a dataclass of the file's fields, in which None means a missing field.

    Each field is checked against its type, by msgspec; an error says what the type's description allows, and shows no
    values of fields that the repr leaves out.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __post_init__(self):
        for each in fields(self):
            object.__setattr__(self, each.name, _checked(type(self), each, getattr(self, each.name)))

    @classmethod
    def of_mapping(cls, values: Mapping[Any, Any], required: Collection[str] | None = None) -> Self:
        """
        Build a file from a mapping of its fields.

        `required` names the fields that `values` must have; by default those that have no default value. Raises
        ParameterError: a field is unknown, missing or malformed.
        """
        check_kind(cls.__name__, values, Mapping)
        known = {each.name: each for each in fields(cls)}
        required = required or [name for name, each in known.items() if each.default is MISSING]
        for name in known:  # before unknown names, which the driver of another system has, too
            if name in values:
                _checked(cls, known[name], values[name])
        if unknown := [str(name) for name in values if name not in known]:
            raise ParameterError(f"{cls.__name__} has no field {unknown[0][:100]!r}; allowed: {', '.join(known)}.")
        if missing := [name for name in known if name in required and name not in values]:
            raise ParameterError(f"{cls.__name__} lacks {', '.join(missing)}.")
        return cls(**values)

    def text(self) -> str:
        """Return the content of the file as YAML: the fields that are not None, in the order of declaration."""
        values = {each.name: value for each in fields(self) if (value := getattr(self, each.name)) is not None}
        return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))

    def write(self, path: Path | str) -> Path:
        """Write the file atomically and return its path, which must end in .yaml or .yml."""
        path = Path(path)
        if path.suffix not in (".yaml", ".yml"):
            raise refusal("path", str(path), "a name that ends in .yaml or .yml")
        replace_file(path, self.text().encode())
        return path


def _checked(cls: type[FlatFile], each: Field[Any], value: Any) -> Any:
    """Return `value` with lists as tuples; ParameterError if it does not fit the type of the field `each` of `cls`."""
    label, kind = f"{cls.__name__} {each.name}", get_type_hints(cls, include_extras=True)[each.name]
    try:
        value = msgspec.convert(value, kind, strict=True)
    except (msgspec.ValidationError, UnicodeEncodeError):
        parts = (kind, *get_args(kind))  # of "kind or None", too
        allowed = next(part.__metadata__[0].description for part in parts if hasattr(part, "__metadata__"))
        if each.repr:
            raise refusal(label, value, allowed) from None
        raise ParameterError(f"{label} is a {type(value).__name__}, not shown; allowed: {allowed}.") from None
    if each.type == "Properties":
        read_properties(value, label)
    return value


@dataclass(frozen=True)
class Workload(FlatFile):
    """
    A workload file: topics, producers, consumers, rate and duration. Fields have the benchmark's names.

    None means that the file lacks the field. The benchmark then uses its own default, which differs between its forks:
    for example, `warmupDurationMinutes` is 1 in the original and 30 in Redpanda's fork. Only Redpanda's fork has
    `sampleRateMillis` and the lists of existing topics; only AutoMQ's has the other lists, `randomTopicNames` and
    `logIntervalMillis`; only Confluent's and StreamNative's have `consumerOnly`.

    Parameters
    ----------
    producerRate : int
        Messages per second of all producers of all topics together. If 0, the benchmark searches for the highest rate
        that it can sustain.
    testDurationMinutes : int
        Whole minutes; a test of 0 minutes never ends.
    useRandomizedPayloads, randomBytesRatio, randomizedPayloadPoolSize
        Instead of `payloadFile`: whether to take payloads from a pool, their fraction of random bytes (the others are
        zero), and the number of payloads in the pool.
    consumerBacklogSizeGB, backlogDrainRatio
        The backlog that is built while consumers pause, and the share of it that they must read for the test to end.
    """

    topics: Whole
    partitionsPerTopic: Whole
    messageSize: Whole
    subscriptionsPerTopic: Whole
    producersPerTopic: Whole
    consumerPerSubscription: Whole
    producerRate: Whole
    testDurationMinutes: Whole
    name: Line | None = None
    keyDistributor: KeyDistributor | None = None
    useRandomizedPayloads: Flag | None = None
    randomBytesRatio: Share | None = None
    randomizedPayloadPoolSize: Whole | None = None
    payloadFile: Line | None = None
    consumerBacklogSizeGB: Long | None = None
    backlogDrainRatio: Share | None = None
    warmupDurationMinutes: Whole | None = None
    sampleRateMillis: Whole | None = None
    existingTopicList: Lines | None = None
    existingProduceTopicList: Lines | None = None
    existingConsumeTopicList: Lines | None = None
    partitionsPerTopicList: Wholes | None = None
    producersPerTopicList: Wholes | None = None
    producerRateList: Rates | None = None
    randomTopicNames: Flag | None = None
    logIntervalMillis: Whole | None = None
    consumerOnly: Flag | None = None


@dataclass(frozen=True)
class Driver(FlatFile):
    """
    A Kafka driver file: settings of topics and clients, each as the text of a Java properties file.

    These texts are left out of the repr, because they may contain secrets. `reset`, which only forks have, makes the
    benchmark delete all topics of earlier runs first.
    """

    name: Line | None = "Kafka"
    driverClass: DriverClass = KAFKA_DRIVER
    replicationFactor: Short = 3
    topicConfig: Properties = field(default="", repr=False)
    commonConfig: Properties = field(default="", repr=False)
    producerConfig: Properties = field(default="", repr=False)
    consumerConfig: Properties = field(default="", repr=False)
    reset: Flag | None = None

    def settings(self, what: str) -> dict[str, str]:
        """Return the settings of "topic", "common", "producer" or "consumer"; the last two include the common ones."""
        check_choice("what", what, ("topic", "common", "producer", "consumer"))
        common = read_properties(self.commonConfig) if what in ("producer", "consumer") else {}
        return {**common, **read_properties(getattr(self, f"{what}Config"))}


def read_workload(path: Path | str) -> Workload:
    """
    Read a workload file.

    Raises ParameterError: the file cannot be read, has more than `LARGEST_BYTES`, is not a YAML mapping, or has an
    alias, a repeated name, or an unknown, missing or malformed field. The error names file and field, what was given
    and what is allowed.
    """
    return _read(Workload, path)


def read_driver(path: Path | str) -> Driver:
    """Read a Kafka driver file; raises ParameterError as `read_workload` does, without values that may be secret."""
    return _read(Driver, path, {each.name for each in fields(Driver)} - {"name", "reset"})


def _read(cls: type[FlatFile], path: Path | str, required: Collection[str] | None = None) -> Any:
    path = Path(path)
    if not path.is_file():
        raise ParameterError(f"{path} is not a file; allowed: a YAML file.")
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise ParameterError(f"it has more than {LARGEST_BYTES:,} bytes; allowed: a smaller file.")
        values = yaml.load(path.read_text("utf-8-sig"), _Loader)  # nosec B506  # a subclass of SafeLoader
        if not isinstance(values, dict):
            raise ParameterError(f"it holds {type(values).__name__}; allowed: names with values.")
        return cls.of_mapping({"name": None} | values, required)
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None
    except yaml.YAMLError as error:
        problem, mark = getattr(error, "problem", None) or "this is not YAML", getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise ParameterError(f"{path}{line}: {problem}; allowed: YAML.") from None
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise ParameterError(f"{path} cannot be read: {error}.") from None
    except (ValueError, LookupError, AttributeError):  # of PyYAML, whose message may hold a secret
        raise ParameterError(f"{path} has a value that its YAML type cannot hold; allowed: YAML.") from None
