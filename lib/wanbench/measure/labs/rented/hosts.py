"""What is asked of a cloud, and what it gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .tags import Tags


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


class Site(Protocol):
    """Where the hosts of a region can be launched, and from which image; a cloud adds what else its launch needs."""

    wanted: Wanted
    image: str


@dataclass(frozen=True)
class Order:
    """
    What is the same for all hosts of a run.

    Attributes
    ----------
    tags : Tags
        For everything that is made.
    public_key : str
        The operator's, in OpenSSH's format.
    first_start : str
        The cloud-config document; see `user_data`.
    """

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
