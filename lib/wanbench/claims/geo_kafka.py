"""
Source 001: one strongly consistent Kafka over three regions, its throughput, its cost and the loss of a region.

Each claim is tested on the source's own numbers (`geo_kafka_own`) and on a re-run's estimate, if given: the working has
both answers, and the verdict is the re-run's. Costs of a re-run do not decide on the source's prices; they are shown
for comparison.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..checks import check_choice
from ..formatting import number
from ..stats.cost.cluster_cost import ClusterCost
from ..stats.result import Estimate
from .geo_kafka_own import own_numbers
from .ledger import Audit, above, read_claims
from .rules import (
    Rule,
    again,
    all_or_none,
    always,
    estimates_by_name,
    none,
    other_than_1,
    over,
    some,
    try_rules,
    under,
)

SOURCE = "001-geo-kafka"
LOCAL = 0.02
"""Share of the bytes that may still cross with client.rack: requests, metadata and the group's coordinator."""
FEW_S = 10.0
"""A few seconds are fewer than ten."""
NO_MORE = 1.05
"""Throughput no longer grows if it grows by less than 5 %, the least difference that the source itself states."""
SOURCES_CODEC = "lz4"
STORAGE = "storage"


FASTER = "Holds if the interval lies above 1."
NEVER = "Holds if there was none."
ALWAYS = "Holds if it was so in every one."
RULES = {
    "consistency": (Rule("taxing", over(1), FASTER),),
    "latency": (Rule("latency", over(1), FASTER),),
    "buffers": (Rule("buffers-help", over(1), FASTER),),
    "batches": (Rule("batches", other_than_1, "Holds if the interval does not contain 1."),),
    "linger": (Rule("linger", over(1), FASTER),),
    "producers": (Rule("nonlinear", under(1), "Holds if the interval lies below 1, which is linear."),),
    "producers_gain": (Rule("producers", other_than_1, "Holds if the interval does not contain 1."),),
    "partitions": (Rule("plateau", under(NO_MORE), f"Holds if the interval lies below {NO_MORE:g} times."),),
    "partitions_gain": (Rule("partitions", over(1), FASTER),),
    "consumers_over_producers": (Rule("slower", over(1), FASTER),),
    "rack": (
        Rule("local", under(LOCAL), f"Holds if the interval lies below {LOCAL:g}."),
        Rule(
            "local-cost",
            under(1),
            "Holds if the interval lies below 1: bytes between regions are what costs.",
        ),
    ),
    "rack_latency": (Rule("local-latency", under(1), "Holds if the interval lies below 1."),),
    "gateway": (
        Rule(
            "gateway",
            over(1),
            "Holds if a full mesh of the same total rate is faster. Whether nothing limits more is not tried.",
        ),
    ),
    "rpo": (
        Rule("rpo", none, NEVER),
        Rule("survives", none, NEVER),
        Rule("at-least-once", none, NEVER),
    ),
    "order": (Rule("order", lambda _: False, "The claim is about a whole topic, which has no one order."),),
    "rto": (Rule("rto", under(FEW_S), f"Holds if the interval lies below {number(FEW_S)} s."),),
    "service": (Rule("lights-on", all_or_none, "Holds if it was so in every one, fails if in none."),),
    "leaders": (Rule("balanced", always, "Holds if it was so for every one."),),
    "replicas": (Rule("in-sync", always, "Holds if it was so for every one."),),
    "elections": (Rule("elections", always, ALWAYS),),
    "producer_errors": (Rule("transitory", some, "Holds if there were some."),),
    "producers_failed": (Rule("none-fails", none, NEVER),),
    "rearranged": (Rule("rearranged", always, ALWAYS),),
    "replicas_back": (Rule("heals", always, ALWAYS),),
    "leaders_back": (Rule("rebalances", always, ALWAYS),),
    "healing": (Rule("autonomous", always, ALWAYS),),
}
"""By parameter of `geo_kafka`: the claims that an estimate tries by a bound."""
NO_VERDICT = (
    "The ratio depends on the rate of the links and on the machine, which may bound the tuned cluster and not the "
    "default; so it is no verdict on the gain that the source had on its own machines."
)
NUMBERS = {"consumers_cost": "consumers-cost", "crossings": "crossings"}
"""By parameter: the claimed number that an estimate is compared with."""


