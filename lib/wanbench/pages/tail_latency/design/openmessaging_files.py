"""
Read and write workload and driver files of the OpenMessaging Benchmark, strictly.

The benchmark itself ignores unknown names, truncates text and fractions to whole numbers (half a minute becomes 0, an
endless run), and replaces an unknown key distributor by its default. Here these are errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path

import javaproperties
import yaml

from wanbench.checks import check_choice, check_flag, check_number, refusal
from wanbench.errors import ParameterError
from wanbench.files import replace_file

KEY_DISTRIBUTORS = ("NO_KEY", "KEY_ROUND_ROBIN", "RANDOM_NANO")
KAFKA_DRIVER = "io.openmessaging.benchmark.driver.kafka.KafkaBenchmarkDriver"
LARGEST_INT, LARGEST_LONG = 2**31 - 1, 2**63 - 1  # Ranges of Java's int and long, the benchmark's whole numbers.
LARGEST_BYTES = 64 << 10  # Maximum size of a file: far above the largest known workload or driver file, 3 kB.
_MOST_ENTRIES = 10_000  # Maximum length of a list.
_TAG = "tag:yaml.org,2002:"
_PLAIN = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?(0|[1-9][0-9_]{0,24})",
    "float": r"[-+]?(?=.*[.eE])([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][-+]?[0-9]{1,3})?",
}
"""
Plain scalars that all YAML parsers read in the same way. Octal, hexadecimal and sexagesimal numbers and dates of YAML
1.1 stay text.
"""


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {}  # noqa: RUF012  # PyYAML's own form

    def compose_node(self, parent, index):
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem="there is an alias", problem_mark=self.peek_event().start_mark)
        return super().compose_node(parent, index)


for _name, _pattern in _PLAIN.items():
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(f"(?:{_pattern})\\Z"), None)


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar(f"{_TAG}str", text, style="|" if "\n" in text else None)
)


def read_properties(text: str) -> dict[str, str]:
    """Return the settings in the text of a Java properties file."""
    try:
        return javaproperties.loads(text)
    except javaproperties.InvalidUEscapeError:
        raise ParameterError("a property has a broken escape; allowed: \\u and four hexadecimal digits.") from None


def properties_text(settings: Mapping[str, str]) -> str:
    """Return settings as the text of a Java properties file."""
    return javaproperties.dumps(settings, timestamp=False)


def kept(kind: str, default=MISSING, *, shown: bool = True, **more):
    """Declare a field of a file, with a kind that `_check_value` knows; it is required unless it has a default."""
    return field(default=default, repr=shown, metadata={"kind": kind, **more})


class FlatFile:
    """Base class of both file types: a dataclass of the file's fields, in which None stands for a missing field."""

    def __post_init__(self):
        for each in fields(self):
            object.__setattr__(self, each.name, _check_value(type(self), each, getattr(self, each.name)))

    @classmethod
    def of_mapping(cls, values: Mapping):
        """Build a file from a mapping of its fields; ParameterError names what is wrong and what is allowed."""
        if not isinstance(values, Mapping):
            raise refusal(cls.__name__, values, "a mapping of its fields")
        _check_names(cls, values)
        return cls(**values)

    def as_mapping(self) -> dict[str, object]:
        """Return the fields that are present, in the order of declaration."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def text(self) -> str:
        """Return the content of the file."""
        plain = {name: _lists(value) for name, value in self.as_mapping().items()}
        return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))

    def write(self, path) -> Path:
        """Write the file atomically and return its path, which must end in .yaml or .yml."""
        path = Path(path)
        if path.suffix not in (".yaml", ".yml"):
            raise refusal("path", str(path), "a name that ends in .yaml or .yml")
        replace_file(path, self.text().encode())
        return path


@dataclass(frozen=True)
class Workload(FlatFile):
    """
    A workload file: records, rate and consumers. Fields have the benchmark's names.

    None means that the file lacks the field. The benchmark then uses its own default, which differs between forks: for
    example, `warmupDurationMinutes` is 1 in the benchmark and 30 in Redpanda's fork. Only Redpanda's fork has
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
        Instead of `payloadFile`: payloads from a pool, with this fraction of random bytes and else zeros.
    consumerBacklogSizeGB, backlogDrainRatio
        The backlog that is built before consumers start, and how far it must be drained.
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


