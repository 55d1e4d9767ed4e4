"""Hosts of a cloud: what is asked and given, their first start, and how they are made ready for measuring."""

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
from threading import Event
from typing import TypeVar

import yaml
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from wanbench.checks import check_choice, refusal
from wanbench.errors import LabError
from wanbench.measure.labs.base import Host
from wanbench.measure.labs.ssh import SshHost

from .client import CloudError
from .resources import Tags, everywhere, tell

START_TIMEOUT_S = 300.0  # Timeout for the cloud to have all hosts of a region run.
OPERATOR_VARIABLE = "WANBENCH_OPERATOR_ADDRESS"
_INSIDE = "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 0.0.0.0/8 127.0.0.0/8 169.254.0.0/16 224.0.0.0/3"
# Private, local and reserved networks: no login arrives from them, so rented hosts would wait for it in vain.
INSIDE = tuple(map(ipaddress.IPv4Network, _INSIDE.split()))
VOLUME_FOLDER = "/wanbench"
PYTHON_FOLDER = "/opt/wanbench"
# A Python besides the distribution's own, with the modules that Kafka's experiments import on a host.
HOST_PYTHON = f"{PYTHON_FOLDER}/bin/python"
MODULES = ("kafka-python", "confluent-kafka")

_SERVICE = """[Unit]
Description=End this host at the time that its lab was given
[Service]
Type=oneshot
ExecStart=/usr/sbin/shutdown -P now
"""
_TIMER = """[Unit]
Description=End this host at the time that its lab was given
[Timer]
OnCalendar={}
Persistent=true
AccuracySec=1s
[Install]
WantedBy=timers.target
"""
START_S = 600.0  # Timeout for a host to start and answer by SSH, and again for it to install its packages.
# For nft: the inverse of the cloud's translation. SSH, over which our commands arrive, is left alone.
OWN_ADDRESS_RULES = """table ip wanbench {{
  chain arriving {{
    type nat hook prerouting priority dstnat; policy accept;
    tcp dport 22 accept
    ip daddr {private} dnat to {public}
  }}
  chain leaving {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {public} oifname != "lo" snat to {private}
  }}
}}
"""
INTERNET, PRIVATE = "internet", "private"
PATHS = (INTERNET, PRIVATE)
# For nft; the first two lines remove the table of the previous path, whether or not there is one.
PATH_RULES = """table ip wanbench_path
delete table ip wanbench_path
table ip wanbench_path {{
  chain leaving {{
    type nat hook output priority -100; policy accept;
{lines}
  }}
}}
"""
Zone = TypeVar("Zone")


@dataclass(frozen=True)
class Wanted:
    """
    Hosts of one region (by the cloud's own name): how many, of which type; the zone, and the subnet that exists
    already, if only one will do.
    """

    region: str
    instance_type: str
    count: int = 1
    zone: str | None = None
    volume_gb: int | None = None
    subnet: str | None = None


@dataclass(frozen=True)
class Order:
    """What is the same for all hosts of a run; `first_start` is the cloud-config document, see `user_data`."""

    tags: Tags
    public_key: str
    first_start: str


@dataclass(frozen=True)
class Instance:
    """A host that runs; `region` is the cloud's own name."""

    id: str
    region: str
    zone: str
    public_address: str
    private_address: str


