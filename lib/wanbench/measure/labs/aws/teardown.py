"""What runs have made on AWS: listed, and deleted."""

from __future__ import annotations

from datetime import datetime

from wanbench.measure.labs.rented.clock import clock_at
from wanbench.measure.labs.rented.resources import POLL_S, TIMEOUT_S, Resource, Resources

from .clients import HOME, Aws, AwsError
from .preflight import enabled_regions
from .tags import RUN, tags_of

INSTANCE, KEY_PAIR, GROUP, VOLUME = "instance", "key pair", "security group", "volume"


class AwsResources(Resources):
    """See `Resources`."""

    cloud, title = "aws", "AWS"

    def __init__(self, aws: Aws | None = None):
        self._aws, self.timeout_s, self.poll_s = aws or Aws(), TIMEOUT_S, POLL_S

    def account(self) -> str:
        """See `Resources.account`."""
        return self._aws.account()

    def now(self) -> datetime | None:
        """See `Resources.now`."""
        return clock_at(self._aws.client("ec2", self._aws.home() or HOME).meta.endpoint_url)

    def regions(self) -> list[str]:
        """Those that are enabled."""
        return enabled_regions(self._aws, self._aws.home() or HOME)

    def listed(self, region: str, run: str | None = None) -> list[Resource]:
        """See `Resources.listed`; AwsError if any kind cannot be listed."""
        name = {"Name": "tag-key", "Values": [RUN]} if run is None else {"Name": f"tag:{RUN}", "Values": [run]}
        reservations = self._aws.pages("ec2", region, "describe_instances", "Reservations", Filters=[name])
        instances = [instance for each in reservations for instance in each["Instances"]]
        volumes = self._aws.pages("ec2", region, "describe_volumes", "Volumes", Filters=[name])
        groups = self._aws.pages("ec2", region, "describe_security_groups", "SecurityGroups", Filters=[name])
        keys = self._aws.call("ec2", region, "describe_key_pairs", Filters=[name])["KeyPairs"]
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

    def delete(self, each: Resource) -> str | None:
        """See `Resources.delete`."""
        try:
            if each.kind == INSTANCE and each.state != "shutting-down":
                self._aws.call("ec2", each.region, "terminate_instances", InstanceIds=[each.id])
            elif each.kind == KEY_PAIR:
                self._aws.call("ec2", each.region, "delete_key_pair", KeyName=each.id)
            elif each.kind == GROUP:
                self._aws.call("ec2", each.region, "delete_security_group", GroupId=each.id)
            elif each.kind == VOLUME and each.state == "available":
                self._aws.call("ec2", each.region, "delete_volume", VolumeId=each.id)
        except AwsError as error:
            return None if error.code.endswith(".NotFound") else str(error)
        return None
