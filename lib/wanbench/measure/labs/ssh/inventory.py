"""The inventory: a YAML file that lists hosts and how to log in to them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

from wanbench.checks import check_flag, check_name, check_number, refusal
from wanbench.errors import ParameterError
from wanbench.plain_yaml import read_yaml
from wanbench.regions import catalogue

from .connection import Login
from .host import PATIENCE_S, SshHost

_LOGIN = ("user", "key_file", "known_hosts_file", "port")
_HOST = ("name", "region", "latitude_deg", "longitude_deg", "control_address", "address", "address_ipv6", "paths")
_OTHER = ("jump", "proxy_command", "python", "sudo", "patience_s")
_DEFAULTS = {"port": 22, "python": "python3", "sudo": False, "patience_s": PATIENCE_S}
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]*")
_IPV4 = re.compile(r"(\d{1,3}\.){3}\d{1,3}")


@dataclass(frozen=True)
class Entry:
    """
    A host of the inventory, with the coordinates that the inventory gives for its region (None if it gives none), and
    its address on each path.
    """

    host: SshHost
    latitude_deg: float | None
    longitude_deg: float | None
    paths: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that a manifest records; they contain nothing about the login."""
        address = next(iter(self.paths.values()), self.host.address)
        place: dict[str, Any] = {"name": self.host.name, "region": self.host.region, "address": address}
        place |= {"paths": dict(self.paths)} if self.paths else {}
        place |= {"address_ipv6": self.host.address_ipv6} if self.host.address_ipv6 else {}
        if self.latitude_deg is not None:
            place |= {"latitude_deg": self.latitude_deg, "longitude_deg": self.longitude_deg}
        return place


@dataclass(frozen=True)
class Inventory:
    """Hosts in the order of the file; see `read_inventory`."""

    path: str
    entries: tuple[Entry, ...]

    @property
    def regions(self) -> tuple[str, ...]:
        """Return the regions that have a host, in the order of the file."""
        return tuple(dict.fromkeys(entry.host.region for entry in self.entries))

    def in_region(self, region: str, count: int | None) -> list[Entry]:
        """
        Return the first `count` hosts of a region, or all if `count` is None; raise ParameterError if there are fewer,
        or none.
        """
        there = [entry for entry in self.entries if entry.host.region == region]
        if len(there) < (count or 1):
            wanted = f"{count} hosts are" if count and count > 1 else "a host is"
            regions = f"regions of the inventory: {', '.join(self.regions)}"
            raise ParameterError(f"{self.path}: {wanted} needed in {region}, which has {len(there)}; {regions}.")
        return there[:count]


def read_inventory(path: str | Path) -> Inventory:
    """
    Read an inventory; docs/hosts.md has an example and explains each field.

    Raises
    ------
    ParameterError
        If the file is not YAML or a field is not allowed; the message names the file and the line, or the host and the
        field.
    """
    path = Path(path)
    data = _fields(read_yaml(path, "inventory"), f"{path}", ("hosts", "defaults", "jumps"))
    defaults = _fields(data.get("defaults") or {}, f"{path}, defaults", (*_LOGIN, *_OTHER))
    reader = _Reader(path, {**_DEFAULTS, **defaults})
    given = data.get("jumps") or {}
    jumps = {name: reader.jump(name, fields) for name, fields in _fields(given, f"{path}, jumps").items()}
    hosts = data.get("hosts")
    if not isinstance(hosts, list) or not hosts:
        raise refusal(f"{path}: hosts", hosts, "a list of hosts")
    entries = tuple(reader.entry(number, fields, jumps) for number, fields in enumerate(hosts, 1))
    for what in ("name", "address", "address_ipv6"):
        values = [getattr(entry.host, what) for entry in entries]
        if what == "address":
            values += [one for entry in entries for one in {*entry.paths.values()} - {entry.host.address}]
        if twice := [value for value in filter(None, values) if values.count(value) > 1]:
            raise ParameterError(f"{path}: two hosts have the {what} {twice[0]!r}; allowed: each once.")
    return Inventory(str(path), entries)


