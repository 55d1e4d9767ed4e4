"""The price of a trial's brokers, from the sizes in its plan; and prices of emulated sizes from a dated list."""

from __future__ import annotations

import json
from collections.abc import Iterable

from wanbench.checks import check_number
from wanbench.errors import ParameterError
from wanbench.methods.cost.deployment import Input
from wanbench.methods.cost.price_list import price


def usd_per_hour(broker_sizes: str, brokers: int, setting: str) -> float:
    """
    The price of all brokers of each trial, from the sizes in column broker_sizes of table trials.

    >>> usd_per_hour('[{"name": "a", "price_usd_per_hour": 0.5}, null]', 2, "a")
    0.5
    """
    sizes = json.loads(broker_sizes) if broker_sizes else None
    each = [size for size in (sizes if isinstance(sizes, list) else [sizes] * brokers) if size is not None]
    usd = [size.get("price_usd_per_hour") for size in each]
    if not usd or None in usd:
        raise ParameterError(f"setting {setting} has brokers without a price; allowed: sizes with price_usd_per_hour.")
    return float(sum(usd))


def per_processor_hour(provider: str, item: str, processors: int, **which) -> Input:
    """
    A list price per processor: an instance's price over its processors, with region, date and source.

    >>> round(per_processor_hour("aws", "m6i.2xlarge", 8).value, 4)
    0.048
    """
    check_number("processors", processors, 1, whole=True)
    found = price(provider, item, **which)
    return Input(f"{item} per processor", found.value / processors, "USD/hour", source=found.source)


def paid_over_listed(provider: str, items: Iterable[str], term: str, **which) -> dict[str, float]:
    """
    The price under a term over that on demand, by item; `which` is the region and the prices of `stats.cost.price`.

    >>> paid_over_listed("aws", ["m6i.2xlarge"], "on demand")
    {'m6i.2xlarge': 1.0}
    """
    return {
        item: price(provider, item, term=term, **which).value / price(provider, item, **which).value for item in items
    }
