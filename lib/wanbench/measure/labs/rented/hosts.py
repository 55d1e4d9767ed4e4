"""Describe the hosts that a lab requests and that a cloud launches; configure their first boot, and prepare them."""

from __future__ import annotations

import ipaddress
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from string import Template
from threading import Event
from typing import Any, TypeVar

import yaml
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from wanbench.checks import check_choice, refusal
from wanbench.errors import LabError
from wanbench.measure.labs.base import Host
from wanbench.measure.labs.ssh import SshHost

from .client import CloudError
from .resources import Tags, everywhere, tell

START_TIMEOUT_S = 300.0  # Timeout for all hosts of a region to be running.
OPERATOR_VARIABLE = "WANBENCH_OPERATOR_ADDRESS"
_INSIDE = "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 0.0.0.0/8 127.0.0.0/8 169.254.0.0/16 224.0.0.0/3"
# Private, local and reserved networks, from which no login can reach a rented host.
INSIDE = tuple(map(ipaddress.IPv4Network, _INSIDE.split()))
VOLUME_FOLDER = "/wanbench"
PYTHON_FOLDER = "/opt/wanbench"
# A virtual environment on the host, with the modules that Kafka's experiments import there.
HOST_PYTHON = f"{PYTHON_FOLDER}/bin/python"
MODULES = ("kafka-python", "confluent-kafka")

START_S = 600.0  # Timeout for a host to boot and answer by SSH, and again for installing its packages.
INTERNET, PRIVATE = "internet", "private"
PATHS = (INTERNET, PRIVATE)
Zone = TypeVar("Zone")


@dataclass(frozen=True)
class Wanted:
    """
    The hosts that a lab requests in one region, by the cloud's own name. `zone` and `subnet` (an existing one) are None
    if the lab has no preference.
    """

    region: str
    instance_type: str
    count: int = 1
    zone: str | None = None
    volume_gb: int | None = None
    subnet: str | None = None


@dataclass(frozen=True)
class Order:
    """What all hosts of a run have in common; `first_start` is the document that `user_data` returns."""

    tags: Tags
    public_key: str
    first_start: str


@dataclass(frozen=True)
class Instance:
    """A running host; `region` is the cloud's own name for its region."""

    id: str
    region: str
    zone: str
    public_address: str
    private_address: str


def in_first_zone(
    zones: Iterable[Zone], launch: Callable[[Zone], object], wanted: Wanted, no_capacity: Iterable[str]
) -> Zone:
    """
    Call `launch` for one zone after another until one has capacity for all hosts, and return this zone. LabError, with
    each zone's error, if no zone has the capacity. `no_capacity` are the cloud's error codes for a lack of capacity.
    """
    refusals = []
    for zone in zones:
        try:
            launch(zone)
            return zone
        except CloudError as error:
            if error.code not in no_capacity:
                raise
            refusals.append(str(error))
    raise LabError(f"No zone of {wanted.region} has {wanted.count} x {wanted.instance_type}: {' '.join(refusals)}")


def once_running(running: Callable[[], list[Instance]], wanted: Wanted, poll_s: float) -> list[Instance]:
    """Call `running` until all wanted hosts are running, and return them; raise LabError after `START_TIMEOUT_S`."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while len(instances := running()) < wanted.count:
        if time.monotonic() > deadline:
            few = f"{len(instances)} of {wanted.count} hosts"
            raise LabError(f"Only {few} in {wanted.region} are running after {START_TIMEOUT_S:g} s.")
        time.sleep(poll_s)
    return sorted(instances, key=lambda instance: instance.id)


def operator(address: str | None) -> str:
    """
    Return the network from which the operator (the user) logs in to hosts, in CIDR form.

    `address` is an address or a network; by default, the value of the environment variable `OPERATOR_VARIABLE`. Raise
    ParameterError if this is neither an address nor a network, or not public.
    """
    given = address or os.environ.get(OPERATOR_VARIABLE, "")
    try:
        network = ipaddress.IPv4Network(given)
    except ValueError:
        network = None
    if network is None or network.prefixlen < 24 or any(map(network.subnet_of, INSIDE)):
        allowed = "the public IPv4 address that logs in, or a network of at most 256 addresses"
        raise refusal(f"operator_address (or {OPERATOR_VARIABLE})", given, allowed)
    return str(network)


def key_pair() -> tuple[str, str]:
    """Make an ed25519 key, and return its private and public part in OpenSSH's formats."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption())
    public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
    return private.decode(), public.decode()