class _Reader:
    """Read the hosts and jumps of one inventory."""

    def __init__(self, path: Path, defaults: Mapping[str, Any]):
        self.path, self.defaults = path, defaults
        self.catalogued = set(catalogue()["name"])

    def jump(self, name: str, fields: object) -> Login:
        place = f"{self.path}, jump {name!r}"
        fields = _fields(fields, place, ("address", *_LOGIN))
        given = {"port": 22} | {key: self.defaults[key] for key in _LOGIN if key in self.defaults} | fields
        return self._login(place, given, "address")

    def entry(self, number: int, fields: object, jumps: Mapping[str, Login]) -> Entry:
        place = f"{self.path}, host {number}"
        fields = _fields(fields, place, (*_HOST, *_LOGIN, *_OTHER))
        name = check_name(f"{place}: name", fields.get("name"))
        place = f"{self.path}, host {name!r}"
        given = {**self.defaults, **fields}
        region = check_name(f"{place}: region", given.get("region"))
        latitude = check_number(f"{place}: latitude_deg", given.get("latitude_deg"), -90, 90, optional=True)
        longitude = check_number(f"{place}: longitude_deg", given.get("longitude_deg"), -180, 180, optional=True)
        if (latitude is None) != (longitude is None) or (latitude is None and region not in self.catalogued):
            or_neither = "or neither if the region is in the catalogue (wanbench.regions.catalogue())"
            raise ParameterError(f"{place}: region {region!r} needs both latitude_deg and longitude_deg, {or_neither}.")
        login = self._login(place, given, "control_address")
        paths = _fields(given.get("paths", {}), f"{place}: paths")
        if paths and "address" in given:
            raise ParameterError(f"{place} has both address and paths; allowed: one of them.")
        address = next(iter(paths.values()), given.get("address", login.address))
        for path, one in {"address": address, **paths}.items():
            if not _IPV4.fullmatch(str(one)):
                raise refusal(f"{place}: {path}", one, "an IPv4 address of the host itself")
        address_ipv6 = given.get("address_ipv6")
        if address_ipv6 is not None and not _is_ipv6(address_ipv6):
            raise refusal(f"{place}: address_ipv6", address_ipv6, "an IPv6 address of the host itself")
        jump, proxy = given.get("jump"), given.get("proxy_command")
        if jump is not None and jump not in jumps:
            raise refusal(f"{place}: jump", jump, f"one of the jumps: {', '.join(jumps) or 'there are none'}")
        if jump is not None and proxy:
            raise ParameterError(f"{place} has both jump and proxy_command; allowed: one of them.")
        login = replace(login, jump=jumps.get(jump or ""), proxy_command=_words(f"{place}: proxy_command", proxy))
        python = _word(f"{place}: python", given["python"])
        sudo = check_flag(f"{place}: sudo", given["sudo"])
        patience_s = check_number(f"{place}: patience_s", given["patience_s"], 2, 3600)
        more: dict[str, Any] = {"python": python, "sudo": sudo, "patience_s": patience_s, "address_ipv6": address_ipv6}
        host = SshHost(name, region, str(address), login, **more)
        return Entry(host, latitude, longitude, paths)

    def _login(self, place: str, given: Mapping[str, Any], name: str) -> Login:
        address = given.get(name)
        if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
            raise refusal(f"{place}: {name}", address, "a host name or an address")
        return Login(
            address,
            _word(f"{place}: user", given.get("user")),
            self._file(f"{place}: key_file", given.get("key_file"), private=True),
            self._file(f"{place}: known_hosts_file", given.get("known_hosts_file")),
            check_number(f"{place}: port", given["port"], 1, 65535, whole=True),
        )

    def _file(self, place: str, given: object, private: bool = False) -> Path:
        """
        Return the path of a file, given relative to the inventory; if `private`, refuse a file that anybody but its
        owner may read.
        """
        path = Path(self.path.parent, Path(check_name(place, given)).expanduser()).absolute()
        if '"' in str(path) or not path.is_file():
            raise refusal(place, str(path), "a file that exists; paths may be relative to the inventory's folder")
        if private and (mode := path.stat().st_mode & 0o077):
            raise ParameterError(
                f"{place} is {str(path)!r}, which other users may access (mode {mode | 0o600:o}); allowed: chmod 600."
            )
        return path


def _fields(given: object, place: str, allowed: Collection[str] | None = None) -> dict[str, Any]:
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        raise refusal(place, given, "fields with values")
    if allowed and (unknown := [name for name in given if name not in allowed]):
        raise ParameterError(f"{place}: no field is called {unknown[0]!r}; allowed: {', '.join(allowed)}.")
    return given


def _word(place: str, given: object) -> str:
    """Return the text if it is one word that no program takes for an option."""
    word = check_name(place, given)
    if word.startswith("-") or " " in word:
        raise refusal(place, word, "one word that does not begin with a dash")
    return word


def _is_ipv6(address: object) -> bool:
    try:
        return isinstance(address, str) and bool(IPv6Address(address))
    except ValueError:
        return False


def _words(place: str, given: object) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, list) or not given:
        raise refusal(place, given, "a list of words, the program first")
    for word in given:
        if "%" in check_name(place, word).replace("%h", "").replace("%p", ""):
            raise refusal(place, word, "percent signs only in %h and %p, which stand for address and port")
    return tuple(given)
