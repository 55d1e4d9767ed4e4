"""Use Kafka clusters that already run, such as Amazon MSK, Confluent Cloud or Strimzi on OpenShift."""

import inspect
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from wanbench.errors import LATER, ClusterError, ParameterError
from wanbench.measure.labs.base import Host, Lab
from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

from .access import Access, ClientFiles, from_environment, refuse_secrets, without_secrets
from .base import AnswerError, BaseCluster
from .java_commands import Jars
from .placement import Broker
from .security import authority, identity
from .settings import CLIENT_OWNED, checked_settings

CONNECT_S = 10.0  # timeout of the search for a broker
CHECK_S = 30.0  # minimum interval between requests of `check`
_SERVER = re.compile(r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # names of external clusters are parts of file names


class RemoteBrokerHost(Host):
    """
    The host of a broker in an external cluster; its region is the broker's rack. Every command raises ClusterError.
    """

    def __init__(self, node_id: int, rack: str | None, address: str):
        self.name, self.region, self.address = f"broker {node_id}", rack or "", address

    @property
    def scratch(self) -> str:
        return self.run()

    def run(self, *_: object, **__: object) -> NoReturn:
        raise ClusterError(f"{self.name} runs outside the lab: wanbench can run no commands and fetch no files there.")

    start = put = get = run

    def __repr__(self):
        return f"<remote {self.name}>"


class ExternalCluster(BaseCluster):
    """
    A cluster that already runs: a context manager that yields itself once the cluster has answered.

    Clients run on the hosts of an open lab. Nothing in the cluster is started or stopped.

    Secrets are given by reference: a parameter ending in `_from` is the name of an environment variable. Secrets reach
    clients only through files of mode 0600 in the hosts' scratch folders, which are deleted at the end. Errors name
    addresses and the user, but manifests do not. Command lines of Java tools contain the addresses.

    Parameters
    ----------
    bootstrap, bootstrap_from : str
        Addresses, "host:port,host:port".
    protocol : str
        One of `wanbench.measure.kafka.access.PROTOCOLS`.
    mechanism : str
        One of `wanbench.measure.kafka.access.MECHANISMS`, for the SASL protocols.
    user, user_from, password_from : str
        The user's name and password; for Confluent Cloud, the API key and secret.
    authority_file : path, optional
        Certificates to trust, for example the CA of a Strimzi cluster. None stands for those that the hosts trust.
    certificate_file, key_file, key_password_from : path, path, str, optional
        The client's certificates and private key in PEM, and the key's password if it has one.
    settings : mapping, optional
        Additional settings for Java clients, without secrets.
    name : str, optional
        The cluster's name in `host.clusters`, if the lab reaches several clusters. With None, the cluster is the lab's
        only one, `host.cluster`.

    Raises
    ------
    ParameterError
        If a parameter is invalid, or an environment variable is not set.
    ClusterError
        On entry, within about `CONNECT_S` seconds, if no broker answers or the cluster refuses the client; the
        message quotes Kafka's message and describes the attempt.
    """

    def __init__(
        self,
        lab: Lab,
        bootstrap: str | None = None,
        *,
        bootstrap_from: str | None = None,
        protocol: str = "SASL_SSL",
        mechanism: str | None = None,
        user: str | None = None,
        user_from: str | None = None,
        password_from: str | None = None,
        authority_file: str | Path | None = None,
        certificate_file: str | Path | None = None,
        key_file: str | Path | None = None,
        key_password_from: str | None = None,
        settings: Mapping[str, object] | None = None,
        name: str | None = None,
    ):
        if (certificate_file is None) != (key_file is None) or (key_password_from and key_file is None):
            raise ParameterError("certificate_file and key_file must be given together; key_password_from needs both.")
        self.lab, self.name = lab, name
        self.bootstrap = checked_addresses(value_or_variable("bootstrap", bootstrap, bootstrap_from))
        key_password = from_environment("key_password_from", key_password_from) if key_password_from else None
        self._access = Access(
            protocol,
            mechanism,
            value_or_variable("user", user, user_from),
            from_environment("password_from", password_from) if password_from else None,
            None if authority_file is None else authority(authority_file),
            identity(certificate_file, key_file, key_password) if certificate_file and key_file else None,
        )
        secrets_by = "password_from, authority_file, certificate_file and key_file"
        self.settings = checked_settings(refuse_secrets(settings or {}, secrets_by), CLIENT_OWNED)
        self.brokers: tuple[Broker, ...] = ()
        self._jars, self._clients, self._description, self._checked_s = LATER, LATER, {}, 0.0

    def __enter__(self):
        if self._clients is not None:
            raise ClusterError("the cluster is already entered.")
        self._check_free()
        self._jars, self._clients = Jars(), ClientFiles(self.bootstrap, self._access, self.settings)
        try:
            self._description = self._ask_quickly()
            self.brokers = tuple(
                Broker(row["node_id"], RemoteBrokerHost(row["node_id"], row["rack"], row["host"]), row["port"])
                for row in self._description["brokers"]
            )
        except BaseException:
            self.__exit__()
            raise
        self._offer()
        return self

    def __exit__(self, *exception: object) -> None:
        clients, self._clients, self._jars = self._clients, LATER, LATER
        self._withdraw()
        if clients is not None:
            clients.remove()

    def check(self) -> None:
        """Raise ClusterError if the cluster no longer answers; it is asked at most every `CHECK_S` seconds."""
        if time.monotonic() > self._checked_s + CHECK_S:
            self._ask_quickly()

    def describe(self) -> dict[str, Any]:
        """Return the cluster's entry in the manifest: JSON types; no secrets, addresses or user."""
        return {
            "kind": "external",
            "kafka": self._description.get("version"),
            "brokers": [
                {"node_id": broker["node_id"], "rack": broker["rack"]}
                for broker in self._description.get("brokers", ())
            ],
            "security": {
                "protocol": self._access.protocol,
                "mechanism": self._access.mechanism,
                "client_certificate": self._access.identity_pem is not None,
                "own_authority": self._access.authority_pem is not None,
            },
            "settings": without_secrets(self.settings),
        }

    def keep(self, folder: Path, stem: str = "") -> list[RawFile]:
        """
        Write <run folder>/kafka_cluster/<stem>.external.json: the cluster's description and, for each broker, the
        settings that were changed at run time, or the error if these could not be read. The brokers' logs cannot be
        fetched.
        """
        started, host, description = now_utc(), self._running_host(), self.describe()
        for broker in description["brokers"]:
            try:
                broker["settings"] = without_secrets(self.ask(host, "settings", broker=broker["node_id"]))
            except AnswerError as error:
                broker["settings_unknown"] = error.kind
        name = f"{stem}.external.json" if stem else "external.json"
        content = json.dumps(description, indent=1).encode()
        return [write_raw(folder, "kafka_cluster", name, content, started_at_utc=started, ended_at_utc=now_utc())]

    def _not_ours(self, node_id: int, **_: object) -> NoReturn:
        raise ClusterError(
            "an external cluster runs outside the lab: its brokers cannot be stopped or started, and batches in their "
            "logs cannot be counted."
        )

    log_folder = stop = kill = start = _not_ours

    def __repr__(self):
        state = "entered" if self._clients is not None else "not entered"
        return f"<external Kafka cluster, {state}: {self._access.label}>"

    def _ask_quickly(self):
        description = self.ask(self._running_host(), "cluster", connect_s=CONNECT_S, request_s=CONNECT_S)
        self._checked_s = time.monotonic()
        return description

    def _running_host(self) -> Host:
        return self.lab.all_hosts()[0]

    def _open_jars(self) -> Jars:
        self._open_clients()
        return self._jars

    def _open_clients(self) -> ClientFiles:
        if self._clients is None:
            raise ClusterError("the cluster is not entered; use it in a with statement.")
        return self._clients


def value_or_variable(parameter: str, value: str | None, variable: str | None) -> str | None:
    """
    Return a parameter's value, or else the content of the environment variable that <parameter>_from names, or else
    None.
    """
    if value is not None and variable is not None:
        raise ParameterError(f"both {parameter} and {parameter}_from are given; allowed: one of them.")
    return value if variable is None else from_environment(f"{parameter}_from", variable).reveal()


def checked_addresses(text: object) -> str:
    """Return bootstrap addresses without spaces; raise ParameterError if one is malformed."""
    parts = [part.strip() for part in text.split(",")] if isinstance(text, str) else []
    for number, part in enumerate(parts or [""], 1):
        match = _SERVER.fullmatch(part)
        if not match or not 1 <= int(match[1]) <= 65535:
            raise ParameterError(f"bootstrap: address {number} is malformed; allowed: 'host:9092,host:9092'.")
    return ",".join(parts)


def external_clusters(lab: Lab, given: Mapping[str, Mapping[str, Any]]) -> dict[str, ExternalCluster]:
    """
    Create external clusters, not yet entered; `given` maps each cluster's name to parameters of `ExternalCluster`.

    Raise ParameterError if a name or a parameter is invalid. Errors show no values, because they may be secret.
    """
    known = [name for name in inspect.signature(ExternalCluster).parameters if name not in ("lab", "name")]

    clusters = {}
    for name, parameters in given.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            allowed = "names of letters, digits, '.', '_' and '-', the first a letter or digit"
            raise ParameterError(f"external has a cluster {name!r}; allowed: {allowed}.")
        where = f"external cluster {name!r}"
        if not isinstance(parameters, Mapping):
            message = f"{where} is a {type(parameters).__name__}; allowed: a mapping of {', '.join(known)}."
            raise ParameterError(message)
        if unknown := [str(key) for key in parameters if key not in known]:
            raise ParameterError(f"{where} has {', '.join(unknown)}; allowed: {', '.join(known)}.")
        try:
            clusters[name] = ExternalCluster(lab, name=name, **parameters)
        except ParameterError as error:
            raise ParameterError(f"{where}: {error}") from None
    return clusters
