"""
Measure how soon a detector named a slowed broker, and how often it raised a false alarm.

As a check, the detector is run again on the stored latencies, and must raise the same alarms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import nan

import numpy as np
import pandas as pd
from scipy import stats

from wanbench.change_detection import Alarm, Detector, DetectorSettings
from wanbench.checks import check_table
from wanbench.formatting import count, number
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Estimate, Fields, Result
from wanbench.methods.result.means import Median, median_of, share_of

from .trials import rows_of

EPISODES = ("slow", "disk", "link", "kill")
"""Actions that a detector should notice. All other actions are announced beforehand, or slow no broker."""
RECOVERY_S = 15.0
"""Seconds that followers need to catch up, and clients to reconnect, after a cluster is healthy again."""
MIN_H = 1.0
"""
Minimum hours of watching for a rate of false alarms: even without an alarm, its interval would reach 3.7 per hour or
more.
"""
AGREE_S = 0.01
"""Alarms closer than this count as equal: stored times are exact to microseconds, and windows are far longer."""
SETTINGS = tuple(each.name for each in fields(DetectorSettings))


@dataclass(frozen=True, repr=False)
class Detected(Result):
    """
    Delay and reliability of a detector of slow brokers.

    delay: Median time in s from when a slowness took effect to the alarm on its broker. An episode that ended without
        an alarm counts with a lower bound.
    share, misnamed: The share of episodes that were detected, and in which another broker was named.
    false_alarms: Rate of false alarms per broker and hour of undisturbed time.
    episodes: One row per episode, with `others`, the number of alarms on other brokers.
    alarms: One row per alarm, with its kind `what`: "episode", "false" or "other".
    agrees: Whether the detector raises the same alarms on the stored latencies.
    """

    delay: Median
    share: Estimate
    misnamed: Estimate
    false_alarms: Estimate
    episodes: pd.DataFrame = field(default_factory=pd.DataFrame)
    alarms: pd.DataFrame = field(default_factory=pd.DataFrame)
    agrees: bool | None = None
    notes: tuple[str, ...] = ()

    TITLE = "Detection of slow brokers"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(each for each in (self.delay, self.share, self.misnamed, self.false_alarms) if each.n)

    @property
    def sentence(self) -> str:
        parts = [each.sentence for each in self.estimates] or ["There was nothing to detect."]
        if self.agrees is not None:
            gives = "gives the same alarms" if self.agrees else "does not give the same alarms"
            parts.append(f"When the detector is run again on the stored latencies, it {gives}.")
        return " ".join(parts)

    @property
    def cautions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*super().cautions, *self.notes]))


def detection(tables: Mapping[str, pd.DataFrame]) -> Detected:
    """
    Evaluate the detector of every run in table detection_runs.

    Also needs detections and detection_latencies, and broker_actions if there were any. Time counts as undisturbed
    after the baseline has been learned and before the first demotion, except during actions and the recovery from them.
    If false alarms of one broker come in groups, the interval of their rate is too narrow.
    """
    runs = check_table("detection_runs", tables)
    actions = tables.get("broker_actions", pd.DataFrame(columns=[*KEY, "kind", "began_at_s", "in_force_at_s"]))
    episodes, alarms, hours, left_out, agreed, short = [], [], 0.0, 0, [], {}
    for run in runs[runs.began_at_s.notna()].to_dict("records"):
        own = {name: rows_of(frame, run) for name, frame in tables.items() if set(KEY) <= set(frame.columns)}
        recorded = recorded_settings(run)
        online = own["detections"][["node_id", "at_s", "ratio", "demoted_at_s"]].to_dict("records")
        offline = replay(own["detection_latencies"], recorded, run["began_at_s"])
        agreed.append(same_alarms(online, offline))
        short |= dict.fromkeys(recorded.cautions)
        begin_s = run["began_at_s"] + recorded.learn_s + 2 * recorded.window_s
        acted = rows_of(actions, run)
        mine, skipped = _episodes(acted, online, run, begin_s)
        episodes, left_out = episodes + mine, left_out + skipped
        demoted = [one["demoted_at_s"] for one in online if pd.notna(one.get("demoted_at_s"))]
        quiet = undisturbed(acted, begin_s, run["ended_at_s"], RECOVERY_S, demoted)
        hours += sum(b - a for a, b in quiet) / 3600 * len(run["brokers"].split(","))
        alarms += [{name: run[name] for name in KEY} | _judged(one, mine, quiet) for one in online]
    frame = pd.DataFrame(alarms, columns=[*KEY, "node_id", "at_s", "ratio", "what"])
    columns = [*KEY, "number", "node_id", "kind", "in_force_at_s", "delay_s", "censored", "others"]
    rows = pd.DataFrame(episodes, columns=columns)
    censored, others = rows.censored.astype(bool), int((rows.others > 0).sum())
    about: Fields = {"quantity": "delay to detection", "claim": "A slowed broker was detected after {}"}
    delay = median_of(rows.delay_s.astype(float), censored, **about)
    about = {"quantity": "share of episodes detected", "claim": "{} of the episodes were detected before they ended"}
    share = share_of(int((~censored).sum()), len(rows), **about)
    about = {"claim": "In {} of the episodes a broker that was not slow was named as well"}
    misnamed = share_of(others, len(rows), quantity="share of episodes with an alarm on another broker", **about)
    false = rate_per_h(int((frame.what == "false").sum()), hours)
    notes = (
        [f"{count(left_out, 'episode')} left out, because the detector had not yet learned its baseline"]
        if left_out
        else []
    )
    return Detected(delay, share, misnamed, false, rows, frame, all(agreed) if agreed else None, (*notes, *short))


def recorded_settings(run: Fields) -> DetectorSettings:
    """Return the settings of the detector, from a row of table detection_runs."""
    return DetectorSettings(**{name: getattr(run[name], "item", lambda name=name: run[name])() for name in SETTINGS})


def replay(latencies: pd.DataFrame, settings: DetectorSettings, began_at_s: float) -> list[Alarm]:
    """
    Run a detector over the stored latencies of one run, from `began_at_s` on, and return its alarms in order.

    As in the run itself, a late record counts with the latency `limit_ms`, at the time when it exceeded this limit.
    """
    rows = latencies[latencies.latency_ms.notna() | latencies.late]
    node, known = rows.node_id.to_numpy(int), rows.known_at_s.to_numpy(float)
    value = np.where(rows.late.to_numpy(bool), settings.limit_ms, rows.latency_ms.astype(float).fillna(np.inf))
    detector, started = Detector(settings), known >= began_at_s
    updates = map(detector.update, known[started], node[started].tolist(), value[started])
    return [alarm for alarm in updates if alarm is not None]


def same_alarms(online: list[Fields], offline: list[Alarm]) -> bool:
    """Return whether the alarms of a run (`online`) and of its replay name the same brokers at the same times."""
    return len(online) == len(offline) and all(
        one["node_id"] == two.broker and abs(one["at_s"] - two.at_s) < AGREE_S
        for one, two in zip(online, offline, strict=True)
    )


def undisturbed(
    actions: pd.DataFrame, begin_s: float, end_s: float, recovery_s: float, demoted: Sequence[float] = ()
) -> list[tuple[float, float]]:
    """
    Return the periods from `begin_s` to `end_s` that are affected neither by an action nor by a demotion.

    An action affects the time from its start to `recovery_s` after the cluster is healthy again. A demotion, at a time
    in `demoted`, affects all later time.

    >>> one = pd.DataFrame({"began_at_s": [10.0], "done_at_s": [20.0], "healthy_at_s": [25.0]})
    >>> undisturbed(one, 0, 100, 5)
    [(0, 10.0), (30.0, 100)]
    """
    busy = [(at_s, end_s) for at_s in demoted]
    for row in actions[actions.began_at_s.notna()].to_dict("records"):
        over = [row.get(name) for name in ("done_at_s", "healthy_at_s") if pd.notna(row.get(name))]
        healthy = pd.notna(row.get("healthy_at_s"))
        busy.append((row["began_at_s"], max(over) + recovery_s if healthy else end_s))
    quiet, at_s = [], begin_s
    for first, last in sorted(busy):
        if first > at_s:
            quiet.append((at_s, min(first, end_s)))
        at_s = max(at_s, last)
    return [*quiet, (at_s, end_s)] if at_s < end_s else [each for each in quiet if each[1] > each[0]]


def rate_per_h(events: int, hours: float, *, level: float = 0.95) -> Estimate:
    """
    Estimate the rate of false alarms per hour from their number, with the exact Poisson interval (Garwood 1936).

    >>> rate = rate_per_h(0, 10.0)
    >>> rate.low, round(rate.high, 3)
    (0.0, 0.369)
    """
    tail, known = (1 - level) / 2, hours > 0
    low = float(stats.chi2.ppf(tail, 2 * events)) / 2 / hours if events and known else 0.0 if known else nan
    high = float(stats.chi2.ppf(1 - tail, 2 * events + 2)) / 2 / hours if known else nan
    watched = f"{number(hours, 2)} broker-hours" if hours >= 0.1 else f"{number(3600 * hours, 0)} broker-seconds"
    about: Fields = {"quantity": "false alarms per hour and broker", "basis": f"{count(events, 'alarm')} in {watched}"}
    about |= {"claim": "In undisturbed time each broker had {} false alarms", "unit": "per hour"}
    about["method"] = "exact Poisson (Garwood 1936)"
    about["assumption"] = "False alarms are independent and have a constant rate"
    estimate, n = events / hours if known else nan, int(hours >= MIN_H)
    return Estimate(estimate=estimate, low=low, high=high, n=n, level=level, **about)


def _episodes(actions: pd.DataFrame, alarms: list[Fields], run: Fields, begin_s: float) -> tuple[list[Fields], int]:
    rows, acted = [], actions[actions.kind.isin(EPISODES) & actions.in_force_at_s.notna()]
    early = acted.in_force_at_s < begin_s
    for row in acted[~early].to_dict("records"):
        force_s = row["in_force_at_s"]
        end_s = row["done_at_s"] if pd.notna(row["done_at_s"]) else run["ended_at_s"]
        during = [one for one in alarms if force_s <= one["at_s"] <= end_s]
        own = [one["at_s"] for one in during if one["node_id"] == row["node_id"]]
        first = min(own, default=None)
        row = {name: run[name] for name in KEY} | {
            name: row[name] for name in ("number", "node_id", "kind", "in_force_at_s")
        }
        row |= {"delay_s": (end_s if first is None else first) - force_s, "censored": first is None, "end_s": end_s}
        rows.append(row | {"others": len(during) - len(own)})
    return rows, int(early.sum())


def _judged(alarm: Fields, episodes: list[Fields], quiet: list[tuple[float, float]]) -> Fields:
    at_s, node = alarm["at_s"], alarm["node_id"]
    hit = any(node == each["node_id"] and each["in_force_at_s"] <= at_s <= each["end_s"] for each in episodes)
    false = any(first <= at_s <= last for first, last in quiet)
    what = "episode" if hit else "false" if false else "other"
    return {name: alarm[name] for name in ("node_id", "at_s", "ratio")} | {"what": what}
