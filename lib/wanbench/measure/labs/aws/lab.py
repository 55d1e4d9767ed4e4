"""The lab of rented hosts on AWS."""

from __future__ import annotations

from collections.abc import Sequence

from wanbench.measure.labs.rented import Instance, Order, RentedLab, everywhere

from .clients import Aws
from .costs import Costs
from .launch import allow_hosts, launch, prepare_region, wait_until_running
from .preflight import Site, survey
from .teardown import AwsResources
from .user_data import user_data


class AwsLab(RentedLab):
    """
    Hosts on AWS; parameters and what else holds are those of `RentedLab`.

    Its images are of Amazon Linux 2023, its volumes gp3. Each region has a key pair and a security group of the run.
    """

    kind, title, user = "aws", "AWS", "ec2-user"
    packages = (
        "iperf3",
        "iputils",
        "nftables",
        "sysstat",
        "java-21-amazon-corretto-headless",
        "python3.11",
        "python3.11-pip",
    )
    python = "python3.11"
    takes_subnets = True

    def __init__(self, *arguments, aws: Aws | None = None, **options):
        super().__init__(*arguments, **options)
        self._aws, self._groups = aws or Aws(), {}

    def survey(self) -> tuple[list[Site], list[str]]:
        """See `RentedLab.survey`."""
        return survey(self._aws, list(self.wanted.values()), self.alongside)

    def resources(self) -> AwsResources:
        """See `RentedLab.resources`."""
        return AwsResources(self._aws)

    def costs(self, **wanted) -> Costs:
        """See `RentedLab.costs`."""
        return Costs(self._aws, **wanted)

    def first_start(self, **given) -> str:
        """See `RentedLab.first_start`."""
        return user_data(**given)

    def launch(self, site: Site, order: Order) -> list[Instance]:
        """See `RentedLab.launch`."""
        group = prepare_region(self._aws, site, order.tags, order.public_key, self.operator)
        self._groups[site.wanted.region] = group
        launch(self._aws, site, order.tags, group, order.first_start)
        return wait_until_running(self._aws, site, order.tags.run)

    def let_in(self, order: Order, addresses: Sequence[str]) -> None:
        """See `RentedLab.let_in`."""
        everywhere(lambda each: allow_hosts(self._aws, *each, addresses), list(self._groups.items()))
