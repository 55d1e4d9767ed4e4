"""
Source 003, tests 1 to 3: the tail latency of Confluent Cloud against that of Apache Kafka.

Every number is read from the claims, so correcting a digit there corrects the verdict here. An advantage of one system
over another has two readings, and the source uses both: the ratio of latencies, and, in its column of improvements, the
excess over the better one (old - new) / new, which is 1 less. A re-run tests claims about Apache Kafka alone.
"""

from __future__ import annotations

from wanbench.formatting import number, quantity
from wanbench.methods.claims.ledger import Audit, read_claims
from wanbench.methods.claims.rules import Rule, apply_rules, over
from wanbench.methods.result import Estimate, Result

SOURCE = "003-tail-latency"
PAGE = "08-tail-latency"
CAVEATS = (
    "penalised", "synthetic", "your-mileage", "fanouts", "majority", "instances-vary", "repeatable", "tiering",
    "not-alike", "not-in-production",
)  # fmt: skip
"""The claims by which the authors limit their others."""
CLUSTERS = {"2": 2, "28": 28}
"""CKUs by their name in claims."""
FIGURE_6 = {"2": (1, 2, 3), "28": (4, 5, 6, 7, 8)}
"""Rows of figure 6 by CKU, each with rising throughput."""
FIGURE_7 = {"2": (1, 2), "28": (3, 4)}
"""Rows of figure 7 by CKU, each with rising partitions."""
AT_THE_LIMIT = {"2": "f6-3", "28": "f6-8"}
"""The row of figure 6 that continues figure 7: the same throughput with all partitions."""
CONSISTENT = 2.0
"""A latency, or an advantage, that stays within a factor of two is consistent; one that more than doubles is not. The
source gives no bound; its least "significant" growth, Apache Kafka's over partitions, is about a doubling."""
BATCH_DEFAULT_BYTES = 16_384
"""batch.size of Kafka's Java producer (ProducerConfig)."""
PERCENT = 100.0
RULES = (
    # p99 at the highest throughput over p99 at the lowest, partitions fixed; with the most over with the fewest
    Rule("throughput_growth", "kafka-throughput", over(CONSISTENT)),
    Rule("partitions_growth", "kafka-partitions", over(CONSISTENT)),
)
SHOWN = {
    "other_throughput_growth": ("figure-5-consistent", "stays-low"),
    "other_partitions_growth": ("any-scenario",),
    "growth_ratio": ("more-stable",),
    "ratio_growth": ("figure-5-expands",),
    "ratio_partitions_growth": ("t2-consistent",),
    "tail_ratio_growth": ("t3-widens", "predictable"),
    "other_tail_growth": ("t3-stays-low",),
    "largest_ratio": ("p99-times", "t1-improvement", "figure-5-times"),
    "largest_partitions_ratio": ("t2-improvement",),
    "largest_tail_ratio": ("t3-times",),
}
"""Quantities of two other systems, which are no verdict on Confluent Cloud."""


def tail_latency(**measured: Estimate | Result | None) -> Audit:
    """
    Every claim of the first half of source 003 (tests 1 to 3), on its own numbers and on a re-run.

    Parameters
    ----------
    **measured
        The quantities of `RULES` and `SHOWN` that were measured (`studies.tail_latency.evidence`).

    Raises
    ------
    ParameterError
        There is no such quantity, or it is no estimate.

    Examples
    --------
    >>> rows = tail_latency().table().set_index("claim")
    >>> rows.own[["p99-times", "t1-improvement", "t1-low-aggregate", "t3-times"]].tolist()
    ['not reproduced', 'reproduced', 'not reproduced', 'undecided']
    """
    audit = read_claims(SOURCE).on_page(PAGE)
    own_numbers(audit)
    apply_rules(audit, RULES, SHOWN, measured)
    return audit