@dataclass(frozen=True)
class Driver(FlatFile):
    """
    A Kafka driver file: settings of topics and clients, each as the text of a Java properties file.

    These texts are left out of the repr, because they may contain secrets. `reset`, which only forks have, first
    deletes all topics of earlier runs.
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
        """Return the settings of "topic", "common", "producer" or "consumer"; clients have the common ones, too."""
        check_choice("what", what, ("topic", "common", "producer", "consumer"))
        common = read_properties(self.commonConfig) if what in ("producer", "consumer") else {}
        return {**common, **read_properties(getattr(self, f"{what}Config"))}


def read_workload(path) -> Workload:
    """
    Read a workload file.

    Raises ParameterError if the file cannot be read, is not plain YAML of one level, or has an unknown, missing or
    malformed field. The error names file, line and field, what was given and what is allowed.
    """
    return _read(Workload, path)


def read_driver(path) -> Driver:
    """Read a Kafka driver file; errors are as in `read_workload`, but show no values that may be secret."""
    return _read(Driver, path, required={each.name for each in fields(Driver)} - {"name", "reset"})


def _read(cls, path, required=None):
    nodes, declared = read_flat(path), {each.name: each for each in fields(cls)}
    values: dict[str, object] = dict.fromkeys(declared)
    # choices first: other fields may depend on them, as on the system of a driver
    for name in sorted(nodes, key=lambda name: name not in declared or declared[name].metadata["kind"] != "choice"):
        node, value = nodes[name]
        try:
            _check_names(cls, [name], ())
            kind = declared[name].metadata["kind"]
            if isinstance(node, yaml.ScalarNode) and value is not None and kind in ("text", "properties", "choice"):
                value = node.value  # text fields accept any scalar, as in the benchmark
            values[name] = _check_value(cls, declared[name], value)
        except ParameterError as error:
            raise ParameterError(f"{path}, line {node.start_mark.line + 1}: {error}") from None
    _check_names(cls, nodes, required, place=f"{path}: ")
    return cls(**values)


def read_flat(path) -> dict[str, tuple[yaml.Node, object]]:
    """
    Return the entries of a YAML file: the name, its node and its value (a scalar, or a list of scalars or lists).

    Raises ParameterError if the file cannot be read, has more than `LARGEST_BYTES`, is not YAML, or has several
    documents, a repeated name, an alias, or a deeper structure. The error names file and line.
    """
    path = Path(path)
    try:
        if not path.is_file():
            raise ParameterError(f"{path} is not a file; allowed: a YAML file.")
        with open(path, "rb") as file:
            content = file.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise ParameterError(f"{path} has more than {LARGEST_BYTES:,} bytes; allowed: a smaller file.")
        loader = _Loader(content.decode("utf-8-sig"))
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise ParameterError(f"{path} holds {root.id if root else 'nothing'}; allowed: names with values.")
        entries: dict[str, tuple[yaml.Node, object]] = {}
        for key, node in root.value:
            where = f"{path}, line {key.start_mark.line + 1}:"
            if not isinstance(key, yaml.ScalarNode) or _depth(node) > 2:
                raise ParameterError(f"{where} allowed: names with scalars, or lists of scalars or of such lists.")
            if key.value in entries:
                raise ParameterError(f"{where} there is {key.value[:60]!r} twice; allowed: each name once.")
            entries[key.value] = node, loader.construct_object(node, deep=True)
        return entries
    except UnicodeDecodeError:
        raise ParameterError(f"{path} is not UTF-8; allowed: text in UTF-8.") from None
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise ParameterError(
            f"{path}{line}: {getattr(error, 'problem', None) or 'this is not YAML'}; allowed: YAML."
        ) from None


def _depth(node: yaml.Node) -> int:
    """Return the depth of lists in an entry, at most 3; 3 for a mapping, too."""
    if isinstance(node, yaml.SequenceNode):
        return min(3, 1 + max((_depth(one) for one in node.value), default=0))
    return 0 if isinstance(node, yaml.ScalarNode) else 3


def _lists(value: object) -> object:
    return [_lists(one) for one in value] if isinstance(value, tuple) else value


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
        return tuple(_wholes(label, row) for row in value)
    return _wholes(label, value)


def _wholes(label, numbers):
    return tuple(check_number(f"a number in {label}", number, 0, LARGEST_INT, whole=True) for number in numbers)


def _check_properties(label, value):
    """Check that a string has only printable characters, tabs and line ends; errors do not show it."""
    is_text = isinstance(value, str)
    if not is_text or not value.replace("\n", "").replace("\t", "").isprintable():
        fault = "text with characters that cannot be printed" if is_text else f"a {type(value).__name__}"
        raise ParameterError(f"{label} is {fault}; allowed: the text of a Java properties file.")
    try:
        read_properties(value)
    except ParameterError as error:
        raise ParameterError(f"{label}: {error}") from None
    return value
