"""
How brokers and clients of our own cluster talk to each other: plain, over TLS, over mutual TLS, or with names and
passwords.

A certificate authority in memory issues keys and certificates. Those of a host are written into its scratch folder, as
PEM of mode 0600.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import trustme
from cryptography.hazmat.primitives import serialization

from ...checks import refusal
from ...errors import ParameterError
from ...labs.base import Host
from .access import Access, jaas_config
from .credentials import pkcs8
from .private_files import put_private
from .secret import Secret

KINDS = ("plain", "tls", "mtls")
LISTENERS = ("CLIENT", "BROKER", "CONTROLLER")


class Security(ABC):
    """
    The settings of brokers, and what clients need in turn.

    `protocols` are those of the listeners CLIENT, BROKER and CONTROLLER.
    """

    kind: str
    protocols: dict[str, str]

    @abstractmethod
    def broker_settings(self, host: Host) -> dict[str, str]:
        """Settings of a broker or controller on `host`; puts the key files that they name there."""

    @abstractmethod
    def access(self) -> Access:
        """What a client needs."""

    def describe(self) -> dict:
        """For a manifest: JSON types, no secrets."""
        return {"kind": self.kind, "protocols": dict(self.protocols)}

    def __repr__(self):
        return f"<security {self.kind}: {self.protocols['CLIENT']} for clients>"


class Plain(Security):
    """No encryption, and everyone may do everything."""

    kind, protocols = "plain", dict.fromkeys(LISTENERS, "PLAINTEXT")

    def broker_settings(self, host: Host) -> dict[str, str]:
        return {}

    def access(self) -> Access:
        return Access()


class Tls(Security):
    """
    TLS everywhere, also between brokers and to controllers.

    Parameters
    ----------
    mutual : bool
        Whether clients must show a certificate of the authority too.
    """

    protocols = dict.fromkeys(LISTENERS, "SSL")

    def __init__(self, mutual: bool = False):
        self.kind = "mtls" if mutual else "tls"
        self.mutual = mutual
        self._authority = trustme.CA(organization_name="wanbench")

    @property
    def authority_pem(self) -> bytes:
        """The authority's certificate."""
        return self._authority.cert_pem.bytes()

    def broker_settings(self, host: Host) -> dict[str, str]:
        issued = self._authority.issue_cert(host.address, common_name=f"broker on {host.name}"[:64])
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": put_private(host, "kafka-broker.pem", identity_pem(issued)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": put_private(host, "kafka-broker-authority.pem", self.authority_pem),
            "ssl.client.auth": "required" if self.mutual else "none",
        }

    def access(self) -> Access:
        identity = None
        if self.mutual:
            identity = identity_pem(self._authority.issue_cert("client.wanbench", common_name="client"))
        return Access("SSL", authority_pem=self.authority_pem, identity_pem=identity)


class SaslPlain(Security):
    """
    Names and passwords (SASL/PLAIN), to test clients that are refused.

    Brokers and controllers talk in plain text and may do everything; users may do what access control lists allow. The
    brokers' settings hold the passwords: show and keep them through `wanbench.kafka.security.secret.without_secrets`.

    Parameters
    ----------
    users : mapping of str to str
        Passwords by name.
    super_users : sequence of str
        Users who may do everything.
    encrypted : bool
        Whether clients use TLS as well.
    """

    kind = "sasl_plain"

    def __init__(self, users: Mapping[str, str], super_users: Sequence[str] = (), *, encrypted: bool = False):
        if not users or set(super_users) - set(users):
            raise ParameterError("there is at least one user, and super users are some of the users.")
        if not all(name.isidentifier() for name in users):
            raise ParameterError("users' names must be letters, digits and '_', no digit first.")
        self._passwords = {name: Secret(password, "the caller") for name, password in users.items()}
        self.super_users = tuple(super_users)
        self.tls = Tls() if encrypted else None
        protocol = "SASL_SSL" if encrypted else "SASL_PLAINTEXT"
        self.protocols = {**dict.fromkeys(LISTENERS, "PLAINTEXT"), "CLIENT": protocol}

    def broker_settings(self, host: Host) -> dict[str, str]:
        passwords = {f"user_{name}": password.reveal() for name, password in self._passwords.items()}
        return {
            **(self.tls.broker_settings(host) if self.tls else {}),
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.client.plain.sasl.jaas.config": jaas_config("PLAIN", **passwords),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            "super.users": ";".join(f"User:{name}" for name in ("ANONYMOUS", *self.super_users)),
        }

    def access(self, user: str | None = None) -> Access:
        """What a user needs; without a name, the first super user or else the first user."""
        name = user or next(iter((*self.super_users, *self._passwords)))
        if name not in self._passwords:
            raise ParameterError(f"no user {name!r}.")
        authority = self.tls.authority_pem if self.tls else None
        return Access(self.protocols["CLIENT"], "PLAIN", name, self._passwords[name], authority)


def security(wanted: str | Security) -> Security:
    """
    The security that one of `KINDS` names; a Security is returned as it is.

    >>> security("plain")
    <security plain: PLAINTEXT for clients>
    """
    if isinstance(wanted, Security):
        return wanted
    match wanted:
        case "plain":
            return Plain()
        case "tls" | "mtls":
            return Tls(mutual=wanted == "mtls")
    raise refusal("security", wanted, f"{', '.join(map(repr, KINDS))} or a Security")


def identity_pem(issued: trustme.LeafCert) -> bytes:
    """Private key (PKCS #8, as Java wants it) and certificates, in one PEM."""
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    return pkcs8(key) + b"".join(pem.bytes() for pem in issued.cert_chain_pems)
