"""A Kafka cluster of Amazon MSK for one measurement: agreed to, made with tags, always deleted, and swept up after."""

from __future__ import annotations

import getpass
import ipaddress
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from ...checks import check_flag, check_name, check_number, refusal
from ...errors import LabError
from ...plan import cost as costing
from ..base import Lab
from ..rented.costs import HOURS_PER_MONTH
from ..rented.estate import SETTLE_S, take_down, uninterrupted
from ..rented.leases import Lease
from ..spending import Estimate, agree
from .clients import Aws, without_identities
from .cloudwatch import Watched
from .launch import allow, unless_there
from .msk_estate import PREFIX, TIMEOUT_S, MskEstate, clusters
from .tags import Tags, specifications

TLS_PORT = 9094
POLL_S = 15.0
MIN_TTL_S, MAX_TTL_S = 3600, 86_400
VOLUME = "MSK volume"


class MskCluster:
    """
    A cluster in the default VPC of a region: made on entering, gone on leaving, whatever happened.

    Clients speak TLS without authentication, from `client_networks` only. No public address leads to the brokers: hosts
    must be in the VPC, or joined to it by a VPN or a private link.

    Parameters
    ----------
    region : str
        A region of the catalogue, such as "aws:eu-west-1".
    client_networks : sequence of str
        Private IPv4 networks of at most 65,536 addresses, in CIDR form.
    instance_type, brokers, volume_gb, kafka_version : str, int, int, str
        Brokers are spread over three zones, or two where there are no more; each has a volume.
    campaign : str
        A tag.
    ttl_s : int
        After this the cluster is deleted, in use or not; if the driver was killed, by `wanbench sweep aws`.
    budget_usd, price_overrides, yes : float, mapping, bool, optional
        As for `RentedLab`; the cost is that of `ttl_s`.

    Attributes
    ----------
    external : dict
        Once entered: the parameters of `wanbench.kafka.ExternalCluster`, for `external` of `campaign.carry_out`.
    settings : dict
        Settings that a manifest may hold: no address, no ARN.

    Raises
    ------
    ParameterError, BudgetError
        If a parameter is not as described; on entering, if what it costs is not agreed to.
    LabError
        On entering, if the cluster cannot be had. On leaving, if anything remains; it lists what.
    """

    def __init__(
        self,
        region: str,
        *,
        client_networks: Sequence[str],
        instance_type: str = "kafka.t3.small",
        brokers: int = 3,
        volume_gb: int = 20,
        kafka_version: str = "3.9.x",
        campaign: str = "by-hand",
        ttl_s: int = 3 * 3600,
        budget_usd: float | None = None,
        price_overrides: Mapping[str, float] | None = None,
        yes: bool = False,
        aws: Aws | None = None,
    ):
        if not check_name("region", region).startswith("aws:"):
            raise refusal("region", region, "a region of aws, such as 'aws:eu-west-1'")
        self.region, self._code = region, region.removeprefix("aws:")
        self._networks = [_network(each) for each in client_networks]
        if not self._networks:
            raise refusal("client_networks", client_networks, "one network or more")
        self.settings = {
            "kind": "msk",
            "region": region,
            "instance_type": check_name("instance_type", instance_type),
            "brokers": check_number("brokers", brokers, 2, 30, whole=True),
            "volume_gb": check_number("volume_gb", volume_gb, 1, 16_384, whole=True),
            "kafka_version": check_name("kafka_version", kafka_version),
        }
        self._tagged = check_name("campaign", campaign), getpass.getuser()
        self._ttl_s = check_number("ttl_s", ttl_s, MIN_TTL_S, MAX_TTL_S, whole=True)
        self._budget_usd = check_number("budget_usd", budget_usd, 0, optional=True)
        self._prices = costing.prices({"aws": dict(price_overrides or {})})
        self._yes, self._aws = check_flag("yes", yes), aws or Aws()
        self._lease = self._expiry = None
        self.name, self.external = "", {}

    def estimate(self) -> Estimate:
        """What it costs if it lives until it expires; traffic of clients comes on top."""
        of, volume = self.settings, {VOLUME: self.settings["volume_gb"] / HOURS_PER_MONTH}
        given = {"regions": [self.region], "instance_types": {"aws": of["instance_type"]}, "sent_bytes": {}}
        given |= {"hosts_per_region": of["brokers"], "per_host_hour": volume, "price_list": self._prices}
        table = costing.cost(measuring_s=self._ttl_s, set_up_s=0, **given)
        return Estimate(table, of["brokers"], self._ttl_s / 3600)

    def watched(self, name: str = "msk") -> Watched:
        """The brokers' metrics, for `labs.aws.cloudwatch.CloudWatch`."""
        return Watched("msk", self._code, self.name, name, brokers=self.settings["brokers"])

    def cluster(self, lab: Lab, name: str | None = None):
        """The cluster as a `wanbench.kafka.ExternalCluster` for the hosts of an open lab; not yet entered."""
        from ...kafka import ExternalCluster  # only here: the room kafka stands on this one

        return ExternalCluster(lab, **self.external, name=name)

    def __enter__(self) -> MskCluster:
        if self._lease is not None:
            raise LabError("the MSK cluster is there already.")
        subnets, vpc = self._subnets()
        notes = [
            "Hosts are MSK brokers, for the hours until they are deleted at the latest; clients' traffic comes on top.",
            "If this process is killed, the cluster goes on until `wanbench sweep aws`.",
        ]
        agree(self.estimate(), budget_usd=self._budget_usd, yes=self._yes, notes=notes)
        self._lease = Lease(MskEstate.cloud)
        try:
            self._open(subnets, vpc)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def _open(self, subnets, vpc):
        run, settings = self._lease.run, self.settings
        self.name = f"wanbench-{run}"
        tags = Tags(run, *self._tagged, datetime.now(UTC) + timedelta(seconds=self._ttl_s))
        self._expiry = threading.Timer(self._ttl_s, self._take_down, [run])
        self._expiry.daemon = True
        self._expiry.start()
        named = {"GroupName": f"{PREFIX}{run}", "Description": "Brokers of one wanbench run", "VpcId": vpc}
        named["TagSpecifications"] = specifications(tags, "security-group")
        group = self._aws.call("ec2", self._code, "create_security_group", **named)["GroupId"]
        ranges = [{"CidrIp": network, "Description": "clients"} for network in self._networks]
        rule = {"IpProtocol": "tcp", "FromPort": TLS_PORT, "ToPort": TLS_PORT, "IpRanges": ranges}
        allow(self._aws, self._code, group, rule)
        nodes = {
            "ClientSubnets": subnets,
            "SecurityGroups": [group],
            "InstanceType": settings["instance_type"],
        }
        nodes |= {"StorageInfo": {"EbsStorageInfo": {"VolumeSize": settings["volume_gb"]}}}
        provisioned = {"BrokerNodeGroupInfo": nodes, "NumberOfBrokerNodes": settings["brokers"]}
        provisioned |= {"KafkaVersion": settings["kafka_version"]}
        provisioned |= {"ClientAuthentication": {"Unauthenticated": {"Enabled": True}}}
        provisioned |= {"EncryptionInfo": {"EncryptionInTransit": {"ClientBroker": "TLS", "InCluster": True}}}
        short = {name: value[:256] for name, value in tags.values().items()}
        made = {"ClusterName": self.name, "Tags": short, "Provisioned": provisioned}
        # The name is this run's own: where it is there already, the answer to the first request was lost.
        unless_there(
            "ConflictException", lambda: self._aws.call("kafka", self._code, "create_cluster_v2", **made)
        )
        arn = self._wait_until_active()
        brokers = self._aws.call("kafka", self._code, "get_bootstrap_brokers", ClusterArn=arn)
        self.external = {"bootstrap": brokers["BootstrapBrokerStringTls"], "protocol": "SSL"}

    def _wait_until_active(self) -> str:
        """The cluster's ARN, which no one else is told, as it holds the account."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            found = clusters(self._aws, self._code, self.name)
            state = found[0]["State"] if found else "not listed yet"
            if state == "ACTIVE":
                return found[0]["ClusterArn"]
            if state in ("FAILED", "DELETING"):
                why = without_identities(found[0].get("StateInfo", {}).get("Message", "no reason given"))
                raise LabError(f"The MSK cluster in {self.region} is {state}: {why}")
            if time.monotonic() > deadline:
                raise LabError(f"The MSK cluster in {self.region} is {state} after {TIMEOUT_S:g} s.")
            time.sleep(POLL_S)

    def __exit__(self, *exception) -> None:
        lease, self._lease = self._lease, None
        if lease is None:
            return
        left = ["not known: deleting was cut short"]
        try:
            if self._expiry is not None:
                self._expiry.cancel()
            left = uninterrupted(lambda: self._take_down(lease.run), MskEstate.title)
        finally:
            self.external = {}
            lease.release(all_gone=not left)
        if left:
            raise LabError(f"REMAINS on AWS: {'; '.join(left)}. `wanbench sweep aws` tries again.")

    def _take_down(self, run: str) -> list[str]:
        """At the end of the block, or of `ttl_s`."""
        print("wanbench: the MSK cluster is being deleted; this takes up to half an hour.", file=sys.stderr)
        estate = MskEstate(self._aws)
        return take_down(estate, [self._code], lambda each: True, run=run, settle_s=SETTLE_S)

    def _subnets(self) -> tuple[list[str], str]:
        """A default subnet of each of up to three zones, and their VPC; LabError if brokers cannot be spread evenly."""
        default = [{"Name": "default-for-az", "Values": ["true"]}]
        found = self._aws.pages("ec2", self._code, "describe_subnets", "Subnets", Filters=default)
        chosen = sorted(found, key=lambda each: each["AvailabilityZone"])[:3]
        if len(chosen) < 2 or self.settings["brokers"] % len(chosen):
            raise LabError(
                f"{self.settings['brokers']} brokers cannot be spread over {len(chosen)} zones with default subnets in "
                f"{self.region}; allowed: at least two zones, and a multiple of them. Nothing was made."
            )
        return [each["SubnetId"] for each in chosen], chosen[0]["VpcId"]


def _network(text: str) -> str:
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError:
        network = None
    if network is None or not network.is_private or network.prefixlen < 16:
        raise refusal(
            "client_networks",
            text,
            "private IPv4 networks of at most 65,536 addresses, such as 172.31.0.0/16",
        )
    return str(network)
