"""Prices from AWS's own price list, where it answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from wanbench.measure.labs.rented.resources import everywhere
from wanbench.measure.plan.cost import BETWEEN_REGIONS

from .clients import Aws, AwsError

ASK = "us-east-1"
"""One of the few regions whose endpoint has the price list of all."""


def list_prices(aws: Aws, regions: Sequence[str], instance_type: str) -> dict[str, tuple[float, float]]:
    """
    Lowest and highest on-demand price over these regions (AWS's own names) by item, for `wanbench.measure.plan.prices`.

    Only items that the price list answers for all of the regions are in it; those of the dated tables stand for others.
    """

    def of(region):
        return _usd(
            aws,
            "AmazonEC2",
            regionCode=region,
            instanceType=instance_type,
            operatingSystem="Linux",
            tenancy="Shared",
            preInstalledSw="NA",
            capacitystatus="Used",
        ), _usd(aws, "AWSDataTransfer", fromRegionCode=region, transferType="InterRegion Outbound")

    try:
        hours, egress = zip(*everywhere(of, regions), strict=True)
    except AwsError:
        return {}
    found = {instance_type: hours, BETWEEN_REGIONS: egress}
    return {item: (min(map(min, usd)), max(map(max, usd))) for item, usd in found.items() if all(map(len, usd))}


def _usd(aws: Aws, service: str, **fields: str) -> list[float]:
    """Every positive price of the products with these fields."""
    filters = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in fields.items()]
    found = aws.pages("pricing", ASK, "get_products", "PriceList", ServiceCode=service, Filters=filters)
    return [usd for product in found for usd in _on_demand(json.loads(product)) if usd > 0]


def _on_demand(product: dict) -> Iterable[float]:
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            yield float(dimension["pricePerUnit"].get("USD", 0))
