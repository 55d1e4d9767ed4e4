"""A user's credentials for a cluster: addresses, secrets from the environment, keys from files."""

from __future__ import annotations

import re
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from wanbench.errors import ParameterError

from .secret import Secret, from_environment

_SERVER = re.compile(r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")


def given_or_from(parameter: str, value: str | None, variable: str | None) -> str | None:
    """A parameter's value, or that of the environment variable named by <parameter>_from; None if neither is given."""
    if value is not None and variable is not None:
        raise ParameterError(f"give {parameter} or {parameter}_from, not both.")
    if variable is not None:
        return from_environment(f"{parameter}_from", variable).reveal()
    return value


def servers(text: object) -> str:
    """
    Check bootstrap addresses and strip spaces.

    >>> servers("b-1.example.com:9096, 10.0.0.2:9096")
    'b-1.example.com:9096,10.0.0.2:9096'
    """
    parts = [part.strip() for part in text.split(",")] if isinstance(text, str) else []
    for number, part in enumerate(parts or [""], 1):
        match = _SERVER.fullmatch(part)
        if not match or not 1 <= int(match[1]) <= 65535:
            raise ParameterError(f"bootstrap: address {number} is wrong; allowed: 'host:9092,host:9092'.")
    return ",".join(parts)


def authority(path: str | Path) -> bytes:
    """Trusted certificates, from a PEM file of this machine."""
    content = _read("authority_file", path)
    _certificates("authority_file", path, content)
    return content


def identity(certificate_file: str | Path, key_file: str | Path, password: Secret | None = None) -> bytes:
    """
    An unencrypted private key (PKCS #8, as Java requires), and its certificates, from PEM files of this machine.

    Raises
    ------
    ParameterError
        If a file cannot be read or holds something else, the password is wrong or missing, or the two do not belong
        together.
    """
    chain = _certificates("certificate_file", certificate_file, _read("certificate_file", certificate_file))
    content = _read("key_file", key_file)
    try:
        passphrase = None if password is None else password.reveal().encode()
        key = serialization.load_pem_private_key(content, passphrase)
    except (ValueError, TypeError, UnicodeError):
        raise ParameterError(
            f"key_file {key_file} holds no private key in PEM that "
            + ("needs no password" if password is None else f"{password} opens")
            + "."
        ) from None
    form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    if key.public_key().public_bytes(*form) != chain[0].public_key().public_bytes(*form):
        raise ParameterError(f"key_file {key_file} does not belong to the first certificate of {certificate_file}.")
    return pkcs8(key) + b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in chain)


def pkcs8(key) -> bytes:
    """An unencrypted private key in PEM, as PKCS #8, which Java requires."""
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(*form, serialization.NoEncryption())


def _read(parameter, path):
    try:
        return Path(path).read_bytes()
    except (OSError, TypeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise ParameterError(f"{parameter} cannot be read: {reason}.") from None


def _certificates(parameter, path, content):
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError:
        raise ParameterError(f"{parameter} {path} holds no certificates in PEM.") from None
