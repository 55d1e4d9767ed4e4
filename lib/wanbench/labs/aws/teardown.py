"""Taking down: what carries a tag is listed, deleted, and listed again until nothing is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .clients import Aws, AwsError
from .preflight import everywhere
from .tags import RUN

TIMEOUT_S = 300.0
"""Instances take about a minute to end, and only then their security group can go."""
SETTLE_S = 5.0
"""
Listings of AWS lag behind; also, a launch that was under way when its driver died may appear late. So nothing counts as
gone before two listings this far apart are empty.
"""
POLL_S = 2.0

INSTANCE, KEY_PAIR, GROUP, VOLUME = "instance", "key pair", "security group", "volume"


@dataclass(frozen=True)
class Resource:
    """One thing that costs money or clutters an account; `region` is AWS's own name."""

    kind: str
    id: str
    region: str
    state: str = ""
    tags: dict = field(default_factory=dict, compare=False)

    @property
    def run(self) -> str:
        """The id of the run that made it."""
        return self.tags.get(RUN, "")

    def __str__(self) -> str:
        return f"{self.kind} {self.id} in {self.region}{f' ({self.state})' if self.state else ''}"


def listed(aws: Aws, region: str, run: str | None = None) -> list[Resource]:
    """Everything in a region that a run made; of all runs if None. AwsError if any kind cannot be listed."""
    name = {"Name": "tag-key", "Values": [RUN]} if run is None else {"Name": f"tag:{RUN}", "Values": [run]}
    reservations = aws.pages("ec2", region, "describe_instances", "Reservations", Filters=[name])
    instances = [instance for each in reservations for instance in each["Instances"]]
    volumes = aws.pages("ec2", region, "describe_volumes", "Volumes", Filters=[name])
    groups = aws.pages("ec2", region, "describe_security_groups", "SecurityGroups", Filters=[name])
    keys = aws.call("ec2", region, "describe_key_pairs", Filters=[name])["KeyPairs"]
    return [
        *(
            Resource(INSTANCE, each["InstanceId"], region, each["State"]["Name"], _tags(each))
            for each in instances
            if each["State"]["Name"] != "terminated"
        ),
        *(Resource(VOLUME, each["VolumeId"], region, each["State"], _tags(each)) for each in volumes),
        *(Resource(GROUP, each["GroupId"], region, tags=_tags(each)) for each in groups),
        *(Resource(KEY_PAIR, each["KeyName"], region, tags=_tags(each)) for each in keys),
    ]


def take_down(
    aws: Aws,
    regions: Sequence[str],
    which: Callable[[Resource], bool],
    *,
    run: str | None = None,
    timeout_s: float | None = None,
    settle_s: float = SETTLE_S,
) -> list[str]:
    """
    Delete everything in these regions that `which` picks, and see that it is gone.

    Parameters
    ----------
    which : callable
        Whether a resource is to go.
    run : str, optional
        Only what this run made is looked at.
    timeout_s : float
        For each region; regions are worked on side by side. By default `TIMEOUT_S`.

    Returns
    -------
    list of str
        What remains, and the regions that could not be listed: what is not known is not gone. Empty if all is well.
    """

    timeout_s = TIMEOUT_S if timeout_s is None else timeout_s

    def work(region):
        try:
            return _take_down_in(aws, region, which, run, timeout_s, settle_s)
        except AwsError as error:
            return [f"unknown in {region}: {error}"]

    return [text for found in everywhere(work, list(regions)) for text in found]


def _take_down_in(aws, region, which, run, timeout_s, settle_s):
    deadline, empty_before = time.monotonic() + timeout_s, False
    while True:
        try:
            found = [each for each in listed(aws, region, run) if which(each)]
        except AwsError:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_S)
            continue
        if not found and empty_before:
            return []
        empty_before = not found
        refusals = [refusal for each in found if (refusal := _delete(aws, each))]
        if found and time.monotonic() > deadline:
            return [str(each) for each in found] + refusals
        time.sleep(settle_s if not found else min(settle_s, POLL_S))


def _delete(aws: Aws, each: Resource) -> str | None:
    """Ask for the end of one resource; the refusal, which often only means "not yet"."""
    try:
        if each.kind == INSTANCE and each.state != "shutting-down":
            aws.call("ec2", each.region, "terminate_instances", InstanceIds=[each.id])
        elif each.kind == KEY_PAIR:
            aws.call("ec2", each.region, "delete_key_pair", KeyName=each.id)
        elif each.kind == GROUP:
            aws.call("ec2", each.region, "delete_security_group", GroupId=each.id)
        elif each.kind == VOLUME and each.state == "available":
            aws.call("ec2", each.region, "delete_volume", VolumeId=each.id)
    except AwsError as error:
        return None if error.code.endswith(".NotFound") else str(error)
    return None


def _tags(description: dict) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in description.get("Tags", [])}