def own_numbers(audit: Audit) -> None:
    """Test the claims of tests 1 to 3 that the source's own numbers can test."""
    _rates(audit)
    _shapes(audit)
    _client(audit)
    _rows(audit)
    _headlines(audit)
    _growth(audit)
    _caveats(audit)


def ratio(audit: Audit, row: str) -> float:
    """p99 of Apache Kafka over that of Confluent Cloud in a row such as "f6-3"."""
    return audit.number(f"{row}-kafka") / audit.number(f"{row}-kora")


def _all_rows(figure: str, rows: dict[str, tuple[int, ...]]) -> list[str]:
    return [f"{figure}-{row}" for each in rows.values() for row in each]


def _mb_per_s(audit: Audit, claim: str) -> float:
    """A claimed throughput in MB/s."""
    return audit.number(claim) * {"MB/s": 1, "GB/s": 1000}[audit.claims[claim].unit]


def _by_partitions(cku: str) -> list[str]:
    """The rows of a cluster with rising partitions at its full throughput: those of figure 7, then that of figure 6."""
    return [*(f"f7-{row}" for row in FIGURE_7[cku]), AT_THE_LIMIT[cku]]


def _rates(audit: Audit) -> None:
    """Egress is the number of readers times ingress, and the aggregate one more."""
    reads = audit.number("fan-out")
    low, high = _mb_per_s(audit, "t1-low"), _mb_per_s(audit, "t1-high")
    added = f"Own numbers: ingress is read {number(reads)} times, so the aggregate is {number(1 + reads)} times ingress"
    alone = f"{number(low * reads)} MB/s is egress alone"
    for claim in ("range-low", "t1-low-aggregate"):
        audit.compare(claim, low * (1 + reads), f"{added}; {alone}.")
    audit.judge(
        "range-high",
        high / 1e3 * (1 + reads) >= audit.number("range-high"),
        f"Holds if the highest aggregate reaches it. {added}: {number(high / 1e3 * (1 + reads))} GB/s.",
    )
    audit.compare("t1-high-aggregate", high / 1e3 * (1 + reads), f"{added}.")
    audit.compare("figure-1-aggregate", audit.number("figure-1-ingress") * (1 + reads), f"{added}.")
    audit.compare("figure-1-egress", audit.number("figure-1-ingress") * reads, "Own numbers: ingress times reads.")
    audit.compare("fan-out", audit.number("groups"), "Own numbers: as often as there are consumer groups.")
    full = _mb_per_s(audit, "cku28-ingress") / 1e3
    for claim in ("figure-1-ingress", "t1-high", "t2-28cku-rate"):
        audit.compare(claim, full, "Own numbers: the limit of 28 CKU.")
    audit.compare("t2-2cku-rate", _mb_per_s(audit, "cku2-ingress"), "Own numbers: the limit of 2 CKU.")
    audit.compare("t1-low", _mb_per_s(audit, "f6-1-load"), "Own numbers: the first row of figure 6.")
    audit.compare("t3-rate", full, "Own numbers: the limit of 28 CKU.")


def _shapes(audit: Audit) -> None:
    """Limits per CKU, topics and partitions."""
    reads, each = audit.number("fan-out"), audit.number("t1-per-topic")
    for one, other in (("2", "28"), ("28", "2")):
        mine, theirs = CLUSTERS[one], CLUSTERS[other]
        topics = audit.number(f"t1-{one}cku-topics")
        audit.compare(
            f"cku{one}-ingress",
            audit.number(f"cku{other}-ingress") / theirs * mine,
            f"Own numbers: as much per CKU as with {other}.",
        )
        audit.compare(
            f"cku{one}-egress", audit.number(f"cku{one}-ingress") * reads, "Own numbers: ingress times reads."
        )
        audit.compare(
            f"cku{one}-partitions",
            topics * each,
            f"Own numbers: {number(topics)} topics of {number(each)}. That is "
            f"{number(audit.number(f'cku{one}-partitions') / mine, 0)} per CKU.",
        )
        of_limit = "Own numbers: the limit of figure 3."
        audit.compare(f"t1-{one}cku-partitions", audit.number(f"cku{one}-partitions"), of_limit)
        audit.compare(
            f"t1-{one}cku-topics", audit.number(f"cku{one}-partitions") / each, "Own numbers: partitions by topic."
        )
        audit.compare(f"t2-{one}cku-topics", topics, "Own numbers: as in test 1.")
    per_topic = [audit.number(f"cku{cku}-partitions") / audit.number(f"t1-{cku}cku-topics") for cku in CLUSTERS]
    audit.compare("t1-per-topic", max(per_topic), f"Own numbers: {' and '.join(map(number, per_topic))}.")
    audit.compare("t3-topics", audit.number("t1-28cku-topics"), "Own numbers: as in test 1.")


