"""What the hosts of a lab on AWS cost: with the prices of AWS's own list where it answers."""

from __future__ import annotations

from collections.abc import Sequence

from wanbench.measure.labs.rented import costs

from .clients import Aws
from .list_prices import list_prices


class Costs(costs.Costs):
    """See `wanbench.measure.labs.rented.costs`; `notes` says where the price list did not answer."""

    def __init__(self, aws: Aws, regions: Sequence[str], *, instance_type: str, **options):
        listed = list_prices(aws, [name.removeprefix("aws:") for name in regions], instance_type)
        notes = [] if listed else ["AWS's price list does not answer; these are prices of dated tables."]
        super().__init__(regions, instance_type=instance_type, listed=listed, notes=notes, **options)
