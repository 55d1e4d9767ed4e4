"""Who may log in to rented hosts: an address, and keys made for one run."""

from __future__ import annotations

import ipaddress
import os

from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from wanbench.checks import refusal

OPERATOR_VARIABLE = "WANBENCH_OPERATOR_ADDRESS"
_INSIDE = "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 0.0.0.0/8 127.0.0.0/8 169.254.0.0/16 224.0.0.0/3"
INSIDE = tuple(map(ipaddress.IPv4Network, _INSIDE.split()))
"""Private, local and reserved networks: no login arrives from them, so rented hosts would wait for it in vain."""


def operator(address: str | None) -> str:
    """The operator's network in CIDR form, from an address or `OPERATOR_VARIABLE`; ParameterError if it is none."""
    given = address or os.environ.get(OPERATOR_VARIABLE, "")
    try:
        network = ipaddress.IPv4Network(given)
    except ValueError:
        network = None
    if network is None or network.prefixlen < 24 or any(map(network.subnet_of, INSIDE)):
        raise refusal(
            f"operator_address (or {OPERATOR_VARIABLE})",
            given,
            "the public IPv4 address that logs in, or a network of at most 256 addresses",
        )
    return str(network)


def key_pair() -> tuple[str, str]:
    """A new ed25519 key in OpenSSH's formats: private, public."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption())
    public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
    return private.decode(), public.decode()
