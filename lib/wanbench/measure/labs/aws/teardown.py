"""List and delete the resources that runs have made on AWS: hosts, clusters of MSK, and what belongs to them."""

from datetime import datetime
from typing import Any

from wanbench.measure.labs.rented import leases
from wanbench.measure.labs.rented import sweep as sweep_cloud
from wanbench.measure.labs.rented.client import CloudError, clock_at
from wanbench.measure.labs.rented.resources import RUN, Resource, Resources

from .clients import Aws, session
from .preflight import enabled_regions

INSTANCE, KEY_PAIR, GROUP, VOLUME = "instance", "key pair", "security group", "volume"
CLUSTER = "MSK cluster"
MSK_PREFIX = "wanbench-msk-"  # Prefix of the names of MSK's security groups.


class AwsResources(Resources):
    """Instances, volumes, key pairs and security groups; see `Resources`."""

    cloud, title, client_class = "aws", "AWS", Aws

    def account(self) -> str:
        return self.client.account()

    def now(self) -> datetime | None:
        return clock_at(self.client.client("ec2", self.client.home()).meta.endpoint_url)

    def regions(self) -> list[str]:
        return enabled_regions(self.client, self.client.home())

    def listed(self, region: str, run: str | None = None) -> list[Resource]:
        aws = self.client
        named = {"Name": "tag-key", "Values": [RUN]} if run is None else {"Name": f"tag:{RUN}", "Values": [run]}
        reservations = aws.pages("ec2", region, "describe_instances", "Reservations", Filters=[named])
        volumes = aws.pages("ec2", region, "describe_volumes", "Volumes", Filters=[named])
        groups = aws.pages("ec2", region, "describe_security_groups", "SecurityGroups", Filters=[named])
        keys = aws.call("ec2", region, "describe_key_pairs", Filters=[named])["KeyPairs"]
        hosts = [host for reservation in reservations for host in reservation["Instances"]]
        there = [
            *((INSTANCE, host["InstanceId"], host["State"]["Name"], host) for host in hosts),
            *((VOLUME, volume["VolumeId"], volume["State"], volume) for volume in volumes),
            *((GROUP, group["GroupId"], "", group) for group in groups),
            *((KEY_PAIR, key["KeyName"], "", key) for key in keys),
        ]
        listed = [Resource(kind, id_, region, state, _tags_of(of)) for kind, id_, state, of in there]
        return [resource for resource in listed if resource.run and resource.state != "terminated"]

    def ask_to_delete(self, resource: Resource) -> None:
        aws, region = self.client, resource.region
        if resource.kind == INSTANCE and resource.state != "shutting-down":
            aws.call("ec2", region, "terminate_instances", InstanceIds=[resource.id])
        elif resource.kind == KEY_PAIR:
            aws.call("ec2", region, "delete_key_pair", KeyName=resource.id)
        elif resource.kind == GROUP:
            aws.call("ec2", region, "delete_security_group", GroupId=resource.id)
        elif resource.kind == VOLUME and resource.state == "available":
            aws.call("ec2", region, "delete_volume", VolumeId=resource.id)


class MskResources(AwsResources):
    """Clusters of MSK that runs have made, and their security groups; see `Resources`."""

    cloud, title = "msk", "Amazon MSK"
    # Making and deleting a cluster each take up to half an hour, and MSK deletes no cluster that is still being made.
    timeout_s, poll_s = 3600.0, 15.0

    def regions(self) -> list[str]:
        there = session().get_available_regions("kafka")
        return [region for region in super().regions() if region in there]

    def listed(self, region: str, run: str | None = None) -> list[Resource]:
        named = [{"Name": "tag-key", "Values": [RUN]}, {"Name": "group-name", "Values": [f"{MSK_PREFIX}{run or '*'}"]}]
        groups = self.client.pages("ec2", region, "describe_security_groups", "SecurityGroups", Filters=named)
        clusters = [(at["ClusterName"], region, at["State"], at.get("Tags", {})) for at in self.clusters(region)]
        listed = [Resource(CLUSTER, *about) for about in clusters]
        listed += [Resource(GROUP, group["GroupId"], region, tags=_tags_of(group)) for group in groups]
        return [resource for resource in listed if resource.run and run in (None, resource.run)]

    def ask_to_delete(self, resource: Resource) -> None:
        if resource.kind != CLUSTER:
            super().ask_to_delete(resource)
        elif resource.state != "DELETING":
            for cluster in self.clusters(resource.region, resource.id):
                self.client.call("kafka", resource.region, "delete_cluster", ClusterArn=cluster["ClusterArn"])

    def clusters(self, region: str, name: str | None = None) -> list[dict[str, Any]]:
        """
        Return all clusters of the account, or the one of this name. Their ARNs are secret: they contain the account
        number.
        """
        given = {} if name is None else {"ClusterNameFilter": name}  # matches all names that begin with it
        clusters = self.client.pages("kafka", region, "list_clusters_v2", "ClusterInfoList", **given)
        return [cluster for cluster in clusters if name in (None, cluster["ClusterName"])]


def sweep(*, client: Aws | None = None, **options: Any) -> int:
    """
    Delete what runs left on AWS (see `wanbench.measure.labs.rented.sweep`): MSK clusters first, because they use
    security groups.
    """
    client = client or Aws()
    return max(_sweep_msk(client, options), sweep_cloud(AwsResources(client), **options))


def _sweep_msk(aws: Aws, options: dict[str, Any]) -> int:
    resources = MskResources(aws)
    try:
        resources.clusters(aws.home())
    except CloudError as error:
        if error.code.startswith("AccessDenied"):
            ended = len(leases.free_leases(resources.cloud))
            and_left = f"; {ended} runs that ended on this machine may have left a cluster" if ended else ""
            print(f"{resources.title}: not checked, because kafka:ListClustersV2 is not allowed{and_left}.")
            return 1 if ended else 0
    return sweep_cloud(resources, **options)


def unusable() -> str | None:
    """Return why the account cannot be used from here; None if it can."""
    return None if session().get_credentials() else "boto3 finds no credentials"


def _tags_of(description: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in description.get("Tags", [])}
