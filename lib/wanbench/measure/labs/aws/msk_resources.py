"""What runs have made on Amazon MSK: listed, and deleted."""

from __future__ import annotations

from wanbench.measure.labs.rented.resources import Resource

from .clients import Aws, AwsError, session
from .tags import RUN, tags_of
from .teardown import GROUP, AwsResources

CLUSTER = "MSK cluster"
PREFIX = "wanbench-msk-"
"""Prefix of the names of security groups."""
TIMEOUT_S = 3600.0
"""To be made, or deleted: either takes up to half an hour, and MSK deletes no cluster before it is made."""
POLL_S = 15.0


class MskResources(AwsResources):
    """Clusters of MSK that runs have made, and their security groups; see `Resources`."""

    cloud, title = "msk", "Amazon MSK"

    def __init__(self, aws: Aws | None = None):
        super().__init__(aws)
        self.timeout_s, self.poll_s = TIMEOUT_S, POLL_S

    def regions(self) -> list[str]:
        """Those that are enabled, and have MSK."""
        there = session().get_available_regions("kafka")
        return [each for each in super().regions() if each in there]

    def listed(self, region: str, run: str | None = None) -> list[Resource]:
        """See `Resources.listed`."""
        named = [{"Name": "tag-key", "Values": [RUN]}]
        named.append({"Name": "group-name", "Values": [f"{PREFIX}{run or '*'}"]})
        groups = self._aws.pages("ec2", region, "describe_security_groups", "SecurityGroups", Filters=named)
        found = [
            Resource(CLUSTER, each["ClusterName"], region, each["State"], each.get("Tags", {}))
            for each in clusters(self._aws, region)
        ]
        found += [Resource(GROUP, each["GroupId"], region, tags=tags_of(each)) for each in groups]
        return [each for each in found if each.run and run in (None, each.run)]

    def delete(self, each: Resource) -> str | None:
        """See `Resources.delete`."""
        if each.kind != CLUSTER:
            return super().delete(each)
        try:
            for found in clusters(self._aws, each.region, each.id) if each.state != "DELETING" else ():
                self._aws.call("kafka", each.region, "delete_cluster", ClusterArn=found["ClusterArn"])
        except AwsError as error:
            return None if error.code == "NotFoundException" else str(error)
        return None


def clusters(aws: Aws, region: str, name: str | None = None) -> list[dict]:
    """All clusters of the account, or the one of this name. Their ARNs hold the account: they go nowhere else."""
    given = {} if name is None else {"ClusterNameFilter": name}  # which finds names that begin so
    found = aws.pages("kafka", region, "list_clusters_v2", "ClusterInfoList", **given)
    return [each for each in found if name in (None, each["ClusterName"])]
