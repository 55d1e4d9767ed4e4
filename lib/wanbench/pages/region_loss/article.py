"""
Estimate the quantities that test the claims of the article of page 06 about the loss of a region.

The episodes used are those with the fault that the article describes.
"""

from collections.abc import Iterable
from dataclasses import replace

from wanbench.methods.result import Estimate, Fields
from wanbench.methods.result.means import share_of

from .episodes import Episode, Episodes
from .healing import Healing
from .losses import Losses
from .recovery import Recovery


def article(
    episodes: Episodes, setting: str, lost: Losses, recovered: Recovery, healed: Healing
) -> dict[str, Estimate]:
    """
    Return an estimate for each claim about the loss of a region, by the names of `claims.geo_kafka`'s arguments.

    `setting` is the setting with the source's fault. Except the outage ("rto", in s), every estimate is a share of the
    setting's episodes, because records, brokers and clients of one episode share a fault and so are not independent.
    """
    own = episodes.of(setting).with_fault().items
    rows = healed.rows[healed.rows.setting == setting]
    outages = recovered.rows[(recovered.rows.setting == setting) & recovered.rows.writes.notna()]
    shares = {
        "service": _share(~outages.writes_censored.astype(bool), "writes that were acknowledged again before healing"),
        "leaders": _share(map(_balanced, own), "brokers that all lead the same number of partitions"),
        "replicas": _share(map(_in_sync, own), "every partition in sync before the fault"),
        "elections": _share(rows.moved > 0, "new leaders"),
        "rearranged": _share(map(_taken_over, own), "all partitions taken over by the remaining consumers"),
        "producer_errors": _share(map(_had_errors, own), "errors at the remaining producers"),
        "producers_failed": _share(map(_gave_up, own), "a record given up by a remaining producer"),
    }
    order = lost.episodes_with(setting, "order_in_log", "records out of order in the log")
    times = recovered.of(setting, "writes_partition")
    return {"rpo": lost.episodes_with(setting), "order": order, "rto": times} | shares | _back(healed, setting)


def _share(flags: Iterable[bool], what: str) -> Estimate:
    flags, what = list(map(bool, flags)), f"episodes with {what}"
    about: Fields = {"quantity": what, "claim": f"The share of {what} is {{}}"}
    return share_of(sum(flags), len(flags), **about)


def _back(healed: Healing, setting: str) -> dict[str, Estimate]:
    """
    Return the shares of episodes with all replicas in sync again, with all leaders back, and with both.

    The controller moves leaders back only at intervals. If an episode ended earlier, the last two shares are unknown,
    unless leaders did not come back in another, longer episode.
    """
    own = healed.rows.setting == setting
    rows, undecided = healed.rows[own], healed.undecided()[own]
    in_sync, led = rows.in_sync_s.notna(), rows.back == rows.moved
    again, took = "all replicas in sync again", healed.of(setting, "in_sync_s")
    after = f" (median {took.formatted}, {took.formatted_level} interval {took.formatted_interval})" if took.n else ""
    claim = f"After healing{after}, all replicas were in sync again in {{}} of the episodes"
    shares = {"replicas_back": replace(_share(in_sync, again), claim=claim)}
    short = (
        f"leaders were watched for {rows.watched_s.min():.0f} to {rows.watched_s.max():.0f} s after healing, but the "
        f"controller moves them back only every {healed.check_s:.0f} s; a verdict needs episodes that last that long "
        "(quiet_s), or brokers that check more often (leader.imbalance.check.interval.seconds)"
    )
    for name, good, known, what in (
        ("leaders_back", led, ~undecided, "all leaders back"),
        ("healing", in_sync & led, ~(undecided & in_sync), f"{again} and all leaders back"),
    ):
        decided = known.all() or not good[known].all()
        shares[name] = _share(good[known], what) if decided else replace(_share((), what), basis=short)
    return shares


def _balanced(episode: Episode) -> bool:
    """Return whether every broker led the same number of partitions before the fault."""
    led = episode.leaders_before.value_counts()
    brokers = {each for text in episode.samples.isr.dropna() for each in str(text).split(",")}
    return len(led) == len(brokers) and led.nunique() == 1


def _in_sync(episode: Episode) -> bool:
    """Return whether all replicas of every partition were in sync before the fault."""
    rows = episode.samples[episode.samples.at_s <= episode.fault_at_s].groupby("partition").n_isr.last()
    return len(rows) > 0 and bool((rows >= int(episode.about.replication)).all())


def _taken_over(episode: Episode) -> bool:
    """Return whether all partitions were assigned to consumers of other regions at the end of the fault."""
    rows = episode.members
    rows = rows[(rows.at_s > episode.fault_at_s) & (rows.at_s < episode.heal_at_s)]
    last = rows[(rows.at_s == rows.at_s.max()) & ~rows.client_region.isin(episode.affected)]
    return bool(last.n_partitions.sum() == int(episode.about.partitions))


def _remaining(episode: Episode) -> set[int]:
    """Return the numbers of the producers outside the affected regions."""
    clients = episode.tables["fault_clients"]
    outside = (clients.role == "producer") & ~clients.region.isin(episode.affected)
    return set(clients.client[outside].astype(int))


def _had_errors(episode: Episode) -> bool:
    """Return whether a producer outside the affected regions reported an error after the fault began."""
    rows = episode.tables["fault_errors"]
    rows = rows[(rows.role == "producer") & (rows.at_s >= episode.fault_at_s)]
    return bool(_remaining(episode) & set(rows.client))


def _gave_up(episode: Episode) -> bool:
    """Return whether a producer outside the affected regions gave up a record."""
    rows = episode.tables["fault_records"]
    return bool(_remaining(episode) & set(rows.producer[rows.error.notna() & rows.acknowledged_at_s.isna()]))
