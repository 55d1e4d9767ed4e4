"""What runs have made on Amazon MSK: listed, and deleted."""

from __future__ import annotations

from ..rented.estate import Estate, Resource
from .clients import Aws, AwsError, session
from .preflight import enabled_regions
from .tags import RUN, tags_of
from .teardown import GROUP, HOME

CLUSTER = "MSK cluster"
PREFIX = "wanbench-msk-"
"""Prefix of the names of security groups."""
TIMEOUT_S = 3600.0
"""To be made, or deleted: either takes up to half an hour, and MSK deletes no cluster before it is made."""
POLL_S = 15.0


class MskEstate(Estate):
    """Clusters of MSK that runs have made, and their security groups; see `Estate`."""

    cloud, title = "msk", "Amazon MSK"

    def __init__(self, aws: Aws | None = None):
        self._aws, self.timeout_s, self.poll_s = aws or Aws(), TIMEOUT_S, POLL_S

    def regions(self) -> list[str]:
        """Those that are enabled, and have MSK."""
        there = session().get_available_regions("kafka")
        return [each for each in enabled_regions(self._aws, self._aws.home() or HOME) if each in there]

    def listed(self, region: str, run: str | None = None) -> list[Resource]:
        """See `Estate.listed`."""
        filters = [
            {"Name": "tag-key", "Values": [RUN]},
            {"Name": "group-name", "Values": [f"{PREFIX}{run or '*'}"]},
        ]
        groups = self._aws.pages("ec2", region, "describe_security_groups", "SecurityGroups", Filters=filters)
        return [
            *(
                Resource(CLUSTER, each["ClusterName"], region, each["State"], each["Tags"])
                for each in clusters(self._aws, region)
                if (made_by := each.get("Tags", {}).get(RUN)) and run in (None, made_by)
            ),
            *(Resource(GROUP, each["GroupId"], region, tags=tags_of(each)) for each in groups),
        ]

    def delete(self, each: Resource) -> str | None:
        """See `Estate.delete`."""
        try:
            if each.kind == GROUP:
                self._aws.call("ec2", each.region, "delete_security_group", GroupId=each.id)
            elif each.state != "DELETING":
                for found in clusters(self._aws, each.region, each.id):
                    self._aws.call("kafka", each.region, "delete_cluster", ClusterArn=found["ClusterArn"])
        except AwsError as error:
            return None if error.code in ("NotFoundException", "InvalidGroup.NotFound") else str(error)
        return None


def not_listed(aws: Aws) -> str | None:
    """Why these credentials may not list clusters; None if they may."""
    try:
        clusters(aws, aws.home() or HOME)
    except AwsError as error:
        return "kafka:ListClustersV2 is not allowed" if error.code.startswith("AccessDenied") else None
    return None


def clusters(aws: Aws, region: str, name: str | None = None) -> list[dict]:
    """All clusters of the account, or the one of this name. Their ARNs hold the account: they go nowhere else."""
    given = {} if name is None else {"ClusterNameFilter": name}  # which finds names that begin so
    found = aws.pages("kafka", region, "list_clusters_v2", "ClusterInfoList", **given)
    return [each for each in found if name in (None, each["ClusterName"])]
