"""
Encryption of our own cluster: none, TLS, or mutual TLS.

A certificate authority in memory issues keys and certificates. Those of a host are written into its scratch folder, as
PEM of mode 0600.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import trustme
from cryptography.hazmat.primitives import serialization

from wanbench.checks import refusal
from wanbench.measure.labs.base import Host

from .access import Access
from .credentials import pkcs8
from .private_files import put_private

KINDS = ("plain", "tls", "mtls")
LISTENERS = ("CLIENT", "BROKER", "CONTROLLER")


class Security(ABC):
    """
    Settings of brokers, and matching ones of clients.

    `protocols` are those of the listeners CLIENT, BROKER and CONTROLLER.
    """

    kind: str
    protocols: dict[str, str]

    @abstractmethod
    def broker_settings(self, host: Host) -> dict[str, str]:
        """Settings of a broker or controller on `host`; puts their key files there."""

    @abstractmethod
    def access(self) -> Access:
        """What a client needs."""

    def describe(self) -> dict:
        """For a manifest: JSON types, no secrets."""
        return {"kind": self.kind, "protocols": dict(self.protocols)}

    def __repr__(self):
        return f"<security {self.kind}: {self.protocols['CLIENT']} for clients>"


class Plain(Security):
    """No encryption, and no access control."""

    kind, protocols = "plain", dict.fromkeys(LISTENERS, "PLAINTEXT")

    def broker_settings(self, host: Host) -> dict[str, str]:
        return {}

    def access(self) -> Access:
        return Access()


class Tls(Security):
    """
    TLS everywhere, including between brokers and to controllers.

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

    def identity_pem(self, address: str, common_name: str) -> bytes:
        """A new key, and the certificate of a server at `address`."""
        return identity_pem(self._authority.issue_cert(address, common_name=common_name[:64]))

    def broker_settings(self, host: Host) -> dict[str, str]:
        identity = self.identity_pem(host.address, f"broker on {host.name}")
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": put_private(host, "kafka-broker.pem", identity),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": put_private(host, "kafka-broker-authority.pem", self.authority_pem),
            "ssl.client.auth": "required" if self.mutual else "none",
        }

    def access(self) -> Access:
        identity = None
        if self.mutual:
            identity = identity_pem(self._authority.issue_cert("client.wanbench", common_name="client"))
        return Access("SSL", authority_pem=self.authority_pem, identity_pem=identity)


def security(wanted: str | Security) -> Security:
    """
    The security that one of `KINDS` names; a Security is returned unchanged.

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
