"""Build and check the settings in a node's server.properties, and read the effective settings from its log."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from string import Template

import javaproperties

from wanbench.checks import refusal
from wanbench.errors import ParameterError

from .placement import BROKER_PORT, CLIENT_PORT, CONTROLLER_PORT, NodePlacement

BROKER_OWNED = re.compile(
    r"node\.id|broker\.(id|rack)|process\.roles|(advertised\.)?listeners|log\.dirs?|metadata\.log\.dir"
    r"|controller\.(quorum\.(voters|bootstrap\.servers)|listener\.names)"
    r"|inter\.broker\.listener\.name|listener\.security\.protocol\.map|(listener\.name\..*)?(ssl|sasl)\..*"
)
# Client settings that are derived from the cluster's addresses and security.
CLIENT_OWNED = re.compile(r"bootstrap\.servers|security\.protocol|sasl\.mechanism|ssl\.(key|trust)store\..*")
_NAME = re.compile(r"[a-z0-9][A-Za-z0-9._-]*")
_BLOCK = "KafkaConfig values:"
_LINE = re.compile(r"\t([A-Za-z0-9._-]+) = ?(.*)")
_NOT_LOGGED = ("listener.name.", "rsm.config.", "rlmm.config.")  # prefixes of settings that brokers accept unlogged


def defaults(brokers: int) -> dict[str, str]:
    """
    Return wanbench's default broker settings, for a cluster of `brokers` brokers; all others have Kafka's defaults.

    Consumers start without a delay and read from a replica in the region of their client.rack. Topics are created only
    explicitly, and deletion frees the disk soon. Small internal topics let nine nodes fit on one machine.
    """
    text = Template(Path(__file__).with_name("defaults.properties").read_text())
    return javaproperties.loads(text.substitute(copies=min(3, brokers), min_isr=min(2, brokers)))


def tier_settings(folder: str, brokers: int) -> dict[str, str]:
    """Return the settings with which brokers of one machine share a second tier of storage in a folder of it."""
    return {
        "log.retention.check.interval.ms": "1000",  # how soon local copies beyond `local.retention` are deleted
        "remote.log.manager.task.interval.ms": "1000",
        "remote.log.metadata.manager.listener.name": "BROKER",
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "remote.log.storage.system.enable": "true",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
        "rlmm.config.remote.log.metadata.topic.replication.factor": str(min(3, brokers)),
        "rsm.config.dir": folder,
    }


def checked_settings(settings: Mapping[str, object], owned: re.Pattern[str] = BROKER_OWNED) -> dict[str, str]:
    """
    Return settings as text in Kafka's notation: settings of brokers or, with `CLIENT_OWNED`, of clients.

    Raise ParameterError if a name is malformed, if the cluster sets it itself, or if a value is not one line.

    >>> checked_settings({"num.io.threads": 4, "unclean.leader.election.enable": True})
    {'num.io.threads': '4', 'unclean.leader.election.enable': 'true'}
    >>> checked_settings({"broker.rack": "x"})
    Traceback (most recent call last):
        ...
    wanbench.errors.ParameterError: the cluster sets broker.rack itself; leave it out of the settings.
    """
    if not isinstance(settings, Mapping):
        raise refusal("settings", settings, "a mapping of names to values")
    checked = {}
    for name, value in settings.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ParameterError(f"setting {name!r} has a malformed name; allowed: names like num.network.threads.")
        if owned.fullmatch(name):
            raise ParameterError(f"the cluster sets {name} itself; leave it out of the settings.")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if not isinstance(value, str | int | float) or not text.isprintable():
            raise refusal(f"setting {name}", value, "one line of text, a number, True or False")
        checked[name] = text
    return checked


def node_settings(
    placement: NodePlacement,
    everyone: Sequence[NodePlacement],
    data_folder: str,
    protocols: Mapping[str, str],
    wanted: Mapping[str, str],
) -> dict[str, str]:
    """
    Return the content of a node's server.properties.

    The content combines `defaults`, the settings `wanted`, and the settings that follow from the node's placement and
    from the protocol of each listener; in this order, later ones override earlier ones.
    """
    address = placement.host.address
    listeners = []
    if placement.is_broker:
        listeners += [f"CLIENT://{address}:{CLIENT_PORT}", f"BROKER://{address}:{BROKER_PORT}"]
    if placement.is_controller:
        listeners.append(f"CONTROLLER://{address}:{CONTROLLER_PORT}")
    voters = [f"{other.node_id}@{other.host.address}:{CONTROLLER_PORT}" for other in everyone if other.is_controller]
    own = {
        "node.id": str(placement.node_id),
        "process.roles": placement.roles,
        "broker.rack": placement.host.region,
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(voters),
        "listeners": ",".join(listeners),
        "listener.security.protocol.map": ",".join(map(":".join, protocols.items())),
        "log.dirs": data_folder,
    }
    if placement.is_broker:
        own["inter.broker.listener.name"] = "BROKER"
    brokers = sum(other.is_broker for other in everyone)
    return {**defaults(brokers), **wanted, **own}


def properties(settings: Mapping[str, str]) -> str:
    """Return settings as the text of a Java properties file."""
    return javaproperties.dumps(settings, timestamp=False)


def effective_settings(log: bytes) -> dict[str, str]:
    """Return the settings that a broker last logged; Kafka hides passwords in them."""
    text = log.decode("utf-8", "replace")
    settings = {}
    for line in text[text.rfind(_BLOCK) :].splitlines()[1:] if _BLOCK in text else ():
        setting = _LINE.fullmatch(line)
        if setting is None:
            break
        settings[setting[1]] = setting[2]
    return settings


def unknown(wanted: Iterable[str], effective: Collection[str]) -> list[str]:
    """Return the names of settings that a broker does not know and has ignored."""
    return sorted(name for name in wanted if name not in effective and not name.startswith(_NOT_LOGGED))
