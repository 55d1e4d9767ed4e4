"""Describe systems to compare, and plan trials of every system at every step of a load, such as rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from wanbench.checks import check_choice, check_name, check_number, refusal
from wanbench.errors import ParameterError
from wanbench.measure.experiments import BrokerMetrics, KafkaLoad, KafkaOpenLoop, KafkaTrial
from wanbench.measure.experiments.load_settings import setting_pairs
from wanbench.measure.kafka.security import KINDS
from wanbench.measure.kafka.settings import checked_settings
from wanbench.measure.links import LinkSettings
from wanbench.measure.plan import Trial
from wanbench.measure.plan.plan import alternating, check_keys, shuffled

Load = KafkaLoad | KafkaOpenLoop


@dataclass(frozen=True)
class System:
    """
    A system to compare with others, described by what differs: settings of brokers, clients or links, or the cluster.

    Parameters
    ----------
    name : str
        The name of the system in tables (column `system`) and figures.
    broker_settings, security, kafka_version, cluster : optional
        As in `KafkaTrial`.
    link : LinkSettings or mapping of its fields, optional
        Settings of both directions of the link. Either all systems have a link, or none has.
    load : mapping of str, optional
        Fields of the load that differ for this system, such as {"linger_ms": 0}.

    Examples
    --------
    >>> System("eager", load={"linger_ms": 0}).load
    (('linger_ms', 0),)
    """

    name: str
    broker_settings: Mapping[str, object] | None = None
    security: str | None = None
    kafka_version: str | None = None
    link: LinkSettings | Mapping[str, object] | None = None
    load: Mapping[str, object] | None = None
    cluster: str | None = None

    def __post_init__(self):
        check_name("System name", self.name)
        where = f"system {self.name!r}"
        check_choice(f"{where}: security", self.security, KINDS, optional=True)
        if self.cluster is not None:
            check_name(f"{where}: cluster", self.cluster)
        if self.broker_settings is not None:
            settings = setting_pairs(self, "broker_settings")
            checked_settings(dict(settings))
            object.__setattr__(self, "broker_settings", settings or None)
        if self.cluster is not None and any(self.cluster_settings):
            raise ParameterError(
                f"{where} is on the external cluster {self.cluster!r} and has broker_settings, security or "
                "kafka_version; allowed: "
                "None, because an external cluster cannot be restarted with other settings."
            )
        object.__setattr__(self, "link", link_of(f"{where}: link", self.link))
        if self.load is not None:
            given = dict(self.load) if isinstance(self.load, tuple) else _mapping(f"{where}: load", self.load)
            object.__setattr__(self, "load", frozen(given) or None)

    @property
    def cluster_settings(self) -> tuple[object, ...]:
        """Broker settings, security and version of Kafka, as in `KafkaTrial.cluster_settings`."""
        return (self.broker_settings, self.security, self.kafka_version)


def read_systems(given: Sequence[System | Mapping[str, object]]) -> tuple[System, ...]:
    """
    Read systems from plain data, such as a preset's list of mappings with the parameters of `System`.

    Examples
    --------
    >>> [system.name for system in read_systems([{"name": "a"}, {"name": "b", "load": {"linger_ms": 0}}])]
    ['a', 'b']
    """
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence) or not given:
        raise refusal("systems", given, "a list of systems, or of mappings of their parameters, at least one")
    made = tuple(
        one if isinstance(one, System) else _made(f"systems[{at}]", one, System, "name") for at, one in enumerate(given)
    )
    if twice := sorted(name for name, n in Counter(system.name for system in made).items() if n > 1):
        raise ParameterError(f"systems has {twice[0]!r} twice; allowed: each name once.")
    return made


def link_of(where: str, given: LinkSettings | Mapping[str, object] | None) -> LinkSettings | None:
    """Convert `given`, LinkSettings or a mapping of its fields, to LinkSettings; errors begin with `where`."""
    if given is None or isinstance(given, LinkSettings):
        return given
    return _made(where, given, LinkSettings, "delay_ms")


def _made(where: str, given: object, kind: type[Any], required: str) -> Any:
    names = [field.name for field in fields(kind)]
    given = _mapping(where, given, f"{kind.__name__} or a mapping of {', '.join(names)}")
    check_keys(where, given, names)
    if required not in given:
        raise ParameterError(f"{where} has no {required}; it has {', '.join(given) or 'nothing'}.")
    try:
        return kind(**given)
    except ParameterError as error:
        raise error if kind is System else ParameterError(f"{where}: {error}") from None


def _mapping(where: str, given: object, allowed: str = "a mapping of names to values") -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise ParameterError(f"{where} is of type {type(given).__name__}; allowed: {allowed}.")
    return dict(given)


def frozen(value: object) -> object:
    """Convert plain data, such as from YAML, to a hashable form: mappings and lists become tuples."""
    if isinstance(value, Mapping):
        return tuple((key, frozen(one)) for key, one in value.items())
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value


def systems_by_steps(
    systems: Sequence[System | Mapping[str, object]],
    load: Load,
    steps: Mapping[str, Sequence[object]],
    replicates: int = 3,
    seed: int = 0,
    alongside: Sequence[object] = (),
    *,
    client_regions: Sequence[str] | None = None,
) -> list[Trial]:
    """
    Plan trials of every system at every step of a load, once per replicate.

    Each replicate is a block. Steps come in random order, and so do the systems at each step, so that trials which are
    compared are close in time. If systems have different broker settings, each change restarts the cluster; then the
    systems with equal settings form a group, and all their steps are adjacent. Every second block reverses the order of
    groups of the block before, and the first block begins with the cluster's own settings, if a system has them. Steps
    of external clusters, which are never restarted, are spread over the groups.

    Parameters
    ----------
    systems : sequence of System
        Systems, or mappings as for `read_systems`.
    load : KafkaOpenLoop or KafkaLoad
        The load, apart from changes by systems and steps.
    steps : mapping of str to sequences
        Maps fields of the load to their levels; at each step one field has a level, and all others are as in `load`.
        Steps that leave `load` unchanged are equal, so only the first of them is measured.
    alongside : tuple
        As in `KafkaTrial`, but without `BrokerMetrics` on external clusters, whose hosts cannot be reached.

    Returns
    -------
    list of Trial
        In the order of measuring. `setting` is "<system>, <field> <level>", and `system` the system's name.

    Examples
    --------
    >>> from wanbench.measure.experiments import KafkaLoad
    >>> pair = read_systems([{"name": "a", "load": {"linger_ms": 0}}, {"name": "b"}])
    >>> trials = systems_by_steps(pair, KafkaLoad(), {"batch_bytes": [4096, 16384]}, replicates=2)
    >>> sorted(trial.setting for trial in trials if trial.block == 1)
    ['a, batch_bytes 16384', 'a, batch_bytes 4096', 'b, batch_bytes 16384', 'b, batch_bytes 4096']
    """
    check_number("replicates", replicates, 1, whole=True)
    systems = read_systems(systems)
    if 0 < (having := sum(system.link is not None for system in systems)) < len(systems):
        raise ParameterError(
            f"{having} of {len(systems)} systems have a link, and the others would keep the link of the previous "
            "trial; allowed: a link for every system, or for none."
        )
    _check_fields(systems, load, steps)
    levels = _levels(load, steps)
    trials = {
        (system.name, step): _trial(system, load, step, changes, alongside, client_regions=client_regions)
        for step, changes in levels.items()
        for system in systems
    }
    return [
        Trial(f"{name}, {step}", (trials[name, step],), block)
        for block, name, step in _order(systems, list(levels), replicates, seed)
    ]


def _order(systems: Sequence[System], steps: list[str], replicates: int, seed: int) -> list[tuple[int, str, str]]:
    """Return (block, name of system, name of step) of each trial, in the order that `systems_by_steps` describes."""
    rng = np.random.default_rng(seed)
    shared: dict[tuple[object, ...], list[str]] = {}
    for system in systems:
        if system.cluster is None:
            shared.setdefault(system.cluster_settings, []).append(system.name)
    shared = shared or {(None,) * 3: []}
    elsewhere = [system.name for system in systems if system.cluster is not None]
    order = []
    for block, settings in alternating(list(shared), replicates, rng, any):
        names = {(one, step): list(shared[one]) for one in settings for step in steps}
        for name in elsewhere:
            for turn, step in enumerate(shuffled(steps, rng)):
                names[settings[turn % len(settings)], step].append(name)
        for one in settings:
            for step in shuffled(steps, rng):
                order += [(block, name, step) for name in shuffled(names[one, step], rng)]
    return order


def _levels(load: Load, steps: Mapping[str, Sequence[object]]) -> dict[str, dict[str, object]]:
    """Return what each step changes in the load, by the step's name; of steps that change nothing, the first."""
    levels, has_own = {}, False
    for field, values in steps.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise refusal(f"steps of {field}", values, "a list of levels, at least one")
        for level in map(frozen, values):
            name = f"{field} {_text(level)}"
            if name in levels:
                raise ParameterError(f"steps of {field} have {_text(level)} twice; allowed: each level once.")
            is_own = getattr(load, field) == level
            levels |= {} if is_own and has_own else {name: {field: level}}
            has_own |= is_own
    return levels


