"""
Source 003, tests 1 to 3: the tail latency of Confluent Cloud against that of Apache Kafka.

Each claim is tested on the source's own numbers (`tail_latency_own`) and on a re-run's estimate, if given. A re-run
decides claims about Apache Kafka alone. It decides claims about both systems only if the better one was Confluent
Cloud; results of other systems are shown for comparison.
"""

from __future__ import annotations

from ..checks import check_flag
from ..stats.result import Estimate, Result
from .ledger import Audit, read_claims
from .rules import Rule, estimates_by_name, other_than_1, over, try_rules, under
from .tail_latency_own import CONSISTENT, own_numbers

SOURCE = "003-tail-latency"
PAGE = "08-tail-latency"
CAVEATS = (
    "penalised", "synthetic", "your-mileage", "fanouts", "majority", "instances-vary", "repeatable", "tiering",
    "not-alike", "not-in-production",
)  # fmt: skip
"""The claims by which the authors limit their others."""
MORE = f"Holds if the interval lies above {CONSISTENT:g} times."
LESS = f"Holds if the interval lies below {CONSISTENT:g} times."
KAFKA = {
    "throughput_growth": (Rule("kafka-throughput", over(CONSISTENT), MORE),),
    "partitions_growth": (Rule("kafka-partitions", over(CONSISTENT), MORE),),
    "default_threads": (Rule("defaults-worse", over(1), "Holds if the interval lies above 1."),),
    "fan_out": (Rule("fanouts", other_than_1, "Holds if the interval does not contain 1."),),
}
"""By parameter of `tail_latency`: claims about Apache Kafka alone."""
BOTH = {
    "other_throughput_growth": (
        Rule("figure-5-consistent", under(CONSISTENT), LESS),
        Rule("stays-low", under(CONSISTENT), LESS),
    ),
    "other_partitions_growth": (Rule("any-scenario", under(CONSISTENT), LESS),),
    "growth_ratio": (Rule("more-stable", over(1), "Holds if the interval lies above 1."),),
    "ratio_growth": (Rule("figure-5-expands", over(1), "Holds if the interval lies above 1."),),
    "ratio_partitions_growth": (Rule("t2-consistent", under(CONSISTENT), LESS),),
    "tail_ratio_growth": (
        Rule("t3-widens", over(1), "Holds if the interval lies above 1."),
        Rule("predictable", over(1), "Holds if the interval lies above 1."),
    ),
    "other_tail_growth": (Rule("t3-stays-low", under(CONSISTENT), LESS),),
}
"""By parameter: claims about Apache Kafka against Confluent Cloud."""
TIMES = {
    "largest_ratio": ("p99-times", "t1-improvement", "figure-5-times"),
    "largest_partitions_ratio": ("t2-improvement",),
    "largest_tail_ratio": ("t3-times",),
}
"""By parameter: claimed numbers next to which a ratio is shown; only that of Confluent Cloud is compared."""
OTHERS = "Two other systems, for comparison only:"
ANSWERS = {True: "it holds there.", False: "it does not hold there.", None: "it is open there."}


def tail_latency(
    *,
    throughput_growth: Estimate | Result | None = None,
    partitions_growth: Estimate | Result | None = None,
    other_throughput_growth: Estimate | Result | None = None,
    other_partitions_growth: Estimate | Result | None = None,
    growth_ratio: Estimate | Result | None = None,
    ratio_growth: Estimate | Result | None = None,
    ratio_partitions_growth: Estimate | Result | None = None,
    tail_ratio_growth: Estimate | Result | None = None,
    other_tail_growth: Estimate | Result | None = None,
    largest_ratio: Estimate | Result | None = None,
    largest_partitions_ratio: Estimate | Result | None = None,
    largest_tail_ratio: Estimate | Result | None = None,
    default_threads: Estimate | Result | None = None,
    fan_out: Estimate | Result | None = None,
    confluent_cloud: bool = False,
) -> Audit:
    """
    Every claim of the first half of source 003 (tests 1 to 3). Leave out what was not measured.

    Each is an Estimate in "times", or a Result whose first estimate is one. "The first system" is unmodified Apache
    Kafka, the numerator of every ratio; "the other" is compared with it. Latencies are end to end, from the intended
    time of sending.

    Parameters
    ----------
    throughput_growth, partitions_growth : Estimate or Result
        For the first system: p99 at the highest throughput over p99 at the lowest, partitions fixed; p99 with the most
        partitions over p99 with the fewest, throughput fixed.
    other_throughput_growth, other_partitions_growth : Estimate or Result
        The same for the other system.
    growth_ratio : Estimate or Result
        `throughput_growth` over `other_throughput_growth`.
    ratio_growth : Estimate or Result
        Ratio of both systems' p99 at the highest throughput over that ratio at the lowest.
    ratio_partitions_growth : Estimate or Result
        Largest ratio of both systems' p99 over partitions, over the smallest such ratio.
    tail_ratio_growth : Estimate or Result
        Ratio of both systems' p99.9 over the ratio of their p50, at the highest throughput.
    other_tail_growth : Estimate or Result
        For the other system: p99.9 over p50 at the highest throughput.
    largest_ratio, largest_partitions_ratio, largest_tail_ratio : Estimate or Result
        Largest ratio of both systems' p99 over throughputs; over partitions; largest ratio of any percentile at the
        highest throughput. Shown next to "16x", "12x" and "11.5x".
    default_threads : Estimate or Result
        p99 of Apache Kafka with the default replica fetchers, network and I/O threads over that with 16 of each.
    fan_out : Estimate or Result
        p99 with another fan-out over that with three groups.
    confluent_cloud : bool
        Whether the other system was Confluent Cloud.

    Raises
    ------
    ParameterError
        What should be an Estimate or a Result is neither.

    Examples
    --------
    >>> rows = tail_latency().table().set_index("claim")
    >>> rows.verdict[["p99-times", "t1-improvement", "t1-low-aggregate", "t3-times"]].tolist()
    ['not reproduced', 'reproduced', 'not reproduced', 'undecided']
    """
    given = dict(locals())
    check_flag("confluent_cloud", confluent_cloud)
    names = [name for name in given if name != "confluent_cloud"]
    estimates = estimates_by_name(given, names)
    audit = read_claims(SOURCE).on_page(PAGE)
    own_numbers(audit)
    try_rules(audit, KAFKA, estimates)
    if confluent_cloud:
        try_rules(audit, BOTH, estimates)
        _compare(audit, estimates)
    else:
        _shown(audit, estimates)
    return audit


def _compare(audit: Audit, estimates: dict[str, Estimate]) -> None:
    """The claimed advantages against those measured with Confluent Cloud itself."""
    for name, claims in TIMES.items():
        for claim in claims if name in estimates else ():
            audit.compare(claim, estimates[name], f"{audit.rows[claim]['working']} Re-run, as a ratio:")


def _shown(audit: Audit, estimates: dict[str, Estimate]) -> None:
    """Results of two other systems, in the working only."""
    for name, rules in BOTH.items():
        for rule in rules if name in estimates else ():
            answer = ANSWERS[rule.holds(estimates[name])]
            _add(audit, rule.claim, f"{OTHERS} {answer} {rule.words} {estimates[name].sentence}")
    for name, claims in TIMES.items():
        for claim in claims if name in estimates else ():
            _add(audit, claim, f"{OTHERS} {estimates[name].sentence}")


def _add(audit: Audit, claim: str, text: str) -> None:
    audit.rows[claim]["working"] += f" {text}"