def user_data(
    *,
    expires_at: datetime,
    host_key: str,
    host_key_public: str,
    packages: Sequence[str] = (),
    python: str = "python3",
    volume_device: str | None = None,
    files: Mapping[str, str] | None = None,
) -> str:
    """
    Return the cloud-config document of a host, for a distribution with cloud-init and systemd.

    A timer powers the host off at `expires_at`, even after a reboot, and even if nobody can reach the host any more. A
    shutdown at the same time is scheduled early in the first boot, in case a later step of the boot hangs.

    `host_key` becomes the host's only SSH host key (ed25519, in OpenSSH's formats). `python` is the command of the
    distribution's Python, 3.11 or newer; it makes the virtual environment of `HOST_PYTHON`, in which `MODULES` are
    installed from PyPI in the versions installed here. If this fails, only Kafka cannot be run. `volume_device` is the
    device of an empty volume, which is formatted and mounted on `VOLUME_FOLDER`. `files` ({path: content}) are written
    before other services start.
    """
    left_min = max(1, round((expires_at - datetime.now(UTC)).total_seconds() / 60))
    when = expires_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    unit = "/etc/systemd/system/wanbench-expiry"
    config = {
        "bootcmd": [["cloud-init-per", "once", "wanbench-expiry", "shutdown", "-P", f"+{left_min}"]],
        "ssh_deletekeys": True,
        "ssh_keys": {"ed25519_private": host_key, "ed25519_public": host_key_public},
        "ssh_pwauth": False,
        "write_files": [
            {"path": f"{unit}.service", "content": filled("expiry.service")},
            {"path": f"{unit}.timer", "content": filled("expiry.timer", when=when)},
            *({"path": path, "content": content} for path, content in (files or {}).items()),
        ],
        "runcmd": [
            [python, "-m", "venv", PYTHON_FOLDER],
            [HOST_PYTHON, "-m", "pip", "install", "--no-input", *(f"{name}=={version(name)}" for name in MODULES)],
            # The status of the last command becomes the status of the whole first boot.
            ["systemctl", "enable", "--now", "wanbench-expiry.timer"],
        ],
    }
    if packages:
        config["packages"] = list(packages)
    if volume_device:
        config["fs_setup"] = [{"device": volume_device, "filesystem": "xfs", "label": "wanbench"}]
        config["mounts"] = [[volume_device, VOLUME_FOLDER, "xfs", "defaults,nofail", "0", "2"]]
    return "#cloud-config\n" + yaml.safe_dump(config, sort_keys=False, width=1000)


def not_launched(wanted: Mapping[str, Wanted], first: int) -> dict[str, list[Host]]:
    """
    Return hosts by region, numbered from `first`. They have names, but no addresses yet.

    With these, the placement of a Kafka cluster can be checked before any host is paid for.
    """
    return {
        region: [SshHost(f"{region}/{number}", region, "") for number in range(first, first + hosts.count)]
        for region, hosts in wanted.items()
    }


def make_ready(host: Any, *, sysctls: Mapping[str, str], has_volume: bool, leaving: Event) -> None:
    """
    Wait until a host answers and has finished its first boot; then set its sysctls and `host.python`.

    If the host has a volume, its scratch folder is moved to the volume, which then also holds the logs of brokers.
    Raise LabError if the host does not answer within `START_S`, or if `leaving` is set while waiting.
    """
    deadline = time.monotonic() + START_S
    while True:
        try:
            host.open()
            break
        except LabError:
            if time.monotonic() > deadline or leaving.wait(2):
                raise
    if leaving.is_set():
        raise LabError(f"{host.name} is not prepared, because the lab is closing.")
    # Status 2: done, with errors that it could recover from.
    host.run(["cloud-init", "status", "--wait"], timeout_s=START_S, ok=(0, 2))
    if host.run(["test", "-x", HOST_PYTHON], timeout_s=30, ok=None).returncode == 0:
        host.python = HOST_PYTHON
    if has_volume:
        host.run(["mountpoint", "-q", VOLUME_FOLDER], timeout_s=30)
        host.folder = VOLUME_FOLDER
        host.close()
        host.open()
    for name, value in sysctls.items():
        host.run(["sysctl", "-w", f"{name}={value}"], timeout_s=30)


def close(host: Any) -> None:
    """
    Close the connection to a host that will be deleted. An error is only printed, so that it does not prevent the
    deletion.
    """
    try:
        host.close()
    except Exception as error:
        tell(f"wanbench: {host.name}: {error}")


def own_public_address(host: Host, private: str, public: str) -> None:
    """
    Assign a host's public address to its loopback interface, and translate between its `private` and `public` address.

    The host needs `ip`, `nft` and root privileges.
    """
    private, public = str(ipaddress.IPv4Address(private)), str(ipaddress.IPv4Address(public))
    host.run(["ip", "address", "replace", f"{public}/32", "dev", "lo"], timeout_s=30)
    load_rules(host, "own-address", private=private, public=public)


class Paths:
    """
    Select the path of new connections between hosts: over the internet, or over a private link.

    `hosts` are (host, private address). On the private path, each host sends packets for the public address of a host
    in another region to that host's private address instead. Commands, and the addresses that brokers advertise, are
    the same on both paths, so trials can alternate between them.
    """

    def __init__(self, hosts: Sequence[tuple[Host, str]]):
        self._hosts = list(hosts)

    def use(self, name: str) -> None:
        """Make all hosts use a path, one of `PATHS`; raise CommandError if a host cannot."""
        check_choice("path", name, PATHS)
        everywhere(lambda host: self._set(host, name), [host for host, _ in self._hosts])

    def _set(self, host: Host, name: str) -> None:
        lines = [
            f"    ip daddr {other.address} dnat to {private}"
            for other, private in self._hosts
            if name == PRIVATE and other.region != host.region
        ]
        load_rules(host, "path", lines="\n".join(lines))


def filled(name: str, **values: str) -> str:
    """Return the text of a file of this folder, with `values` in place of its variables, such as $when."""
    return Template(Path(__file__).with_name(name).read_text()).substitute(values)


def load_rules(host: Host, name: str, **values: str) -> None:
    """Copy the rules for `nft` in <name>.nft to a host, filled with `values`, and load them."""
    target = f"{host.scratch}/{name}.nft"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "rules")
        source.write_text(filled(f"{name}.nft", **values))
        host.put(source, target)
    host.run(["nft", "-f", target], timeout_s=30)
