"""The state of a cluster whenever it changed: the article's three tables, one after another."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from .timeline import Timeline, last_until

BEFORE, DURING, AFTER = "before the fault", "during the fault", "after healing was ordered"


@dataclass(frozen=True)
class Moment:
    """
    The last known state at a moment, `at_s` seconds after the fault was ordered; `phase` is one of the three above.

    Attributes
    ----------
    leaders : dict
        Partition to its leader; -1 for none.
    in_sync : dict
        Partition to the brokers in sync.
    group : dict
        Region to the partitions assigned to its consumers.
    """

    at_s: float
    phase: str
    leaders: dict[int, int]
    in_sync: dict[int, frozenset[int]]
    group: dict[str, int]


def moments(story: Timeline) -> list[Moment]:
    """The state just before the fault, when it and healing were ordered, and whenever a sample showed a change."""
    sampled = set(story.partitions.at_s) | set(story.group.at_s)
    start = max((at for at in sampled if at < 0), default=0.0)
    orders = {0.0, story.heal_s}
    found: list[Moment] = []
    for at in sorted({at for at in sampled if at >= start} | orders):
        phase = BEFORE if at < 0 else DURING if at < story.heal_s else AFTER
        seen = last_until(story.partitions, at)
        leaders = seen.leader.fillna(-1).astype(int)
        state = Moment(
            at,
            phase,
            dict(zip(seen.partition, leaders, strict=True)),
            dict(zip(seen.partition, map(_brokers, seen.isr), strict=True)),
            {row.region: int(row.partitions) for row in last_until(story.group, at).itertuples()},
        )
        if not found or at in orders or _tables(state) != _tables(found[-1]):
            found.append(state)
    return found


def moments_table(states: list[Moment]) -> pd.DataFrame:
    """The three tables in long form: at_s, phase, table (leader, in sync, assigned), of, value."""
    rows = []
    for each in states:
        parts = (
            ("leader", each.leaders),
            ("in sync", {partition: ",".join(map(str, sorted(of))) for partition, of in each.in_sync.items()}),
            ("assigned", each.group),
        )
        for table, cells in parts:
            of = "" if table == "assigned" else "partition "
            rows += [
                {"at_s": each.at_s, "phase": each.phase, "table": table, "of": f"{of}{key}", "value": value}
                for key, value in cells.items()
            ]
    return pd.DataFrame(rows)


def _tables(state: Moment) -> tuple:
    return state.leaders, state.in_sync, state.group


def _brokers(isr) -> frozenset[int]:
    return frozenset(int(each) for each in str(isr).split(",") if each) if pd.notna(isr) else frozenset()