def geo_kafka(
    *,
    tuned_over_default: Estimate | None = None,
    consistency: Estimate | None = None,
    latency: Estimate | None = None,
    buffers: Estimate | None = None,
    batches: Estimate | None = None,
    linger: Estimate | None = None,
    compression: Mapping[str, tuple[Estimate, Estimate]] | None = None,
    producers: Estimate | None = None,
    producers_gain: Estimate | None = None,
    partitions: Estimate | None = None,
    partitions_gain: Estimate | None = None,
    partitions_limit: str | None = None,
    consumers_cost: Estimate | None = None,
    consumers_over_producers: Estimate | None = None,
    rack: Estimate | None = None,
    rack_latency: Estimate | None = None,
    gateway: Estimate | None = None,
    crossings: Estimate | None = None,
    cost: ClusterCost | None = None,
    rpo: Estimate | None = None,
    order: Estimate | None = None,
    rto: Estimate | None = None,
    service: Estimate | None = None,
    leaders: Estimate | None = None,
    replicas: Estimate | None = None,
    elections: Estimate | None = None,
    producer_errors: Estimate | None = None,
    producers_failed: Estimate | None = None,
    rearranged: Estimate | None = None,
    replicas_back: Estimate | None = None,
    leaders_back: Estimate | None = None,
    healing: Estimate | None = None,
) -> Audit:
    """
    Every claim of source 001. Leave out what was not measured.

    Parameters
    ----------
    tuned_over_default : Estimate
        Throughput with the tuned settings over that with Kafka's defaults; shown without a verdict.
    consistency : Estimate
        Throughput with weaker settings (acks=1) over that with acks=all and two in sync.
    latency : Estimate
        Time to an acknowledgement, in round trips between regions.
    buffers, batches, linger : Estimate
        Throughput with buffers of bandwidth times delay over the default; with the largest batch over the smallest;
        with linger.ms 50 over 0.
    compression : {codec: (bytes on the wire, processor time of the producer)}
        Both over those without compression; with "lz4".
    producers, producers_gain : Estimate
        Throughput of the most producers over that of one: divided by their number (1 is linear), and as it is.
    partitions, partitions_gain : Estimate
        Throughput with 144 partitions over that with 72; with 72 over the fewest.
    partitions_limit : str
        What is full at 144, named from the metrics; "storage" is what the source says.
    consumers_cost : Estimate
        What consumers that run at the same time take of the producers' throughput, in per cent.
    consumers_over_producers : Estimate
        Throughput of consumers alone over that of as many producers alone.
    rack, rack_latency : Estimate
        Bytes of consumers between regions, and their latency, with client.rack over without.
    gateway : Estimate
        Throughput with a link for each pair of regions over that with one gateway per region of the same total rate.
    crossings : Estimate
        Bytes counted between regions, per byte of message.
    cost : ClusterCost
        The cost of the re-run; shown without a verdict.
    rpo : Estimate
        Acknowledged messages that are missing from the log, or were never delivered.
    order : Estimate
        Messages out of order within a partition; shown.
    rto : Estimate
        Seconds without service after a region went. An outage that healing ended is a lower limit.
    service : Estimate
        Share of the episodes in which the regions that remain had writes acknowledged again before healing.
    leaders, replicas : Estimate
        Share of the trials or episodes in which every broker leads as many partitions as every other; in which every
        partition has a replica in sync in every region.
    elections, rearranged : Estimate
        Share of the episodes in which new leaders were elected; in which consumers took over all partitions.
    replicas_back, leaders_back, healing : Estimate
        Share of the episodes in which all replicas came back into sync; leaders to their brokers; both, untouched (NaN:
        not watched for long enough).
    producer_errors, producers_failed : Estimate
        Share of the episodes in which producers that remain had errors; in which any of these gave up.

    Raises
    ------
    ParameterError
        `compression` lacks lz4, or what should be an Estimate is none.

    Examples
    --------
    >>> rows = geo_kafka().table().set_index("claim")
    >>> rows.verdict[["message-rate", "per-message", "per-hour", "rto"]].tolist()
    ['not reproduced', 'not reproduced', 'reproduced', 'undecided']
    """
    given = dict(locals())
    estimates = estimates_by_name(given, ("tuned_over_default", *NUMBERS, *RULES))
    audit = read_claims(SOURCE)
    own_numbers(audit)
    for name, claim in NUMBERS.items():
        if name in estimates:
            audit.compare(claim, estimates[name], f"{_working(audit, claim)} Re-run:")
    if "tuned_over_default" in estimates:
        again(audit, "tuning", None, f"{estimates['tuned_over_default'].sentence} {NO_VERDICT}")
    try_rules(audit, RULES, estimates)
    if compression is not None:
        _compression(audit, compression)
    if partitions_limit is not None:
        found = f"Holds if {STORAGE} is what is full. The metrics say: {partitions_limit}."
        again(audit, "storage", partitions_limit == STORAGE, found)
    if cost is not None:
        for claim in ("per-hour", "per-message"):
            audit.rows[claim]["working"] += f" Re-run, at its own rate: {cost.sentence}"
    return audit


def _working(audit: Audit, claim: str) -> str:
    return audit.rows[claim]["working"]


def _compression(audit: Audit, codecs: Mapping[str, tuple[Estimate, Estimate]]) -> None:
    check_choice("codec that compression needs", SOURCES_CODEC, codecs)
    size, processor = codecs[SOURCES_CODEC]
    fewer = f"Holds if the interval lies below 1: the source gives no bound. {size.sentence}"
    again(audit, "compression-bytes", under(1)(size), fewer)
    again(audit, "compression-processor", above(processor, 1), f"{FASTER} {processor.sentence}")
    better, open_ones = [], []
    for codec, (other_size, other_processor) in codecs.items():
        if codec == SOURCES_CODEC:
            continue
        if other_size.high < size.low and other_processor.high < processor.low:
            better.append(codec)
        elif not (size.high < other_size.low or processor.high < other_processor.low):
            open_ones.append(codec)
    each = "; ".join(f"{codec} {one.written} and {two.written}" for codec, (one, two) in codecs.items())
    again(
        audit,
        "lz4",
        False if better else None if open_ones else True,
        "Holds if no codec takes both fewer bytes and less processor time. Better in both: "
        f"{', '.join(better) or 'none'}; open: {', '.join(open_ones) or 'none'}. Bytes and processor time over "
        f"those without: {each}.",
    )
