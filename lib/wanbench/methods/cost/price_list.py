"""
Read dated list prices, which have one row per price and source. An item's range is from the lowest to the highest of
its rows.

Prices are not samples: the range is not a confidence interval, and prices are not interpolated.
"""

from pathlib import Path

import pandas as pd

from wanbench.checks import check_choice
from wanbench.errors import ParameterError, RawDataError
from wanbench.folders import published_folder
from wanbench.methods.cost.deployment import RANGE, Input

COLUMNS = ("provider", "item", "unit", "price_usd", "region", "term", "as_of", "source", "obtained")
UNITS = ("hour", "GB", "GB-month")  # GB is 10^9 bytes.
# The only term in the project's price list; reserved and spot prices need a list of your own.
ON_DEMAND = "on demand"


def price_list(path: Path | str | None = None) -> pd.DataFrame:
    """
    Read the list prices of the project, or those in a file of your own with the same columns.

    path: A CSV file; default: data/published/prices/list-prices.csv.

    Returns DataFrame: provider, item, unit ("hour", "GB" or "GB-month"), price_usd (US dollars per unit), region (which
        regions the price is for), term ("on demand", or any name, such as "spot"), as_of, source, obtained (how the
        figure was obtained).

    Raises RawDataError: a column is missing, a price is not a number of at least 0, or a row has no date or source.

    >>> prices = price_list()
    >>> float(prices.price_usd[prices.item == "disk"].iloc[0])
    0.04
    """
    path = Path(path) if path is not None else published_folder() / "prices" / "list-prices.csv"
    frame = pd.read_csv(path, dtype="str", keep_default_na=False)
    if tuple(frame.columns) != COLUMNS:
        raise RawDataError(path, 1, ", ".join(frame.columns), f"the columns {', '.join(COLUMNS)}")
    usd = pd.to_numeric(frame.price_usd, errors="coerce")
    dated = (frame[["provider", "item", "region", "term", "as_of", "source", "obtained"]] != "").all(axis=1)
    readable = (usd >= 0) & (usd < float("inf")) & frame.unit.isin(UNITS) & dated
    if not readable.all():
        row = int((~readable).argmax())
        wanted = f"a price of at least 0 per {', '.join(UNITS)}, with region, term, date and source"
        raise RawDataError(path, row + 2, ", ".join(frame.iloc[row]), wanted)
    return frame.assign(price_usd=usd)


def price(
    provider: str, item: str, *, region: str | None = None, term: str = ON_DEMAND, prices: pd.DataFrame | None = None
) -> Input:
    """
    Return the price of an item, with the range over all rows of the item under the same term.

    region: The region in the list whose price to take; required if regions have different prices.
    term: A term in the list, such as "on demand".
    prices: A table as `price_list` returns it; default: the project's price list.

    Raises ParameterError: the list has no such provider, item, term or region, or several prices and `region` is None.

    >>> between = price("gcp", "egress between regions", region="North America")
    >>> between.value, between.low, between.high
    (0.01, 0.01, 0.08)
    """
    listed = price_list() if prices is None else prices
    check_choice("provider", provider, sorted(set(listed.provider)))
    rows = listed[listed.provider == provider]
    check_choice(f"item of {provider}", item, sorted(set(rows.item)))
    rows = rows[rows.item == item]
    check_choice(f"term of {item!r}", term, list(dict.fromkeys(rows.term)))
    chosen = rows = rows[rows.term == term]
    if region is not None:
        check_choice(f"region of {item!r}", region, list(dict.fromkeys(rows.region)))
        chosen = rows[rows.region == region]
    if chosen.price_usd.nunique() > 1:
        each = "; ".join(f"{row.price_usd:g} for {row.region!r}, {row.as_of}" for row in chosen.itertuples())
        raise ParameterError(f"{item!r} of {provider} has several prices ({each}); say which with region=.")
    row = chosen.iloc[-1]
    low, high = float(rows.price_usd.min()), float(rows.price_usd.max())
    source = f"{provider}, {item}, {row.region}, {row.term}, {row.as_of}"
    return Input(item, float(row.price_usd), f"USD/{row.unit}", low, high, RANGE, source)
