"""Collect the measured quantities that test claims of source 001, by the names of `claims.geo_kafka`'s arguments."""

from math import nan

import pandas as pd

from wanbench.errors import MissingDataError
from wanbench.methods.result import Estimate

from .curves import Curves


def evidence(
    curves: Curves, links: pd.DataFrame, *, tuned: str = "tuned", default: str = "default"
) -> dict[str, Estimate]:
    """
    Return every ratio of throughputs that tests a claim and that the trials allow, by name.

    links: Table links. A gateway is compared with the full mesh only if its rate is the sum of the rates of the links
        that leave a region.
    tuned, default: The names of the tuned and the untuned setting.
    """
    (small, large), (fewest, most) = _ends(curves, "batch_bytes"), _ends(curves, "producers")
    partitions = _ends(curves, "partitions")[0]
    tries = {
        "tuned_over_default": (tuned, default, "tuned over default"),
        "consistency": ({"acks": "1"}, {}, "acks=1 over acks=all"),
        "buffers": ({}, _untuned_buffers(curves), "larger buffers over Kafka's"),
        "batches": ({"batch_bytes": large}, {"batch_bytes": small}, "largest batches over smallest"),
        "linger": ({"linger_ms": 50}, {"linger_ms": 0}, "linger.ms 50 over 0"),
        "producers_gain": ({"producers": most}, {"producers": fewest}, f"{most:g} producers over {fewest:g}"),
        "partitions": ({"partitions": 144}, {"partitions": 72}, "144 partitions over 72"),
        "partitions_gain": ({"partitions": 72}, {"partitions": partitions}, f"72 partitions over {partitions:g}"),
        "consumers_cost": ({"consumer_groups": 1}, {"consumer_groups": 0}, "with consumers over without"),
        "gateway": ({}, {"gateway_bps": _total_bps(links)}, "full mesh over one gateway with the same total rate"),
    }
    result = {}
    for name, (of, over, quantity) in tries.items():
        try:
            result[name] = curves.ratio(
                of,
                over,
                quantity=quantity,
                claim=f"The ratio of throughputs, {quantity}, is {{}}",
                pooled=not curves.is_unequal,
            )
        except MissingDataError:  # not measured, so the claim stays open
            continue
    if fewest == 1 and "producers_gain" in result:
        claim = f"The throughput of {most:g} producers is {{}} what linear growth from one producer gives"
        result["producers"] = result["producers_gain"].transformed(
            lambda ratio: ratio / most, quantity="growth over linear growth", claim=claim, unit="times"
        )
    if "consumers_cost" in result:
        claim = "Consumers take {} of the producers' throughput"
        result["consumers_cost"] = result["consumers_cost"].transformed(
            lambda ratio: 100 * (1 - ratio), quantity="cost of consumers", claim=claim, unit="%"
        )
    return result


def _total_bps(links: pd.DataFrame) -> float:
    """Return the total rate of the links that leave a region; NaN if regions differ or a link has no rate."""
    totals = links.groupby(["run_id", "from_region"]).rate_bps.sum(min_count=1)
    known = len(totals) and links.rate_bps.notna().all() and totals.nunique() == 1
    return float(totals.iloc[0]) if known else nan


def _untuned_buffers(curves: Curves) -> str:
    """
    Return the name of the setting that differs from the baseline in having Kafka's default buffers; "" if there is
    none.
    """
    if "buffers" not in curves.curves:
        return ""
    levels = curves.of("buffers").levels
    cells = levels.cell[levels.label.str.startswith("default") & ~levels.baseline]
    return "" if cells.empty else str(curves.frame.setting[curves.frame.cell == cells.iloc[0]].iloc[0])


def _ends(curves: Curves, name: str) -> tuple[float, float]:
    """Return the lowest and the highest level of a numeric factor; both NaN if the factor was not varied."""
    cells = curves.curves[name].levels.cell if name in curves.curves else []
    values = curves.frame[name][curves.frame.cell.isin(cells)].dropna().astype(float)
    return (float(values.min()), float(values.max())) if len(values) else (nan, nan)
