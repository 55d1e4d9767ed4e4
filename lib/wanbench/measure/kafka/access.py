"""Give clients access to a cluster: secrets that are never shown, certificates, and settings files on their hosts."""

import json
import os
import re
import tempfile
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wanbench.checks import check_choice
from wanbench.errors import LabError, ParameterError
from wanbench.measure.labs.base import Host

from .settings import properties

HIDDEN = "(hidden)"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ARN = re.compile(r"\barn:aws")
_SECRET_NAME = re.compile(
    r"passw|passphrase|secret|jaas|credential|token|private|user\.info|api[._-]?key|key\.pem$|\.key$", re.I
)


class Secret:
    """
    A secret value. Every text form of this object shows only where the value comes from.

    >>> Secret("hunter2", "KAFKA_PASSWORD")
    <secret from KAFKA_PASSWORD>
    """

    __slots__ = ("_value", "source")

    def __init__(self, value: str, source: str):
        self._value, self.source = value, source

    def reveal(self) -> str:
        """Return the secret value; write it only to files of mode 0600."""
        return self._value

    def __repr__(self):
        return f"<secret from {self.source}>"

    def __reduce__(self):
        raise TypeError("a secret is not pickled")


def from_environment(parameter: str, variable: str) -> Secret:
    """
    Return the secret in the environment variable called `variable`.

    `parameter` is the name of wanbench's parameter, for error messages. Raise ParameterError if the variable's name is
    malformed, or if the variable is not set, is empty or has several lines. Errors never repeat `variable`, because a
    user may have given the secret itself by mistake.
    """
    if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable):
        message = f"{parameter} is not a valid name of an environment variable; allowed: letters, digits and '_'."
        raise ParameterError(message)
    value = os.environ.get(variable, "")
    if not value or "\n" in value or "\r" in value:
        remedy = f"set the variable before you start, and set {parameter} to its name, not its content"
        named = f"{parameter} names an environment variable that is not set, is empty or has several lines"
        raise ParameterError(f"{named}; {remedy}.")
    return Secret(value, variable)


def may_hold_secret(name: str) -> bool:
    """
    Return whether a Kafka setting of this name may hold a secret.

    >>> [may_hold_secret(name) for name in ("sasl.jaas.config", "linger.ms", "ssl.keystore.key")]
    [True, False, True]
    """
    return bool(_SECRET_NAME.search(name))


def without_secrets(settings: Mapping[str, object]) -> dict[str, object]:
    """
    Replace by "(hidden)" the values of settings that may be secret, and AWS ARNs, which contain an account number.

    >>> without_secrets({"linger.ms": 5, "ssl.key.password": "hunter2", "role": "arn:aws:iam::123456789012:role/x"})
    {'linger.ms': 5, 'ssl.key.password': '(hidden)', 'role': '(hidden)'}
    """
    return {
        name: HIDDEN if may_hold_secret(name) or _ARN.search(str(value)) else value for name, value in settings.items()
    }


def refuse_secrets(settings: Mapping[str, object], instead: str) -> dict[str, object]:
    """
    Return the settings as a dict. Raise ParameterError if a setting may hold a secret; the message names the setting
    and the parameters to use `instead`, but no value.
    """
    if not isinstance(settings, Mapping) or not all(isinstance(name, str) for name in settings):
        raise ParameterError("settings must be a mapping of names to values.")
    if secrets := sorted(name for name in settings if may_hold_secret(name)):
        raise ParameterError(f"settings must not contain secrets, such as {', '.join(secrets)}; use {instead} instead.")
    return dict(settings)


_TIMEOUT_S = 30.0


def put_private(host: Host, name: str, content: str | bytes) -> str:
    """
    Write a file of mode 0600 into the host's scratch folder, replacing an existing one; return its path on the host.

    The mode is set before the content is written, the file appears atomically, and its content is never part of a
    command.
    """
    path = f"{host.scratch}/{name}"
    unfinished = f"{path}.{uuid.uuid4().hex[:8]}"
    host.run(["install", "-m", "600", "/dev/null", unfinished], timeout_s=_TIMEOUT_S)
    number, local = tempfile.mkstemp(prefix="wanbench-")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        host.put(Path(local), unfinished)
    finally:
        os.unlink(local)
    host.run(["mv", "-f", "--", unfinished, path], timeout_s=_TIMEOUT_S)
    return path


PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
MECHANISMS = tuple(_LOGIN_MODULES)
_NAMES = {
    "java": ("security.protocol", "sasl.mechanism", "ssl.truststore.location", ("ssl.keystore.location",), ()),
    "python": (
        "security_protocol",
        "sasl_mechanism",
        "ssl_cafile",
        ("ssl_certfile",),
        ("sasl_plain_username", "sasl_plain_password"),
    ),
    "librdkafka": (
        "security.protocol",
        "sasl.mechanism",
        "ssl.ca.location",
        ("ssl.certificate.location", "ssl.key.location"),
        ("sasl.username", "sasl.password"),
    ),
}
_KINDS = (".properties", ".python.json", ".librdkafka.json", ".authority.pem", ".pem")