def _client(audit: Audit) -> None:
    """Effects of linger and batches: how much a producer must send within linger.ms."""
    size, linger_s = 1e3 * audit.number("message-size"), audit.number("linger") / 1e3
    per_linger = [
        1e6 * _mb_per_s(audit, f"f6-{row}-load") / audit.number(f"t1-{cku}cku-topics") * linger_s
        for cku, rows in FIGURE_6.items()
        for row in rows
    ]
    audit.note(
        "linger",
        f"Own numbers: in that time a producer has {number(min(per_linger) / size, 1)} messages at the "
        f"lowest throughput and {number(max(per_linger) / size, 1)} at the highest, for a topic of "
        f"{number(audit.number('t1-per-topic'))} partitions; a batch takes {number(BATCH_DEFAULT_BYTES / size, 1)}.",
    )
    kib = BATCH_DEFAULT_BYTES / 1024
    audit.compare("batch", kib, f"The default of the Java client is {number(BATCH_DEFAULT_BYTES)} bytes.")
    messages = 1e6 * _mb_per_s(audit, "t1-high") / size * 3600 * audit.number("duration")
    audit.note(
        "duration",
        f"Own numbers: {number(messages / 1e9)} billion messages at the highest throughput, and still one "
        "test per row: no repeat and no interval is printed.",
    )


def _rows(audit: Audit) -> None:
    """Figures 6 and 7: their settings, and the column of improvements recomputed."""
    for cku, rows in FIGURE_6.items():
        limit = audit.number(f"cku{cku}-ingress")
        for row in rows:
            share = _mb_per_s(audit, f"f6-{row}-load") / limit
            _setting(audit, f"f6-{row}-load", share <= 1, f"{quantity(share, 'fraction')} of the cluster's limit.")
    for cku, rows in FIGURE_7.items():
        topics, limit = audit.number(f"t2-{cku}cku-topics"), audit.number(f"cku{cku}-partitions")
        for row in rows:
            partitions = audit.number(f"f7-{row}-load")
            shares = f"{number(partitions / topics)} per topic, {quantity(partitions / limit, 'fraction')}"
            possible = partitions % topics == 0 and partitions <= limit
            _setting(audit, f"f7-{row}-load", possible, f"{shares} of the cluster's limit.")
    for row in (*_all_rows("f6", FIGURE_6), *_all_rows("f7", FIGURE_7)):
        _improvement(audit, row)


def _setting(audit: Audit, claim: str, possible: bool, text: str) -> None:
    """Note what a setting means; other numbers of the source can only contradict it."""
    audit.note(claim, text)
    if not possible:
        audit.judge(claim, False, text)


def _improvement(audit: Audit, row: str) -> None:
    made = audit.from_printed(lambda old, new: PERCENT * (old - new) / new, f"{row}-kafka", f"{row}-kora", unit="%")
    old, new = (audit.claims[f"{row}-{system}"].formatted for system in ("kafka", "kora"))
    audit.compare(
        f"{row}-gain",
        made,
        f"Own numbers: ({old} - {new}) / {new}, the excess; the ratio is {number(ratio(audit, row), 2)}.",
    )


