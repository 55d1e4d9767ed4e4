"""The outage that settings imply (`stats.outages.timeouts`) next to the measured ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from wanbench.errors import ParameterError
from wanbench.formatting import count
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import RowsResult

from .episodes import Episode, Episodes
from .recovery import Recovery
from .timeouts import implied

QUANTITIES = {
    "writes": ("all writes", "writes"),
    "partition": ("worst partition", "writes_partition"),
    "reads": ("worst partition's reads", "reads_partition"),
}
"""Implied quantities: the title of each, and the quantity of `Recovery` that measures it."""
PLACES = {True: "in the hit region", False: "elsewhere", None: "not known"}
"""Place of the active controller. If it is unknown, each end of the bounds assumes the place that widens them."""


@dataclass(frozen=True, repr=False)
class Planned(RowsResult):
    """
    One row per setting, place of the active controller, and quantity.

    Columns: implied low_s and high_s; n (measured outages, one per episode) with their min_s and max_s; how many lie
    inside and how many are longer; healed: outages that healing ended, which cannot be compared.
    """

    TITLE = "Outages that settings imply, and measured ones"

    @property
    def sentence(self) -> str:
        """How many measured outages lie within the implied bounds, how many exceed them, and how many are left out."""
        n, inside, longer, healed = (int(self.rows[name].sum()) for name in ("n", "inside", "longer", "healed"))
        left_out = f" {count(healed, 'more outage')} ended with healing and cannot be compared." if healed else ""
        return (
            f"{inside} of {count(n, 'measured outage')} lie within the bounds that time-outs and "
            f"round trips imply, given the place of the controller; {longer} lasted "
            f"longer.{left_out}"
        )

    @property
    def cautions(self) -> tuple[str, ...]:
        """A caution that outages of one episode are dependent."""
        return ("each episode gives up to three outages, which share its fault",)

    def formatted_table(self) -> pd.DataFrame:
        """As text."""
        rows = self.rows
        return pd.DataFrame(
            {
                "setting": rows.setting,
                "controller": rows.controller,
                "outage of": rows.quantity,
                "implied": [_span(*ends) for ends in zip(rows.low_s, rows.high_s, strict=True)],
                "measured": [_span(*ends) for ends in zip(rows.min_s, rows.max_s, strict=True)],
                "inside": [f"{inside} of {n}" for inside, n in zip(rows.inside, rows.n, strict=True)],
                "longer": rows.longer.astype(str),
                "ended by healing": rows.healed.astype(str),
            }
        )


def planned(
    found: Episodes, recovered: Recovery, *, rtt_ms: float, cluster_settings: Mapping[str, object] | None = None
) -> Planned:
    """
    Implied and measured outages, for faults that remove a whole region: "cut", "kill", "freeze".

    Parameters
    ----------
    cluster_settings : mapping, optional
        Settings of the brokers, for episodes that record none.
    """
    rows, measured = [], recovered.rows.set_index(KEY)
    for name, own in found.with_fault().by_setting().items():
        about = own[0].about
        if about.fault not in ("cut", "kill", "freeze") or len(own[0].hit) > 1:
            continue
        given = dict(cluster_settings or {}) | _json(about.broker_settings) | _json(about.client_settings)
        if pd.notna(about.get("session_timeout_ms")):
            given.setdefault("session.timeout.ms", about.session_timeout_ms)
        about_all = {"acks": about.acks, "group_protocol": about.group_protocol or "classic"}
        ends = [implied(given, rtt_ms, **about_all, controller_lost=lost) for lost in (False, True)]
        for place, title in PLACES.items():
            keys = [tuple(each.key.values()) for each in own if controller_lost(each) is place]
            for quantity, (what, column) in QUANTITIES.items() if keys else ():
                low, high = ends[place is True][quantity][0], ends[place is not False][quantity][1]
                part = measured.loc[keys]
                healed = part[f"{column}_censored"].astype("boolean").fillna(False)
                times = part[column][~healed].dropna()
                rows.append(
                    {
                        "setting": name,
                        "controller": title,
                        "quantity": what,
                        "low_s": low,
                        "high_s": high,
                        "n": len(times),
                        "min_s": times.min(),
                        "max_s": times.max(),
                        "inside": int(times.between(low, high).sum()),
                        "longer": int((times > high).sum()),
                        "healed": int(healed.sum()),
                    }
                )
    if not rows:
        raise ParameterError("no episode removes a whole region at once, so settings imply no outage.")
    return Planned(pd.DataFrame(rows))


def controller_lost(episode: Episode) -> bool | None:
    """
    Whether the active controller was in the affected region; None if unknown.

    True if the fault targeted the controller, or if a node of another region became controller during the fault. False
    if such a node fenced brokers without becoming controller.
    """
    events = episode.events
    if episode.about["at"] == "controller" or ((events.kind == "elected") & events.partition.isna()).any():
        return True
    return False if (events.kind == "fenced").any() else None


def _span(low: float, high: float) -> str:
    return "none" if pd.isna(low) else f"{low:.1f} s" if low == high else f"{low:.1f} to {high:.1f} s"


def _json(text) -> dict:
    return json.loads(text) if isinstance(text, str) and text else {}
