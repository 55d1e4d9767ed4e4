"""
Encrypt the clusters that wanbench runs by TLS or mutual TLS, and read keys and certificates of users from files.

A certificate authority in memory issues the clusters' keys and certificates. Each host gets its own key and certificate
in its scratch folder, as PEM files of mode 0600.
"""

from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from wanbench.checks import refusal
from wanbench.errors import ParameterError
from wanbench.measure.labs.base import Host

from .access import Access, Secret, put_private

KINDS = ("plain", "tls", "mtls")
LISTENERS = ("CLIENT", "BROKER", "CONTROLLER")


def authority(path: str | Path) -> bytes:
    """Read trusted certificates from a PEM file on this machine."""
    content = _read("authority_file", path)
    _certificates("authority_file", path, content)
    return content


def identity(certificate_file: str | Path, key_file: str | Path, password: Secret | None = None) -> bytes:
    """
    Read a private key and its certificates from PEM files on this machine; return both in one PEM text, with the key
    unencrypted in PKCS #8, which Java requires.

    Raise ParameterError if a file cannot be read or has other content, if the password is wrong or missing, or if the
    key does not belong to the certificate.
    """
    chain = _certificates("certificate_file", certificate_file, _read("certificate_file", certificate_file))
    content = _read("key_file", key_file)
    try:
        passphrase = None if password is None else password.reveal().encode()
        key = serialization.load_pem_private_key(content, passphrase)
    except (ValueError, TypeError, UnicodeError):
        how = "without a password" if password is None else f"with {password}"
        raise ParameterError(f"key_file {key_file} has no private key in PEM that can be read {how}.") from None
    form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    if key.public_key().public_bytes(*form) != chain[0].public_key().public_bytes(*form):
        raise ParameterError(f"key_file {key_file} does not belong to the first certificate of {certificate_file}.")
    return pkcs8(key) + b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in chain)


def pkcs8(key: PrivateKeyTypes) -> bytes:
    """Return a private key as unencrypted PEM in PKCS #8, which Java requires."""
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(*form, serialization.NoEncryption())


def _read(parameter: str, path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, TypeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise ParameterError(f"{parameter} cannot be read: {reason}.") from None


def _certificates(parameter: str, path: str | Path, content: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError:
        raise ParameterError(f"{parameter} {path} has no certificates in PEM.") from None


class Security:
    """
    The security settings of brokers and clients; this base class has neither encryption nor access control.

    `protocols` maps each listener to its protocol.
    """

    kind = "plain"
    protocols: dict[str, str] = dict.fromkeys(LISTENERS, "PLAINTEXT")

    def broker_settings(self, host: Host) -> dict[str, str]:
        """Return the security settings of a broker or controller on `host`, after writing its key files there."""
        return {}

    def access(self) -> Access:
        """Return the `Access` with which clients connect."""
        return Access()

    def describe(self) -> dict[str, object]:
        """Return the manifest's entry on the cluster's security: JSON types, no secrets."""
        return {"kind": self.kind, "protocols": dict(self.protocols)}


class Tls(Security):
    """
    TLS on every connection, including those between brokers and to controllers; with `mutual`, clients must show a
    certificate.
    """

    protocols = dict.fromkeys(LISTENERS, "SSL")

    def __init__(self, mutual: bool = False):
        self.kind = "mtls" if mutual else "tls"
        self.mutual = mutual
        self._authority = trustme.CA(organization_name="wanbench")

    @property
    def authority_pem(self) -> bytes:
        return self._authority.cert_pem.bytes()

    def identity_pem(self, address: str, common_name: str) -> bytes:
        """Return a new private key and a certificate for a server at `address`."""
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
    """Return the `Security` for "plain", "tls" or "mtls"; return a `Security` unchanged."""
    if isinstance(wanted, Security):
        return wanted
    if wanted not in KINDS:
        raise refusal("security", wanted, f"{', '.join(map(repr, KINDS))} or a Security")
    return Security() if wanted == "plain" else Tls(mutual=wanted == "mtls")


def identity_pem(issued: trustme.LeafCert) -> bytes:
    """Return a private key (PKCS #8, as Java requires) and its certificates in one PEM text."""
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    return pkcs8(key) + b"".join(pem.bytes() for pem in issued.cert_chain_pems)
