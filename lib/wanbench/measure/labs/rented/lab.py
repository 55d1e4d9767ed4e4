"""Define a lab whose hosts are rented from one cloud: how they are launched and deleted, and how long they live."""

import getpass
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event
from types import MappingProxyType
from typing import Any

from wanbench.checks import LATER, check_flag, check_name, check_number, refusal
from wanbench.errors import ParameterError
from wanbench.measure.labs.base import Host
from wanbench.measure.labs.rented.costs import SET_UP_S, Costs, Estimate, Meter, Price, Sent
from wanbench.measure.labs.ssh import Login, SshHost
from wanbench.measure.plan.plan import Plan
from wanbench.regions import cloud_title

from . import hosts as machines
from .hosts import PATHS, Instance, Order, Wanted
from .leases import Lease
from .resources import SETTLE_S, Resources, Tags, everywhere, take_down, tell
from .tenancy import Tenancy

MIN_TTL_S, MAX_TTL_S = 900, 86_400
# Default lifetime of hosts as a multiple of the plan's expected time; half an hour is added, for a slow start.
TTL_OVER_EXPECTED = 2.0


class RentedLab(Tenancy):
    """
    Hosts of one cloud, which are launched on entry and deleted on exit, even after an error.

    Three things end a host: this class, a timer on the host itself, and `wanbench sweep`. The subclass of a cloud
    defines the abstract methods and the class attributes.

    Parameters
    ----------
    regions : sequence of str
        Regions of the catalogue, all of the lab's cloud.
    links, seed
        Not used: the network is real.
    hosts_per_region : int
        Number of hosts in each region.
    sysctls : mapping, optional
        Kernel settings to apply on every host.
    instance_type : str
        The cloud's name for the type of all hosts.
    zones : {region: zone}, optional
        The zone of each region's hosts, such as {"aws:eu-west-1": "eu-west-1b"}; by default the first zone that has
        capacity.
    volume_gb : int, optional
        Size of a volume on every host, mounted on /wanbench, for files of commands, such as brokers' logs. By default
        there is no volume.
    operator_address : str, optional
        The address, or a small network (such as 192.0.2.0/28), that may log in; by default the value of the environment
        variable WANBENCH_OPERATOR_ADDRESS, which keeps it out of manifests.
    owner : str, optional
        Tag of all resources: whom to ask about them. By default the user's name on this machine.
    ttl_s : int, optional
        Time after which the hosts end themselves; by default it follows from the plan.
    budget_usd : float, optional
        Maximum cost of the run, from opening to closing the lab, at the highest prices. A run that would exceed it is
        refused or stopped.
    price_overrides : {item: price}, optional
        Prices that replace those of the cloud's price list and of the tables in the package; see
        `wanbench.measure.labs.rented.costs.prices`.
    packages : sequence of str, optional
        Packages to install on the hosts; by default those of the class.
    subnets : {region: id}, optional
        Existing subnets, one for each region, that a VPN or a private link joins. Trials can then choose between two
        paths; see `Paths`.
    private_addresses : bool
        Whether to measure between the hosts' private addresses, for regions that a VPN or a private link joins.
    yes : bool
        Whether to agree to the cost without being asked.
    client : optional
        The client of the cloud's API; by default a new one of `client_class`.

    Attributes
    ----------
    survey(client, wanted, alongside)
        Defined by the subclass. Returns a site for each item of `wanted`, which says where its hosts can be launched,
        and notes on what is not known. It makes nothing. A LabError names every region that is disabled, every type
        that a region or zone lacks, and every quota that is too small.
    kind, user, packages, takes_subnets, python, volume_device, files
        Defined by the subclass: the cloud's name in regions; the user that logs in to the hosts, and may use sudo; the
        packages for measuring paths, address translation, monitoring and Kafka; whether hosts can be in existing
        subnets; the distribution's Python, the device of a volume, and the files to write at first boot (see
        `user_data`).
    sends_to : str
        Assumed destination of all bytes that hosts send, because bytes are not counted by target: the same cloud.
    is_charged : bool
        Whether this lab pays for the bytes that a plan sends; false if another lab that is combined with it does.
    wanted : dict
        The hosts that each region (of the catalogue) must have.
    alongside : list
        The hosts of the labs that are combined with this one.

    Raises
    ------
    ParameterError
        If a parameter is not as described; see also `Tenancy`.
    """

    user: str
    packages: tuple[str, ...] = ()
    takes_subnets = False
    python = "python3"
    volume_device: str
    files: Mapping[str, str] = MappingProxyType({})
    survey: Callable[..., tuple[list[Any], list[str]]]
    client_class: Callable[[], Any]
    resources_class: Callable[[Any], Resources]

    def __init__(
        self,
        regions: Sequence[str],
        links: object = None,
        *,
        hosts_per_region: int = 1,
        sysctls: Mapping[str, str] | None = None,
        seed: int = 0,
        instance_type: str,
        zones: Mapping[str, str] | None = None,
        volume_gb: int | None = None,
        operator_address: str | None = None,
        owner: str | None = None,
        ttl_s: int | None = None,
        budget_usd: float | None = None,
        price_overrides: Mapping[str, Price] | None = None,
        packages: Sequence[str] | None = None,
        subnets: Mapping[str, str] | None = None,
        private_addresses: bool = False,
        yes: bool = False,
        settle_s: float = SETTLE_S,
        connect: Callable[..., Host] | None = None,
        client: Any = None,
    ):
        self.title = cloud_title(self.kind)
        if other := [name for name in regions if not name.startswith(f"{self.kind}:")]:
            message = f"A lab on {self.title} cannot have hosts in {', '.join(other)}; allowed: regions of {self.kind}."
            raise ParameterError(message)
        zones, subnets = dict(zones or {}), dict(subnets or {})
        if strange := set(zones) - set(regions):
            raise refusal("zones", sorted(strange), f"zones of {', '.join(regions)}")
        if subnets and (set(subnets) != set(regions) or not self.takes_subnets or private_addresses):
            allowed = "one for each region, without private_addresses" if self.takes_subnets else "none on this cloud"
            raise refusal(f"subnets of the lab on {self.title}", subnets, allowed)
        self.path_names = PATHS if subnets else ()
        count = check_number("hosts_per_region", hosts_per_region, 1, 50, whole=True)
        volume_gb = check_number("volume_gb", volume_gb, 1, 16_384, whole=True, optional=True)
        self.instance_type = check_name("instance_type", instance_type)
        self.has_volume = volume_gb is not None
        self.wanted = {
            name: Wanted(name.partition(":")[2], instance_type, count, zones.get(name), volume_gb, subnets.get(name))
            for name in regions
        }
        self.sends_to = regions[0] if private_addresses and len(regions) == 1 else f"{self.kind}:"
        self.sysctls = dict(sysctls or {})
        self.operator = machines.operator(operator_address)
        self.owner = check_name("owner", owner or getpass.getuser())
        self.ttl_s: Any = check_number("ttl_s", ttl_s, MIN_TTL_S, MAX_TTL_S, whole=True, optional=True)
        self.price_overrides = dict(price_overrides or {})
        if packages is not None:
            self.packages = tuple(check_name("packages", name) for name in packages)
        self.private_addresses = check_flag("private_addresses", private_addresses)
        settings = {"instance_type": instance_type, "zones": zones, "volume_gb": volume_gb}
        settings |= {"private_addresses": private_addresses} | ({"subnets": subnets} if subnets else {})
        super().__init__([self], self.kind, settings, budget_usd, yes)
        self.is_charged, self.instances, self.alongside = True, {}, []
        self.number_from(0)
        self._settle_s, self._connect, self.client = settle_s, connect or SshHost, client or self.client_class()
        self.sites = self._lease = self.order = self._meter = LATER
        self._leaving = Event()

    @abstractmethod
    def launch(self, site: Any, order: Order) -> list[Instance]:
        """
        Launch a region's hosts, which admit only the operator's SSH, and return them once they are running.

        Called for all regions concurrently, in threads. Every resource must be created with the order's tags, in the
        same call, not tagged afterwards. Raise LabError if the hosts cannot be launched; the caller then deletes
        everything that carries the tags.
        """

    @abstractmethod
    def let_in(self, order: Order, addresses: Sequence[str]) -> None:
        """Make all hosts admit every protocol from these addresses, which are those of the lab's hosts."""

    def prepare(self, order: Order) -> None:
        """Make the resources that all regions share, such as a network; called before any `launch`."""

    def costs(self, **wanted: Any) -> Costs:
        """
        Return the costs of the wanted hosts, from the cloud's own price list if it has one. The arguments are those of
        `Costs`.
        """
        return Costs(**wanted)

    def estimate(self, plan: Plan | None, campaign: str) -> tuple[Estimate, list[str]]:
        self.sites, notes = self.survey(self.client, list(self.wanted.values()), self.alongside)
        self._campaign = campaign
        needed_s = 0.0 if plan is None else plan.expected_s() + SET_UP_S
        if plan is not None and self.ttl_s is None:
            self.ttl_s = int(min(max(TTL_OVER_EXPECTED * needed_s + 1800, MIN_TTL_S), MAX_TTL_S))
        self.ttl_s = self.ttl_s or 3600
        if needed_s > self.ttl_s:
            allowed = f"at least the {needed_s:.0f} s that the plan takes, at most {MAX_TTL_S}"
            raise refusal("ttl_s, after which hosts end themselves,", self.ttl_s, allowed)
        one = next(iter(self.wanted.values()))
        wanted = {"instance_type": one.instance_type, "hosts_per_region": one.count, "volume_gb": one.volume_gb}
        self._costs = self.costs(regions=list(self.wanted), overrides=self.price_overrides, **wanted)
        if plan is None:
            expected = self._at_most = self._costs.of(None, self.ttl_s)
        else:
            sent = self._charged(plan.sent_bytes())
            expected = self._costs.of(sent, plan.expected_s(), set_up_s=SET_UP_S)
            self._at_most = self._costs.of(sent, self.ttl_s)
        ends = f"Hosts on {self.title} end themselves after {self.ttl_s / 3600:.1f} hours."
        return expected, [*notes, *self._costs.notes, ends]

    def cost_of(self, sent_bytes: Sent | None, measuring_s: float) -> Estimate:
        return self._costs.of(self._charged(sent_bytes), measuring_s)

    def _charged(self, sent_bytes: Sent | None) -> Sent | None:
        """
        Return the bytes that this lab pays for. Traffic between public addresses is paid for even within a region, so
        its target is given as outside the region.
        """
        if not self.is_charged or sent_bytes is None or self.private_addresses:
            return sent_bytes if self.is_charged else {}
        return {(a, b if a != b else f"{self.kind}:"): n for (a, b), n in sent_bytes.items()}

    def spent(self) -> Estimate:
        if self._meter is None:
            return self._costs.of({}, 0.0)
        return self._costs.of(self._meter.sent(self.all_hosts(), self.sends_to), self._meter.running_s())

    def at_most(self) -> Estimate:
        return replace(self._at_most, table=self._at_most.table.assign(low_usd=0.0))

    def prices(self) -> list[dict[str, Any]]:
        return self._costs.prices.query("cloud == @self.kind").to_dict("records")

    def rent(self) -> None:
        self._leaving, self._meter = Event(), Meter()
        self._lease = Lease(self.kind, self.resources_class(self.client).account())
        operator_key, operator_public = machines.key_pair()
        host_key, self._host_public = machines.key_pair()
        key_file = self._lease.folder / "operator"
        key_file.touch(mode=0o600)
        key_file.write_text(operator_key)
        expires_at = datetime.now(UTC) + timedelta(seconds=self.ttl_s)
        tags = Tags(self._lease.run, self._campaign, self.owner, expires_at)
        document = machines.user_data(
            expires_at=expires_at,
            host_key=host_key,
            host_key_public=self._host_public,
            packages=self.packages,
            python=self.python,
            volume_device=self.volume_device if self.has_volume else None,
            files=self.files,
        )
        self.order = Order(tags, operator_public, document)
        self.prepare(self.order)
        started = everywhere(lambda site: self.launch(site, self.order), self.sites)
        self.instances = dict(zip(self.wanted, started, strict=True))

    def addresses(self) -> list[str]:
        private = [each.private_address for each in self._launched()] if self.path_names else []
        return [self._address(each) for each in self._launched()] + private

    def reach(self) -> None:
        lines = [f"{instance.public_address} {self._host_public}\n" for instance in self._launched()]
        (self._lease.folder / "known_hosts").write_text("".join(lines))
        for name, instances in self.instances.items():
            numbered = enumerate(instances, self._first)
            self.own_hosts[name] = [self._host(name, number, instance) for number, instance in numbered]
        everywhere(self._prepare_host, self.pairs())

    def leave(self) -> None:
        """Stop waiting for hosts that are starting, because the user interrupted."""
        tell(f"wanbench: requests to {self.title} that have begun are completed, then everything is deleted.")
        self._leaving.set()
        everywhere(machines.close, self.all_hosts())

    def pairs(self) -> list[tuple[Host, Instance]]:
        return list(zip(self.all_hosts(), self._launched(), strict=True))

    def _launched(self) -> list[Instance]:
        return [instance for instances in self.instances.values() for instance in instances]

    def number_from(self, first: int) -> None:
        """Number the hosts of each region from `first`, because the hosts with smaller numbers belong to other labs."""
        self._first, self.own_hosts = first, machines.not_launched(self.wanted, first)

    def _host(self, region: str, number: int, instance: Instance) -> Host:
        keys = self._lease.folder
        login = Login(instance.public_address, self.user, keys / "operator", keys / "known_hosts")
        return self._connect(f"{region}/{number}", region, self._address(instance), login, sudo=True)

    def _address(self, instance: Instance) -> str:
        """Return the address used for measuring."""
        return instance.private_address if self.private_addresses else instance.public_address

    def _prepare_host(self, host_and_instance: tuple[Host, Instance]) -> None:
        """Wait until a host is ready, and assign its public address."""
        host, instance = host_and_instance
        machines.make_ready(host, sysctls=self.sysctls, has_volume=self.has_volume, leaving=self._leaving)
        if not self.private_addresses:
            machines.own_public_address(host, instance.private_address, instance.public_address)

    def give_back(self) -> list[str]:
        lease, self._lease = self._lease, LATER
        return [] if lease is None else lease.end(self._take_down)

    def _take_down(self, run: str) -> list[str]:
        everywhere(machines.close, self.all_hosts())
        self.own_hosts, self.instances = machines.not_launched(self.wanted, self._first), {}
        resources = self.resources_class(self.client)
        places = [resources.place] if resources.place else [hosts.region for hosts in self.wanted.values()]
        left = take_down(resources, places, run=run, settle_s=self._settle_s)
        self._meter.stop()
        return left

    def rented_as(self) -> dict[str, list[dict[str, Any]]]:
        return {
            name: [
                {"zone": instance.zone, "instance_type": self.instance_type, "image": site.image}
                for instance in self.instances[name]
            ]
            for name, site in zip(self.wanted, self.sites, strict=True)
        }