@dataclass(frozen=True)
class Access:
    """
    How a client authenticates to a cluster, and how it verifies the brokers.

    `mechanism`, `user` and `password` are for the SASL protocols. `authority_pem` holds the certificates to trust, or
    is None to trust those that the machine trusts. `identity_pem` holds the client's private key (PKCS #8, not
    encrypted) and its certificates.
    """

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    user: str | None = None
    password: Secret | None = None
    authority_pem: bytes | None = field(default=None, repr=False)
    identity_pem: bytes | None = field(default=None, repr=False)

    def __post_init__(self):
        check_choice("protocol", self.protocol, PROTOCOLS)
        if self.protocol.startswith("SASL"):
            check_choice("mechanism", self.mechanism, MECHANISMS)
            if not self.user or self.password is None:
                raise ParameterError(f"{self.protocol} needs a user and a password.")
            if any(not char.isprintable() for char in self.user):
                raise ParameterError("the user's name contains characters that cannot be printed.")
        elif self.mechanism or self.user or self.password:
            raise ParameterError(f"{self.protocol} takes no mechanism, user or password; SASL_SSL does.")
        if not self.protocol.endswith("SSL") and (self.authority_pem or self.identity_pem):
            raise ParameterError(f"{self.protocol} takes no certificates; SSL and SASL_SSL do.")

    @property
    def label(self) -> str:
        """Return user and protocol for error messages, without the password."""
        if self.mechanism:
            return f"user {self.user!r}, mechanism {self.mechanism}, {self.protocol}"
        return f"{self.protocol}, {'with' if self.identity_pem else 'without'} a client certificate"

    def settings(self, client: str, authority: str | None, identity: str | None) -> dict[str, str]:
        """
        Return the settings for a kind of client: "java", "python" (kafka-python) or "librdkafka".

        `authority` and `identity` are the paths of PEM files on the client's host; the file `identity` holds the
        client's key and certificates.
        """
        if self.protocol == "PLAINTEXT":
            return {}
        protocol, mechanism, trusted, own, login = _NAMES[client]
        settings = {protocol: self.protocol}
        if authority:
            settings[trusted] = authority
        if identity:
            settings |= dict.fromkeys(own, identity)
        if client == "java":
            settings |= {
                f"{name.removesuffix('location')}type": "PEM" for name in settings if name.endswith("location")
            }
        if self.mechanism and self.user and self.password:
            password = self.password.reveal()
            settings[mechanism] = self.mechanism
            if client == "java":
                settings["sasl.jaas.config"] = jaas_config(self.mechanism, username=self.user, password=password)
            else:
                settings |= dict(zip(login, (self.user, password), strict=True))
        return settings


def jaas_config(mechanism: str, **options: str) -> str:
    """
    Return the value of the setting `sasl.jaas.config` for a mechanism and its options.

    >>> jaas_config("PLAIN", username="ada", password='two "words"')
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="ada" password="two \\\\"words\\\\"";'
    """
    escaped = {name: value.replace("\\", "\\\\").replace('"', '\\"') for name, value in options.items()}
    text = " ".join(f'{name}="{value}"' for name, value in escaped.items())
    return f"{_LOGIN_MODULES[mechanism]} required {text};"


class ClientFiles:
    """
    Write settings files for clients to hosts, with mode 0600, when each file is first needed.

    `bootstrap` contains the cluster's addresses, "host:port,host:port"; `settings` are additional settings for Java
    clients, without secrets.
    """

    def __init__(self, bootstrap: str, access: Access, settings: Mapping[str, str] | None = None):
        self.bootstrap, self.access, self.settings = bootstrap, access, dict(settings or {})
        self._paths: dict[tuple[str, str], Any] = {}
        self._hosts: dict[str, Host] = {}
        self._name = f"kafka-client-{uuid.uuid4().hex[:8]}"
        self._lock = threading.Lock()

    def java(self, host: Host) -> str | None:
        """Return the path of a properties file for Java clients; None if they need only the bootstrap addresses."""
        return self._once("java", host)

    def python(self, host: Host) -> str:
        """
        Return the path of a JSON file with keyword arguments for kafka-python, as
        `wanbench.measure.kafka.programs.admin` reads it.
        """
        return self._once("python", host)

    def librdkafka(self, host: Host) -> str:
        """Return the path of a JSON file with settings for confluent-kafka."""
        return self._once("librdkafka", host)

    def remove(self) -> None:
        """Delete all files from the hosts; they are written again when next needed."""
        with self._lock:
            hosts, self._hosts, self._paths = self._hosts, {}, {}
        for scratch, host in hosts.items():
            paths = [f"{scratch}/{self._name}{kind}" for kind in _KINDS]
            with suppress(LabError):  # a host that is gone has taken its folder along
                host.run(["rm", "-f", "--", *paths], timeout_s=30, ok=None)

    def _once(self, client: str, host: Host) -> Any:
        with self._lock:
            scratch = host.scratch
            if (client, scratch) not in self._paths:
                self._hosts[scratch] = host
                self._paths[client, scratch] = self._write(client, host)
            return self._paths[client, scratch]

    def _write(self, client: str, host: Host) -> str | None:
        settings = self.access.settings(client, *self._certificates(host))
        if client == "java":
            settings |= self.settings
            return put_private(host, f"{self._name}.properties", properties(settings)) if settings else None
        at = self.bootstrap
        settings |= {"bootstrap_servers": at.split(",")} if client == "python" else {"bootstrap.servers": at}
        return put_private(host, f"{self._name}.{client}.json", json.dumps(settings))

    def _certificates(self, host: Host) -> list[str | None]:
        key = ("certificates", host.scratch)
        if key not in self._paths:
            contents = {"authority.pem": self.access.authority_pem, "pem": self.access.identity_pem}
            self._paths[key] = [
                pem and put_private(host, f"{self._name}.{kind}", pem) for kind, pem in contents.items()
            ]
        return self._paths[key]
