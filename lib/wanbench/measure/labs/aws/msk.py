"""Make a Kafka cluster of Amazon MSK for one measurement, once the user agrees to the cost, and always delete it."""

from __future__ import annotations

import getpass
import ipaddress
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from wanbench.checks import check_flag, check_name, check_number, refusal
from wanbench.errors import LabError
from wanbench.measure.labs.rented.costs import HOURS_PER_MONTH, Costs, Price, agree
from wanbench.measure.labs.rented.leases import Lease
from wanbench.measure.labs.rented.resources import SETTLE_S, Tags, take_down, tell, uninterrupted

from .clients import Aws, without_identities
from .cloudwatch import Watched
from .lab import allow, make_group, unless_there
from .preflight import default_subnets
from .teardown import MSK_PREFIX, MskResources

TLS_PORT = 9094
VOLUME = "MSK volume"
NOTES = (
    "The hosts are MSK brokers, paid for until the latest time of their deletion; clients' traffic costs extra.",
    "If this process is killed, the cluster remains until `wanbench sweep aws`.",
)


@dataclass(eq=False)
class MskCluster:
    """
    A cluster in the default VPC of a region. It is made on entry and deleted on exit, even after an error.

    Clients use TLS without authentication: everybody in `client_networks` may read and write. The brokers have no
    public addresses, so hosts must be in the VPC, or reach it by a VPN or a private link.

    `client_networks` are private IPv4 networks of at most 65,536 addresses, in CIDR form. `brokers` is the number of
    brokers, which are spread over three zones, or two if the region has only two; each has a volume of `volume_gb`.
    After `ttl_s` the cluster is deleted even if it is in use; if this process was killed, `wanbench sweep aws` deletes
    the cluster. The user must agree to the cost for `ttl_s`, as for `RentedLab`.

    After entering, `external` has the parameters of `wanbench.measure.kafka.ExternalCluster`, for the parameter
    `external` of `campaign.run`. `settings` are for a manifest, so they have no address and no ARN.

    Raises
    ------
    ParameterError
        If a parameter is not as described.
    BudgetError
        On entry, if the user does not agree to the cost.
    LabError
        On entry, if the cluster cannot be made. On exit, if resources remain; the message lists them.
    """

    region: str
    _: KW_ONLY
    client_networks: Sequence[str]
    instance_type: str = "kafka.t3.small"
    brokers: int = 3
    volume_gb: int = 20
    kafka_version: str = "3.9.x"
    campaign: str = "by-hand"
    ttl_s: int = 3 * 3600
    budget_usd: float | None = None
    price_overrides: Mapping[str, Price] | None = None
    yes: bool = False
    aws: Aws | None = None

    def __post_init__(self):
        if not check_name("region", self.region).startswith("aws:"):
            raise refusal("region", self.region, "a region of aws, such as 'aws:eu-west-1'")
        self.client_networks = [_network(each) for each in self.client_networks or [""]]
        for name in ("instance_type", "kafka_version", "campaign"):
            check_name(name, getattr(self, name))
        for name, low, high in (("brokers", 2, 30), ("volume_gb", 1, 16_384), ("ttl_s", 3600, 86_400)):
            check_number(name, getattr(self, name), low, high, whole=True)
        check_number("budget_usd", self.budget_usd, 0, optional=True)
        check_flag("yes", self.yes)
        brokers = {"instance_type": self.instance_type, "hosts_per_region": self.brokers}
        hourly = {VOLUME: self.volume_gb / HOURS_PER_MONTH}
        self._costs = Costs([self.region], **brokers, overrides=self.price_overrides or {}, per_host_hour=hourly)
        kept = ("region", "instance_type", "brokers", "volume_gb", "kafka_version")
        self.settings = {"kind": "msk"} | {name: getattr(self, name) for name in kept}
        self._code, self._aws = self.region.removeprefix("aws:"), self.aws or Aws()
        self._lease, self.name, self.external = None, "", {}

    def watched(self, name: str = "msk") -> Watched:
        """Return the cluster as a resource of which `labs.aws.cloudwatch.CloudWatch` fetches the brokers' metrics."""
        return Watched("msk", self._code, self.name, name, brokers=self.brokers)

    def __enter__(self) -> MskCluster:
        if self._lease is not None:
            raise LabError("the MSK cluster is open already.")
        subnets = self._subnets()
        agree(self._costs.of({}, self.ttl_s), budget_usd=self.budget_usd, yes=self.yes, notes=NOTES)
        self._lease = Lease(MskResources.cloud, self._aws.account())
        self._expiry = threading.Timer(self.ttl_s, self._take_down, [self._lease.run])
        self._expiry.daemon = True
        try:
            self._expiry.start()
            self._make(self._lease.run, subnets)
            arn = self._arn_once_active()
            brokers = self._aws.call("kafka", self._code, "get_bootstrap_brokers", ClusterArn=arn)
            self.external = {"bootstrap": brokers["BootstrapBrokerStringTls"], "protocol": "SSL"}
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        lease, self._lease, self.external = self._lease, None, {}
        if lease is None:
            return
        self._expiry.cancel()
        if left := uninterrupted(lambda: lease.end(self._take_down), MskResources.title):
            raise LabError(f"REMAINS on AWS: {'; '.join(left)}. `wanbench sweep aws` tries again to delete this.")

    def _make(self, run: str, subnets: Sequence[Mapping[str, Any]]) -> None:
        """Make the security group, which admits the clients, and request the cluster."""
        self.name, expires_at = f"wanbench-{run}", datetime.now(UTC) + timedelta(seconds=self.ttl_s)
        tags = Tags(run, self.campaign, getpass.getuser(), expires_at)
        vpc, what = subnets[0]["VpcId"], "Brokers of one wanbench run"
        group = make_group(self._aws, self._code, f"{MSK_PREFIX}{run}", what, vpc, tags)
        ranges = [{"CidrIp": network, "Description": "clients"} for network in self.client_networks]
        rule = {"IpProtocol": "tcp", "FromPort": TLS_PORT, "ToPort": TLS_PORT, "IpRanges": ranges}
        allow(self._aws, self._code, group, rule)
        nodes = {"ClientSubnets": [subnet["SubnetId"] for subnet in subnets], "SecurityGroups": [group]}
        storage = {"EbsStorageInfo": {"VolumeSize": self.volume_gb}}
        nodes |= {"InstanceType": self.instance_type, "StorageInfo": storage}
        wish = {
            "KafkaVersion": self.kafka_version,
            "NumberOfBrokerNodes": self.brokers,
            "BrokerNodeGroupInfo": nodes,
            "ClientAuthentication": {"Unauthenticated": {"Enabled": True}},
            "EncryptionInfo": {"EncryptionInTransit": {"ClientBroker": "TLS", "InCluster": True}},
        }
        made = {"ClusterName": self.name, "Tags": tags.values(), "Provisioned": wish}
        # The name is unique to this run: if it exists, the answer to the first request was lost.
        there = "ConflictException"
        unless_there(there, lambda: self._aws.call("kafka", self._code, "create_cluster_v2", **made))

    def _arn_once_active(self) -> str:
        """
        Wait until the cluster is active, and return its ARN, which must stay secret because it contains the account
        number.
        """
        deadline = time.monotonic() + MskResources.timeout_s
        while True:
            listed = MskResources(self._aws).clusters(self._code, self.name)
            state = listed[0]["State"] if listed else "not listed yet"
            if state == "ACTIVE":
                return listed[0]["ClusterArn"]
            if state in ("FAILED", "DELETING") or time.monotonic() > deadline:
                message = listed[0].get("StateInfo", {}).get("Message", "") if listed else ""
                why = without_identities(message) or f"no reason is given; the limit is {MskResources.timeout_s:g} s"
                raise LabError(f"The MSK cluster in {self.region} is {state}: {why}")
            time.sleep(MskResources.poll_s)

    def _take_down(self, run: str) -> list[str]:
        """Delete the cluster and its security group, and return what remains."""
        tell("wanbench: the MSK cluster is being deleted; this takes up to half an hour.")
        return take_down(MskResources(self._aws), [self._code], run=run, settle_s=SETTLE_S)

    def _subnets(self) -> list[dict[str, Any]]:
        """
        Return default subnets of up to three zones; raise LabError if the brokers cannot be spread evenly over them.
        """
        by_zone = {each["AvailabilityZone"]: each for each in default_subnets(self._aws, self._code)}
        chosen = [by_zone[zone] for zone in sorted(by_zone)[:3]]
        if len(chosen) < 2 or self.brokers % len(chosen):
            zones = f"{len(chosen)} zones with default subnets in {self.region}"
            allowed = "a multiple of the number of zones, which is at least two. Nothing was made."
            raise LabError(f"{self.brokers} brokers cannot be spread evenly over {zones}; allowed: {allowed}")
        return chosen


def _network(text: str) -> str:
    with suppress(ValueError):
        network = ipaddress.IPv4Network(text)
        if network.is_private and network.prefixlen >= 16:
            return str(network)
    allowed = "private IPv4 networks of at most 65,536 addresses, such as 172.31.0.0/16"
    raise refusal("client_networks", text, allowed)