def _headlines(audit: Audit) -> None:
    """ "10x", "12x", "11.5x" and "16x" against the largest advantage in each table, in both readings."""
    largest = {
        figure: max(_all_rows(figure, rows), key=lambda row: ratio(audit, row))
        for figure, rows in (("f6", FIGURE_6), ("f7", FIGURE_7))
    }
    texts = {}
    for figure, row in largest.items():
        old, new = (audit.claims[f"{row}-{system}"].formatted for system in ("kafka", "kora"))
        times = ratio(audit, row)
        texts[figure] = f"{old} / {new} = {number(times, 2)} as a ratio, {number(times - 1, 2)} as an excess"
    best = max(ratio(audit, row) for row in largest.values())
    own = f"Own numbers: the largest in figure 6 is {texts['f6']}; in figure 7 {texts['f7']}."
    reached = "Holds if the largest ratio reaches it, as an advantage of up to so much."
    every = _all_rows("f6", FIGURE_6) + _all_rows("f7", FIGURE_7)
    reaching = sum(ratio(audit, row) >= audit.number("title") for row in every)
    rows = f"{number(reaching)} of {number(len(every))} rows reach it."
    audit.judge("title", best >= audit.number("title"), f"{reached} {own} {rows}")
    top = ratio(audit, AT_THE_LIMIT["28"])
    audit.judge(
        "figure-1",
        top > audit.number("figure-1"),
        f"Holds if p99 in the row of that rate shows it: {number(top, 2)} times.",
    )
    audit.compare(
        "p99-times", best, f"{own} Cases that are not printed may show it; test 3 says it of other percentiles."
    )
    for claim in ("t1-improvement", "figure-5-times"):
        audit.compare(claim, ratio(audit, largest["f6"]) - 1, f"{own} As an excess, like the column of improvements.")
    names = (f"{largest['f7']}-{system}" for system in ("kafka", "kora"))
    times = audit.from_printed(lambda old, new: old / new, *names, unit="times")
    excess = f"as an excess, like the column of improvements, it would be {number(times.estimate - 1, 1)}."
    audit.compare("t2-improvement", times, f"{own} It is the ratio, rounded down; {excess}")
    audit.judge(
        "t3-times",
        None,
        "The source gives no numbers of figure 8. Own numbers: p99 at this rate and with as many topics is "
        f"{number(top, 1)} times in figure 6, so a higher percentile must show it.",
    )
    for claim, rows in (("t1-better", _all_rows("f6", FIGURE_6)), ("t2-better", _all_rows("f7", FIGURE_7))):
        ratios = [ratio(audit, row) for row in rows]
        audit.judge(
            claim,
            min(ratios) > 1,
            f"Holds if every ratio is above 1. Own numbers: {', '.join(number(each, 2) for each in ratios)}.",
        )


