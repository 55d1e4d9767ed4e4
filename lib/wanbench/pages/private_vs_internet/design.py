"""Plan the Kafka trials of this page: two paths compared, and a factorial experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import ceil, sqrt

from wanbench import designs
from wanbench.checks import check_number
from wanbench.errors import ParameterError
from wanbench.measure.experiments import Iperf3, KafkaLoad, KafkaTrial, Ping
from wanbench.measure.links import LinkSettings
from wanbench.measure.plan import Trial
from wanbench.measure.plan.plan import check_keys

PING_INTERVAL_S = 0.1
OVERLAP_S = 2.0  # Time by which pings and background outlast the measured seconds
WINDOW_BYTES = 1 << 20
"""Socket buffer in bytes of the receiver of background traffic: large enough not to drop delivered packets."""

BATCH_HEADER_BYTES = 61
RECORD_HEADER_BYTES, MOST_RECORD_HEADER_BYTES = 9, 12
"""
Bytes that record batch version 2 adds to a payload without key: the usual number, and the largest (if a batch waits for
seconds).
"""

LINK_FACTORS = ("delay_ms", "jitter_ms", "loss", "rate_bps")


@dataclass(frozen=True)
class Path:
    """
    A path between two regions, given by the mean and standard deviation of its RTT.

    The mean delay of each direction is half the mean RTT. The directions vary independently, so the standard deviation
    of each is that of the RTT divided by the root of 2. The autocorrelation of the delay falls to 1/e in
    `correlation_s`.
    """

    setting: str
    rtt_ms: float
    rtt_sd_ms: float
    correlation_s: float = 0.5

    def link(self, rate_bps: float | None) -> LinkSettings:
        """
        Return the link settings of one direction.

        >>> Path("private", 62.5, 0.7).link(2e8).jitter_ms.__round__(2)
        0.49
        """
        sd_ms, correlation_s = self.rtt_sd_ms / sqrt(2), self.correlation_s
        return LinkSettings(self.rtt_ms / 2, rate_bps=rate_bps, jitter_ms=sd_ms, jitter_correlation_s=correlation_s)


def two_paths(
    paths: Sequence[Path],
    load: KafkaLoad,
    *,
    rate_bps: float,
    scales: Mapping[float, int],
    background_share: float,
    fit_records: bool = True,
    are_real: bool = False,
    are_external: bool = False,
    alongside: Sequence[object] = (),
    seed: int = 0,
) -> list[Trial]:
    """
    Plan the same load over two paths, interleaved (A B B A ...), with background traffic and pings, at each scale.

    At scale 5 the link's rate, the background and the producers' batches are a fifth of those at scale 1. As the rate
    of a producer that waits for acknowledgements is proportional to its batch, Kafka and the background keep their
    shares of the link's rate, provided that batches are equally full. Small batches would be less full: 4,096 bytes
    hold 3 records of 1,000 (75 %), 2,048 hold 1 (52 %), 81,920 hold 81 (99.8 %). So the record size is fitted to the
    batch (`filling_record_bytes`), unless `fit_records` is False.

    Parameters
    ----------
    load : KafkaLoad
        The load at scale 1, with `duration_s`.
    rate_bps : float
        Rate of the link at scale 1.
    scales : mapping of float to int
        Number of blocks by scale; the scales take turns, block by block.
    background_share : float
        Ratio of the background's rate to the link's.
    are_real : bool
        Whether the hosts are joined by both paths in reality, named as the settings; otherwise paths are emulated.
    are_external : bool
        Whether each path leads to an external cluster with the name of the path; otherwise the lab's cluster is used.
    """
    if not scales or not all(scale >= 1 and blocks >= 1 for scale, blocks in scales.items()):
        raise ParameterError(f"scales is {scales!r}; allowed: scales of at least 1, each with 1 block or more.")
    check_number("background_share", background_share, 0, 0.99)
    check_number("rate_bps", rate_bps, 0, above=True)
    if load.duration_s is None:
        message = "load has no duration_s; allowed: a load with duration_s, as pings and background need one."
        raise ParameterError(message)
    lasts_s, of = ceil(load.warmup_s + load.duration_s + OVERLAP_S), {path.setting: path for path in paths}
    waiting = {scale: designs.interleaved(list(of), blocks, seed=seed) for scale, blocks in scales.items()}
    trials, number = [], 0
    for turn in range(1, max(scales.values()) + 1):
        for scale, plan in waiting.items():
            block = plan[plan.block == turn]
            number += len(block) > 0
            for setting in block.setting:
                batch_bytes = max(round(load.batch_bytes / scale), 1)
                size = filling_record_bytes(batch_bytes, load.record_bytes) if fit_records else load.record_bytes
                at = replace(load, batch_bytes=batch_bytes, record_bytes=size)
                one = _trial(at, of[setting], rate_bps / scale, background_share, lasts_s, alongside)
                real = {"path": setting} if are_real else {}
                external = {"cluster": setting} if are_external else {}
                trials.append(Trial(setting, (replace(one, **real, **external),), number))
    return trials


def filling_record_bytes(batch_bytes: int, record_bytes: int) -> int:
    """
    Return a record size in bytes near `record_bytes` with which a whole number of records nearly fills a batch.

    >>> [filling_record_bytes(batch, 1000) for batch in (81_920, 8_192, 4_096, 2_048)]
    [998, 1004, 996, 981]
    """
    room = batch_bytes - BATCH_HEADER_BYTES
    records = max(round(room / (record_bytes + RECORD_HEADER_BYTES)), 1)
    size = room // records - MOST_RECORD_HEADER_BYTES
    if size < 1:
        allowed = "enough for one record, so scale down less"
        raise ParameterError(f"batch_bytes is {batch_bytes} at this scale; allowed: {allowed}.")
    return size


def thesis(
    factors: Mapping[str, Sequence[float | str]],
    load: KafkaLoad,
    *,
    replicates: int,
    fraction: Mapping[str, Sequence[str]] | None = None,
    alongside: Sequence[object] = (),
    seed: int = 0,
) -> list[Trial]:
    """
    Plan a factorial experiment that varies settings of the link and of the producer, without background traffic.

    `factors` maps the link's delay_ms, jitter_ms, loss or rate_bps, or fields of KafkaLoad, to their levels; `load` has
    the other fields. `replicates`, `fraction` and `seed` are as in `designs.factorial`. Each replicate is a block; with
    0 replicates there are no trials.
    """
    check_keys("factors", factors, [*LINK_FACTORS, *(field.name for field in fields(load))])
    if replicates == 0:
        return []
    plan = designs.factorial(factors, replicates=replicates, fraction=fraction, seed=seed)
    trials = []
    for row in plan.to_dict("records"):
        given = [(name, row[name]) for name in factors]  # a whole float becomes an int, the type of such settings
        levels = {name: int(one) if isinstance(one, float) and one.is_integer() else one for name, one in given}
        link = {name: levels[name] for name in LINK_FACTORS if name in levels}
        link = LinkSettings(**{"delay_ms": 0.5, "jitter_correlation_s": 0.5, **link})
        at = replace(load, **{name: value for name, value in levels.items() if name not in LINK_FACTORS})
        name = ", ".join(f"{name} {value}" for name, value in levels.items())
        trials.append(Trial(name, (KafkaTrial(at, link=link, alongside=tuple(alongside)),), int(row["replicate"])))
    return trials


def _trial(
    load: KafkaLoad, path: Path, rate_bps: float, share: float, lasts_s: int, alongside: Sequence[object]
) -> KafkaTrial:
    udp, bps = None, share * rate_bps
    if bps:
        udp = Iperf3(lasts_s, udp=True, rate_bps=bps, omit_s=0, block_bytes=1400, window_bytes=WINDOW_BYTES)
    ping = Ping(count=round(lasts_s / PING_INTERVAL_S), interval_s=PING_INTERVAL_S)
    return KafkaTrial(load, path.link(rate_bps), udp, ping, alongside=tuple(alongside))
