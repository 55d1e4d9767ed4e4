"""What the article says of its disaster, as estimates of the same disaster here: for the ledger of its claims."""

from __future__ import annotations

from ...stats.outages.bounds import share_of
from ...stats.outages.episodes import Episode, Episodes
from ...stats.outages.losses import Losses
from ...stats.outages.recovery import Recovery
from ...stats.result import Estimate
from .healing import Healing


def article(
    found: Episodes, setting: str, lost: Losses, recovered: Recovery, healed: Healing
) -> dict[str, Estimate]:
    """
    Estimates by the names of `claims.geo_kafka`: rpo, order, rto, leaders, replicas, elections, rearranged, healing,
    producer_errors, producers_failed.

    Parameters
    ----------
    setting : str
        The article's: one region cut off, acks=all.
    """
    own = found.of(setting).with_fault().items
    rows, sums = healed.rows[healed.rows.setting == setting], lost.sums(setting)
    before = [_before(each) for each in own]
    producers = [each for episode in own for each in _producers(episode)]
    healthy = rows.in_sync_s.notna() & (rows.back == rows.moved)
    every = {
        "order": (sums.order_in_log, sums.acknowledged, "record", "records out of order in the log"),
        "leaders": (*_sums(before, 0, 1), "broker", "brokers that lead as many as any"),
        "replicas": (*_sums(before, 2, 3), "partition", "partitions in sync"),
        "elections": ((rows.moved > 0).sum(), len(rows), "episode", "episodes with new leaders"),
        "rearranged": (
            sum(map(_taken_over, own)),
            len(own),
            "episode",
            "episodes in which consumers took over",
        ),
        "healing": (healthy.sum(), len(rows), "episode", "episodes that healed"),
        "producer_errors": (*_sums(producers, 0, 2), "producer", "remaining producers with errors"),
        "producers_failed": (
            *_sums(producers, 1, 2),
            "producer",
            "remaining producers that gave a record up",
        ),
    }
    shares = {
        name: share_of(int(hits), int(n), unit_name=unit, quantity=what, claim=f"The share of {what} is {{}}")
        for name, (hits, n, unit, what) in every.items()
    }
    return {"rpo": lost.lost(setting), "rto": recovered.of(setting, "writes_partition")} | shares


def _before(episode: Episode) -> tuple[int, int, int, int]:
    """Before the fault: brokers that lead as many partitions as any, brokers, partitions wholly in sync, partitions."""
    led = episode.leaders_before.value_counts()
    rows = episode.samples[episode.samples.at_s <= episode.fault_at_s].groupby("partition").n_isr.last()
    in_sync = int((rows >= int(episode.about.replication)).sum())
    brokers = {each for text in episode.samples.isr.dropna() for each in str(text).split(",")}
    return int((led == led.max()).sum()), len(brokers), in_sync, len(rows)


def _taken_over(episode: Episode) -> bool:
    """Whether at the end of the fault consumers of other regions had all partitions."""
    rows = episode.members
    rows = rows[(rows.at_s > episode.fault_at_s) & (rows.at_s < episode.heal_at_s)]
    last = rows[(rows.at_s == rows.at_s.max()) & ~rows.client_region.isin(episode.hit)]
    return bool(last.n_partitions.sum() == int(episode.about.partitions))


def _producers(episode: Episode) -> list[tuple[int, int, int]]:
    """Per producer outside the hit regions: whether it reported an error, whether it gave a record up, and 1."""
    errors, records = episode.tables["fault_errors"], episode.tables["fault_records"]
    told = set(errors.client[errors.role == "producer"])
    gave_up = set(records.producer[records.error.notna() & records.acknowledged_at_s.isna()])
    every = [
        client
        for (role, client), region in episode.regions.items()
        if role == "producer" and region not in episode.hit
    ]
    return [(client in told, client in gave_up, 1) for client in every]


def _sums(rows: list[tuple], *columns: int) -> tuple[int, ...]:
    return tuple(sum(row[column] for row in rows) for column in columns)
