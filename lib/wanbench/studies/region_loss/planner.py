"""The outage that settings imply (`stats.outages.timeouts`) beside the one that was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import nan

import pandas as pd

from ...errors import ParameterError
from ...stats.outages.episodes import Episodes
from ...stats.outages.over_episodes import spelled
from ...stats.outages.recovery import Recovery
from ...stats.outages.timeouts import implied
from ...stats.result import RowsResult

QUANTITIES = {"writes": "writes", "partition": "writes_partition", "reads": "reads_partition"}
"""What is implied, and the quantity of `Recovery` that measures it."""


@dataclass(frozen=True, repr=False)
class Planned(RowsResult):
    """One row per setting and quantity: implied low_s and high_s, the measured median, whether it lies inside."""

    TITLE = "The outage that settings imply, and the one measured"

    @property
    def sentence(self) -> str:
        """How many measured medians lie within what the settings imply."""
        known = self.rows[self.rows.measured_s.notna()]
        return (
            f"{int(known.inside.astype(bool).sum())} of {len(known)} measured outages (median per setting) lie between "
            "the ends that time-outs and round trips imply."
        )

    def shown(self) -> pd.DataFrame:
        """As text."""
        rows = self.rows
        implied = [f"{low:.1f} to {high:.1f} s" for low, high in zip(rows.low_s, rows.high_s, strict=True)]
        inside = rows.inside.map({True: "yes", False: "no"}).fillna("")
        shown = {
            "setting": rows.setting,
            "outage of": rows.quantity,
            "implied": implied,
            "measured": rows.measured,
        }
        return pd.DataFrame(shown | {"inside": inside})


def planned(
    found: Episodes,
    recovered: Recovery,
    *,
    rtt_ms: float,
    cluster_settings: Mapping[str, object] | None = None,
) -> Planned:
    """
    What each setting implies beside what it showed, for faults that take a whole region away: "cut", "kill", "freeze".

    Parameters
    ----------
    cluster_settings : mapping, optional
        Of the brokers, where an episode has none of its own.
    """
    rows = []
    for name, own in found.with_fault().by_setting().items():
        about = own[0].about
        if about.fault not in ("cut", "kill", "freeze") or len(own[0].hit) > 1:
            continue
        given = dict(cluster_settings or {}) | _json(about.broker_settings) | _json(about.client_settings)
        if pd.notna(about.get("session_timeout_ms")):
            given.setdefault("session.timeout.ms", about.session_timeout_ms)
        about_all = {"acks": about.acks, "group_protocol": about.group_protocol or "classic"}
        ends = [implied(given, rtt_ms, **about_all, controller_lost=lost) for lost in (False, True)]
        for quantity, title in (
            ("writes", "all writes"),
            ("partition", "worst partition"),
            ("reads", "worst partition's reads"),
        ):
            # nobody knows beforehand where the controller will stand, unless the fault was aimed at it
            low = ends[about["at"] == "controller"][quantity][0]
            high = ends[1][quantity][1]
            measured = recovered.of(name, QUANTITIES[quantity])
            middle = measured.estimate if measured.n else nan
            rows.append(
                {
                    "setting": name,
                    "quantity": title,
                    "low_s": low,
                    "high_s": high,
                    "measured_s": middle,
                    "measured": spelled(measured),
                    "inside": bool(low <= middle <= high) if measured.n else None,
                }
            )
    if not rows:
        raise ParameterError(
            "no episode takes a whole region away at once, so the planner has nothing to say."
        )
    return Planned(pd.DataFrame(rows))


def _json(text) -> dict:
    return json.loads(text) if isinstance(text, str) and text else {}