def in_first_zone(
    zones: Iterable[Zone], launch: Callable[[Zone], object], wanted: Wanted, no_capacity: Iterable[str]
) -> Zone:
    """Launch in the first zone that has all hosts, and return it; LabError with each zone's refusal if none has."""
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
    """Ask for the hosts that run until all do; LabError when time runs out."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while len(instances := running()) < wanted.count:
        if time.monotonic() > deadline:
            few = f"{len(instances)} of {wanted.count} hosts"
            raise LabError(f"{few} in {wanted.region} run after {START_TIMEOUT_S:g} s.")
        time.sleep(poll_s)
    return sorted(instances, key=lambda instance: instance.id)


def operator(address: str | None) -> str:
    """The operator's network in CIDR form, from an address or `OPERATOR_VARIABLE`; ParameterError if it is none."""
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
    """A new ed25519 key in OpenSSH's formats: private, public."""
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
    A cloud-config document for a distribution with cloud-init and systemd.

    The host powers off at `expires_at` even if nobody reaches it any more and even after a reboot. A relative shutdown
    runs alongside the timer from the first seconds on, in case a later step of the start hangs.

    `host_key` becomes the host's only one, ed25519 in OpenSSH's formats. `python`, the command of the distribution's
    Python of 3.11 or newer, makes `HOST_PYTHON`, which gets `MODULES` from PyPI in the versions that are installed
    here; where that fails, only Kafka cannot be run. `volume_device` is an empty volume, to be formatted and mounted on
    `VOLUME_FOLDER`. `files` ({path: content}) are written before other services start.
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
            {"path": f"{unit}.service", "content": _SERVICE},
            {"path": f"{unit}.timer", "content": _TIMER.format(when)},
            *({"path": path, "content": content} for path, content in (files or {}).items()),
        ],
        "runcmd": [
            [python, "-m", "venv", PYTHON_FOLDER],
            [HOST_PYTHON, "-m", "pip", "install", "--no-input", *(f"{name}=={version(name)}" for name in MODULES)],
            # The last command's status is that of the whole first start.
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
    Hosts by region, numbered from `first`, that have a name and no address yet.

    Clusters are placed on them, and refused, before anything is paid for.
    """
    return {
        region: [SshHost(f"{region}/{number}", region, "") for number in range(first, first + hosts.count)]
        for region, hosts in wanted.items()
    }


def make_ready(host: SshHost, *, sysctls: Mapping[str, str], has_volume: bool, leaving: Event) -> None:
    """
    Wait until a host answers and has finished its first start; set its sysctls, and find the Python made for Kafka.

    If it has a volume, its scratch folder is there, and so are the logs of brokers.

    LabError if it does not answer within `START_S`, or once `leaving` is set and the host closed.
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
        raise LabError(f"{host.name} is not made ready, as the lab is being left.")
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


def close(host: Host) -> None:
    """Close the connection to a host that is given back. What goes wrong is only printed: the host must go anyway."""
    try:
        host.close()
    except Exception as error:
        tell(f"wanbench: {host.name}: {error}")


def own_public_address(host: Host, private: str, public: str) -> None:
    """Give the host its public address, on the loopback interface. Needs ip and nft there, and the rights of root."""
    private, public = str(ipaddress.IPv4Address(private)), str(ipaddress.IPv4Address(public))
    host.run(["ip", "address", "replace", f"{public}/32", "dev", "lo"], timeout_s=30)
    load_rules(host, "own-address", OWN_ADDRESS_RULES.format(private=private, public=public))


class Paths:
    """
    The path on which `hosts` (each with its private address) reach each other's public addresses. New connections take
    the path that was selected last.

    On the private path, a host sends packets for the public address of a host in another region to that host's private
    address instead. Programs, and the addresses that brokers advertise, stay the same, so trials can alternate.
    """

    def __init__(self, hosts: Sequence[tuple[Host, str]]):
        self._hosts = list(hosts)

    def use(self, name: str) -> None:
        """Have all hosts use the path of this name, one of `PATHS`; CommandError if one cannot."""
        check_choice("path", name, PATHS)
        everywhere(lambda host: self._set(host, name), [host for host, _ in self._hosts])

    def _set(self, host, name):
        lines = [
            f"    ip daddr {other.address} dnat to {private}"
            for other, private in self._hosts
            if name == PRIVATE and other.region != host.region
        ]
        load_rules(host, "path", PATH_RULES.format(lines="\n".join(lines)))


def load_rules(host: Host, name: str, rules: str) -> None:
    """Put rules for nft on a host, and load them."""
    target = f"{host.scratch}/{name}.nft"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "rules")
        source.write_text(rules)
        host.put(source, target)
    host.run(["nft", "-f", target], timeout_s=30)