def _growth(audit: Audit) -> None:
    """How much each system's p99 grows over a cluster's rows."""
    by_load = {cku: [f"f6-{row}" for row in rows] for cku, rows in FIGURE_6.items()}
    by_partitions = {cku: _by_partitions(cku) for cku in CLUSTERS}
    kafka = _growths(audit, by_load, "kafka")
    kora = _growths(audit, by_load, "kora")
    kafka_partitions = _growths(audit, by_partitions, "kafka")
    kora_partitions = _growths(audit, by_partitions, "kora")
    words = {
        "kafka": f"over throughput Apache Kafka's is {_texts(kafka)}",
        "kora": f"Confluent Cloud's {_texts(kora)}",
        "both": f"over partitions {_texts(kafka_partitions)} against {_texts(kora_partitions)}",
    }
    own = f"Own numbers, largest over smallest p99: {words['kafka']}, {words['kora']}; {words['both']}."
    worse = f"Holds if it more than doubles, at the largest cluster ({CONSISTENT:g} times)."
    audit.judge("kafka-throughput", kafka["28"] > CONSISTENT, f"{worse} {own}")
    audit.judge("kafka-partitions", kafka_partitions["28"] > CONSISTENT, f"{worse} {own}")
    stable = all(kora[cku] < kafka[cku] and kora_partitions[cku] < kafka_partitions[cku] for cku in CLUSTERS)
    audit.judge("more-stable", stable, f"Holds if Confluent Cloud's differs less in each. {own}")
    same = f"Holds if it nowhere doubles ({CONSISTENT:g} times): the source gives no bound."
    everywhere = max(*kora.values(), *kora_partitions.values())
    for claim in ("stays-low", "any-scenario"):
        audit.judge(claim, everywhere < CONSISTENT, f"{same} {own}")
    audit.judge("figure-5-consistent", max(kora.values()) < CONSISTENT, f"{same} {own}")
    ratios = {cku: [ratio(audit, row) for row in rows] for cku, rows in by_load.items()}
    audit.judge(
        "figure-5-expands",
        all(each == sorted(each) for each in ratios.values()),
        f"Holds if the ratio grows from row to row. Own numbers: {_series(ratios)}.",
    )
    ratios = {cku: [ratio(audit, row) for row in rows] for cku, rows in by_partitions.items()}
    audit.judge(
        "t2-consistent",
        all(max(each) < CONSISTENT * min(each) for each in ratios.values()),
        f"Holds if the ratios at one cluster differ by less than {CONSISTENT:g} times: the source gives no bound. Own "
        f"numbers, with the row of figure 6 that has all partitions: {_series(ratios)}.",
    )
    every = [ratio(audit, row) for row in (*_all_rows("f6", FIGURE_6), *_all_rows("f7", FIGURE_7))]
    audit.judge(
        "your-mileage",
        max(every) > CONSISTENT * min(every),
        f"Holds if the ratio differs by more than {CONSISTENT:g} times between rows. Own numbers: "
        f"{number(min(every), 2)} to {number(max(every), 2)}.",
    )


def _growths(audit: Audit, rows: dict[str, list[str]], system: str) -> dict[str, float]:
    """Largest over smallest p99 of a system, by cluster."""
    found = {}
    for cku, each in rows.items():
        values = [audit.number(f"{row}-{system}") for row in each]
        found[cku] = max(values) / min(values)
    return found


def _texts(growths: dict[str, float]) -> str:
    return " and ".join(f"{number(growth, 1)} times at {cku} CKU" for cku, growth in growths.items())


def _series(ratios: dict[str, list[float]]) -> str:
    each = (f"{', '.join(number(one, 2) for one in values)} at {cku} CKU" for cku, values in ratios.items())
    return "; ".join(each)


def _caveats(audit: Audit) -> None:
    """The note under figure 7."""
    kora = [audit.number(f"{row}-kora") for row in _by_partitions("2")]
    loads = [audit.number(f"f7-{row}-load") for row in FIGURE_7["2"]] + [audit.number("cku2-partitions")]
    series = ", ".join(f"{number(ms)} ms with {number(load)}" for ms, load in zip(kora, loads, strict=True))
    slow_again = kora[-1] > kora[-2]
    audit.judge(
        "tiering",
        None,
        f"Own numbers: Confluent Cloud's p99 at 2 CKU is {series} partitions. "
        + (
            "Few partitions explain the first; nothing is said of the last, which is slow again and not marked."
            if slow_again
            else "It falls with the number of partitions, as the note says."
        ),
    )
    audit.judge(
        "not-alike",
        None,
        "An admission about the whole comparison: Apache Kafka ran without tiered storage in all "
        f"{len(_all_rows('f6', FIGURE_6) + _all_rows('f7', FIGURE_7))} rows, of which "
        f"{len(FIGURE_7['2'])} are marked.",
    )
