"""Systems to compare: names and differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from wanbench.checks import check_choice, check_name, refusal
from wanbench.errors import ParameterError
from wanbench.measure.experiments.kafka_checks import setting_pairs
from wanbench.measure.kafka.security import KINDS
from wanbench.measure.kafka.settings import checked_settings
from wanbench.measure.links import LinkSettings


@dataclass(frozen=True)
class System:
    """
    One of several systems to compare, by its differences: settings of brokers, clients and links, or the whole cluster.

    Parameters
    ----------
    name : str
        Its name in tables (column `system`) and figures.
    broker_settings : mapping of str, optional
        Settings that replace those of the lab's cluster, which is restarted for them. None: its own settings.
    security : str, optional
        "plain", "tls" or "mtls"; replaces that of the lab's cluster in the same way. None: its own.
    link : LinkSettings or mapping of its fields, optional
        Settings of both directions of the pair while this system is measured. None: the common ones of
        `systems_by_steps`.
    load : mapping of str, optional
        Fields of the load that differ for this system, such as {"linger_ms": 0}.
    cluster : str, optional
        The name of an external cluster given to `carry_out`. None: the lab's own.

    Examples
    --------
    >>> System("eager", load={"linger_ms": 0})
    System(name='eager', broker_settings=None, security=None, link=None, load=(('linger_ms', 0),), cluster=None)
    """

    name: str
    broker_settings: Mapping[str, object] | None = None
    security: str | None = None
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
        if self.cluster is not None and (self.broker_settings or self.security):
            raise ParameterError(
                f"{where} is on the external cluster {self.cluster!r} and has broker_settings or security; allowed: "
                "None, as it cannot be restarted with other settings."
            )
        object.__setattr__(self, "link", link_of(f"{where}: link", self.link))
        if self.load is not None:
            given = dict(self.load) if isinstance(self.load, tuple) else _mapping(f"{where}: load", self.load)
            object.__setattr__(self, "load", frozen(given) or None)


def systems(given: Sequence[Mapping[str, object]]) -> tuple[System, ...]:
    """
    Systems from plain data, such as a preset's list of mappings with the parameters of `System`.

    Raises
    ------
    ParameterError
        If there is no system, two have the same name, or a parameter is unknown or malformed.

    Examples
    --------
    >>> [system.name for system in systems([{"name": "a"}, {"name": "b", "load": {"linger_ms": 0}}])]
    ['a', 'b']
    """
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence) or not given:
        raise refusal("systems", given, "a list of systems, or of mappings of their parameters, at least one")
    made = tuple(one if isinstance(one, System) else _made(f"systems[{at}]", one) for at, one in enumerate(given))
    names = [system.name for system in made]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ParameterError(f"systems has {twice[0]!r} twice; allowed: each name once.")
    return made


def _made(where, given):
    allowed = [field.name for field in fields(System)]
    given = _mapping(where, given, f"a mapping of {', '.join(allowed)}")
    if unknown := [str(key) for key in given if key not in allowed]:
        raise ParameterError(f"{where} has {', '.join(unknown)}; allowed: {', '.join(allowed)}.")
    if "name" not in given:
        raise ParameterError(f"{where} has no name; it has {', '.join(given) or 'nothing'}.")
    return System(**given)


def link_of(where: str, given) -> LinkSettings | None:
    """Link settings from LinkSettings or a mapping; ParameterError names `where`."""
    if given is None or isinstance(given, LinkSettings):
        return given
    known = [field.name for field in fields(LinkSettings)]
    given = _mapping(where, given, f"LinkSettings or a mapping of {', '.join(known)}")
    if unknown := [str(key) for key in given if key not in known]:
        raise ParameterError(f"{where} has {', '.join(unknown)}; allowed: {', '.join(known)}.")
    if "delay_ms" not in given:
        raise ParameterError(f"{where} has no delay_ms; it has {', '.join(given) or 'nothing'}.")
    try:
        return LinkSettings(**given)
    except ParameterError as error:
        raise ParameterError(f"{where}: {error}") from None


def _mapping(where, given, allowed="a mapping of names to values"):
    if not isinstance(given, Mapping):
        raise ParameterError(f"{where} is a {type(given).__name__}; allowed: {allowed}.")
    return dict(given)


def frozen(value: object) -> object:
    """Plain data, as from YAML, in comparable and hashable form."""
    if isinstance(value, Mapping):
        return tuple((key, frozen(one)) for key, one in value.items())
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value
