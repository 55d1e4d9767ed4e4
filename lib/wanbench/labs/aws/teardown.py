"""What runs have made on AWS: listed, and deleted."""

from __future__ import annotations

from datetime import datetime

from ..rented.clock import clock_at
from ..rented.estate import POLL_S, SETTLE_S, TIMEOUT_S, Estate, Resource
from .clients import HOME, Aws, AwsError
from .preflight import enabled_regions
from .tags import RUN, tags_of

__all__ = ["POLL_S", "SETTLE_S", "TIMEOUT_S", "AwsEstate", "listed"]

INSTANCE, KEY_PAIR, GROUP, VOLUME = "instance", "key pair", "security group", "volume"


class AwsEstate(Estate):
    """See `Estate`."""

    cloud, title = "aws", "AWS"

    def __init__(self, aws: Aws | None = None):
        self._aws, self.timeout_s, self.poll_s = aws or Aws(), TIMEOUT_S, POLL_S

    def account(self) -> str:
        """See `Estate.account`."""
        return self._aws.account()

    def now(self) -> datetime | None:
        """See `Estate.now`."""
        return clock_at(self._aws.client("ec2", self._aws.home() or HOME).meta.endpoint_url)

    def regions(self) -> list[str]:
        """Those that are enabled."""
        return enabled_regions(self._aws, self._aws.home() or HOME)

    def listed(self, region: str, run: str | None = None) -> list[Resource]:
        """See `Estate.listed`."""
        return listed(self._aws, region, run)

    def delete(self, each: Resource) -> str | None:
        """See `Estate.delete`."""
        return _delete(self._aws, each)


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
            Resource(INSTANCE, each["InstanceId"], region, each["State"]["Name"], tags_of(each))
            for each in instances
            if each["State"]["Name"] != "terminated"
        ),
        *(Resource(VOLUME, each["VolumeId"], region, each["State"], tags_of(each)) for each in volumes),
        *(Resource(GROUP, each["GroupId"], region, tags=tags_of(each)) for each in groups),
        *(Resource(KEY_PAIR, each["KeyName"], region, tags=tags_of(each)) for each in keys),
    ]


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
