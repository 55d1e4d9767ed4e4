"""
Make unnamed network namespaces, which exist as long as one process holds their files open.

Region number i (from 1) has the addresses 10.i.0.1, 10.i.0.2, ... and fd77:616e:62:i::1, fd77:616e:62:i::2, ... (i in
hexadecimal) on its loopback interface, and one device, `wan0`, that leads to all other regions.
"""

import ctypes
import fcntl
import os
import re
import struct
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from wanbench.errors import LabError, ParameterError

DEVICE = "wan0"
_COUNTERS = {"packets_received": 1, "packets_dropped_receiving": 3, "packets_sent": 9, "packets_dropped_sending": 11}

_SYSCTL = re.compile(r"net(\.[a-z0-9_-]+)+")
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)

# linux/if_tun.h
_TUNSETIFF, _TUNSETOFFLOAD, _TUNSETVNETLE = 0x400454CA, 0x400454D0, 0x400454DC
_IFF_TUN, _IFF_NO_PI, _IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
_TUN_F_CSUM, _TUN_F_TSO4, _TUN_F_TSO6 = 0x01, 0x02, 0x04


def address(region_number: int, host_number: int = 0) -> str:
    """
    Return the IPv4 address of host number `host_number`, counted from 0, in a region.

    >>> address(3)
    '10.3.0.1'
    """
    return f"10.{region_number}.0.{host_number + 1}"


IPV6_OFF = "net.ipv6.conf.all.disable_ipv6"  # the kernel refuses it if it has no IPv6
IPV6_PREFIX = "fd77:616e:62"  # a unique local prefix (RFC 4193, section 3.1); the region is the number of the subnet


def address_ipv6(region_number: int, host_number: int = 0) -> str:
    """
    Return the IPv6 address of host number `host_number`, counted from 0, in a region.

    >>> address_ipv6(17)
    'fd77:616e:62:11::1'
    """
    return f"{IPV6_PREFIX}:{region_number:x}::{host_number + 1:x}"


def make_namespace() -> int:
    """Make a network namespace, enter it, and return its file descriptor."""
    if _libc.unshare(_CLONE_NEWNET):
        raise LabError(f"a network namespace cannot be made: {os.strerror(ctypes.get_errno())}.")
    return this_namespace()


def this_namespace() -> int:
    """Return a new file descriptor of the network namespace that this process is in."""
    return os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def enter(namespace: int) -> None:
    """Move this process to the network namespace with this file descriptor."""
    if _libc.setns(namespace, _CLONE_NEWNET):
        raise LabError(f"a network namespace cannot be entered: {os.strerror(ctypes.get_errno())}.")


def open_device() -> int:
    """
    Make a TUN device in this namespace, with checksum and TCP segmentation offload, and return its file descriptor.
    Closing the descriptor removes the device.
    """
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    try:
        request = struct.pack("16sH22x", DEVICE.encode(), _IFF_TUN | _IFF_NO_PI | _IFF_VNET_HDR)
        fcntl.ioctl(device, _TUNSETIFF, request)
        fcntl.ioctl(device, _TUNSETVNETLE, struct.pack("i", 1))
        fcntl.ioctl(device, _TUNSETOFFLOAD, _TUN_F_CSUM | _TUN_F_TSO4 | _TUN_F_TSO6)
    except OSError:
        os.close(device)
        raise
    return device


def device_counts(listing: str) -> list[dict[str, str | int]]:
    """
    Parse the text of a namespace's /proc/net/dev into the kernel's counters of its devices.

    A TCP super-packet counts as one packet. `packets_dropped_sending` of `wan0` counts packets that the relay did not
    read in time. `packets_dropped_receiving` counts packets for which the kernel had no buffer, such as in the backlog
    of packets between the hosts of one region (net.core.netdev_max_backlog), or for which there was no receiver.
    """
    rows = []
    for line in listing.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        if name.strip() in ("lo", DEVICE):
            counted = [int(number) for number in numbers.split()]
            rows.append({"device": name.strip(), **{what: counted[at] for what, at in _COUNTERS.items()}})
    return rows


def set_sysctls(values: Mapping[str, str]) -> dict[str, str]:
    """Set sysctls in this namespace; return those that the kernel refused, with the reasons."""
    refused = {}
    for name, value in values.items():
        path = Path("/proc/sys", *name.split("."))
        try:
            path.write_text(f"{value}\n")
        except OSError as error:
            refused[name] = error.strerror or str(error)
    return refused


def checked_sysctls(values: Mapping[str, str]) -> dict[str, str]:
    """
    Return the sysctls with their values as text; raise ParameterError if a name does not begin with "net.".

    >>> checked_sysctls({"net.ipv4.tcp_sack": 0})
    {'net.ipv4.tcp_sack': '0'}
    """
    checked = {}
    for name, value in values.items():
        if not isinstance(name, str) or not _SYSCTL.fullmatch(name):
            raise ParameterError(f"sysctl {name!r}: its name must look like net.ipv4.tcp_sack.")
        if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).isprintable():
            raise ParameterError(f"sysctl {name}: its value is {value!r}; it must be one line of text.")
        checked[name] = str(value)
    return checked


def run_ip(commands: Iterable[str]) -> None:
    """Run `ip` once for several commands in this namespace; raise LabError, with the message of `ip`, if one fails."""
    text = "".join(f"{command}\n" for command in commands)
    done = subprocess.run(["ip", "-batch", "-"], input=text.encode(), capture_output=True, check=False)
    if done.returncode:
        raise LabError(f"ip failed with {done.stderr.decode(errors='replace').strip()!r} on {text!r}.")


def commands(region_number: int, hosts: int, *, congestion_control: str | None = None, ipv6: bool = True) -> list[str]:
    """
    Return the `ip` commands that set a region's addresses and its routes to all other regions.

    If `congestion_control` is given, the routes set it, because the kernel refused it as the namespace's default. A
    program that chooses its own congestion control (iperf3 -C) overrides the route.

    >>> for command in commands(2, hosts=1):
    ...     print(command)
    link set lo up
    addr add 10.2.0.1/32 dev lo
    addr add fd77:616e:62:2::1/128 dev lo nodad
    link set wan0 mtu 1500 txqueuelen 10000 up
    route add 10.0.0.0/8 dev wan0 src 10.2.0.1
    route add fd77:616e:62::/48 dev wan0 src fd77:616e:62:2::1
    """
    numbers, by = range(hosts), f" congctl {congestion_control}" if congestion_control else ""
    of_ipv6 = [f"addr add {address_ipv6(region_number, host)}/128 dev lo nodad" for host in numbers if ipv6]
    to_ipv6 = [f"route add {IPV6_PREFIX}::/48 dev {DEVICE} src {address_ipv6(region_number)}{by}"] if ipv6 else []
    return [
        "link set lo up",
        *(f"addr add {address(region_number, host)}/32 dev lo" for host in numbers),
        *of_ipv6,
        f"link set {DEVICE} mtu 1500 txqueuelen 10000 up",
        f"route add 10.0.0.0/8 dev {DEVICE} src {address(region_number)}{by}",
        *to_ipv6,
    ]