def _check_fields(systems: Sequence[System], load: Load, steps: Mapping[str, Sequence[object]]) -> None:
    if not is_dataclass(load):
        raise refusal("load", load, "a load of Kafka, such as KafkaOpenLoop()")
    if not isinstance(steps, Mapping) or not steps:
        raise refusal("steps", steps, "a mapping of fields of the load to their levels")
    for where, names in [("steps", steps), *((f"system {one.name!r}: load", dict(one.load or ())) for one in systems)]:
        check_keys(where, names, type(load))
    for system in systems:
        if fixed := [name for name, _ in system.load or () if name in steps]:
            raise ParameterError(
                f"system {system.name!r} has its own {', '.join(fixed)}, which steps vary; allowed: one or the other."
            )


def _trial(
    system: System, load: Load, step: str, changes: Mapping[str, object], alongside: Iterable[object], **more: Any
) -> KafkaTrial:
    if system.cluster is not None:
        alongside = [each for each in alongside if not isinstance(each, BrokerMetrics)]
    try:
        return KafkaTrial(
            replace(load, **{**dict(system.load or ()), **changes}),
            link=link_of(step, system.link),
            alongside=tuple(alongside),
            broker_settings=system.broker_settings,
            security=system.security,
            kafka_version=system.kafka_version,
            system=system.name,
            cluster=system.cluster,
            **more,
        )
    except ParameterError as error:
        raise ParameterError(f"{system.name}, {step}: {error}") from None


def _text(level: object) -> str:
    if isinstance(level, float) and level.is_integer():
        return str(int(level))
    return "+".join(map(str, level)) if isinstance(level, tuple) else str(level)
