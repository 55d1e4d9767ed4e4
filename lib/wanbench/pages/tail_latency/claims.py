"""
Test source 003, tests 1 to 3: the tail latency of Confluent Cloud against that of Apache Kafka.

Every number of the source is read from its file of claims, so correcting a digit there corrects the verdict. The source
states advantages as the ratio of latencies (old / new) and, in its column of improvements, as the excess, which is the
ratio minus 1. Measured quantities test only claims about Apache Kafka.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from wanbench.formatting import count, number, quantity
from wanbench.methods.claims.ledger import Audit, read_claims
from wanbench.methods.claims.rules import Rule, apply_rules, over
from wanbench.methods.result import Estimate, Fields, Result
from wanbench.methods.result.means import geometric_mean
from wanbench.methods.tails import quantile_intervals as order

from .side_by_side import SideBySide, Step
from .trials import TailTrials

SOURCE = "003-tail-latency"
PAGE = "08-tail-latency"
CLUSTERS = {"2": 2, "28": 28}
"""Size of each cluster in CKUs (units of Confluent Cloud), by its name in claims."""
FIGURE_6 = {"2": ["f6-1", "f6-2", "f6-3"], "28": ["f6-4", "f6-5", "f6-6", "f6-7", "f6-8"]}
"""Rows of figure 6 by CKU, in order of rising throughput."""
FIGURE_7 = {"2": ["f7-1", "f7-2"], "28": ["f7-3", "f7-4"]}
"""Rows of figure 7 by CKU, in order of rising numbers of partitions."""
ROWS_6, ROWS_7 = (rows["2"] + rows["28"] for rows in (FIGURE_6, FIGURE_7))
AT_THE_LIMIT = {"2": "f6-3", "28": "f6-8"}
"""The row of figure 6 that continues figure 7: the same throughput with all partitions."""
CONSISTENT = 2.0
"""
A latency, or an advantage, counts as consistent if its values differ by less than this factor. The source gives no
limit. The smallest growth that it calls "significant" is that of Apache Kafka's p99 as the number of partitions grows:
by a factor of 2.2 at 28 CKU.
"""
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
"""
Measured quantities that are shown next to claims about Confluent Cloud but cannot decide them, because Confluent Cloud
was not tested.
"""


CHOSEN = "the step was chosen from the same trials for its large ratio, so the ratio is overestimated"
COMBINED = {
    "method": "Student's t on the logarithms of trials' quantiles, combined within a block; geometric mean over blocks",
    "assumption": "Blocks are independent and represent further blocks",
}
FAR, MIDDLE = 0.999, 0.5


def tail_latency(**measured: Estimate | Result | None) -> Audit:
    """
    Test every claim of the first half of source 003 (tests 1 to 3), by arithmetic on its numbers and by measurements.

    `measured` has the quantities that `evidence` returns. Raises ParameterError: a name is not in `RULES` or `SHOWN`,
    or a value is not an estimate.

    >>> rows = tail_latency().table().set_index("claim")
    >>> rows.own[["p99-times", "t1-improvement", "t1-low-aggregate", "t3-times"]].tolist()
    ['not reproduced', 'reproduced', 'not reproduced', 'undecided']
    """
    audit = read_claims(SOURCE).on_page(PAGE)
    own_numbers(audit)
    apply_rules(audit, RULES, SHOWN, measured)
    return audit


def own_numbers(audit: Audit) -> None:
    """Test the claims of tests 1 to 3 that arithmetic on the source's own numbers can test."""
    for claim, recomputed, working in (*_rates(audit), *_shapes(audit)):
        audit.compare(claim, recomputed, f"The source's numbers: {working}")
    for judge in (_client, _rows, _headlines, _growth, _caveats):
        judge(audit)


def ratio(audit: Audit, row: str) -> float:
    """Return the ratio of Apache Kafka's p99 to Confluent Cloud's, in a row of figure 6 or 7 such as "f6-3"."""
    return audit.number(f"{row}-kafka") / audit.number(f"{row}-kora")


def _mb_per_s(audit: Audit, claim: str) -> float:
    """Return a claimed throughput in MB/s."""
    return audit.number(claim) * {"MB/s": 1, "GB/s": 1000}[audit.claims[claim].unit]


def _by_partitions(cku: str) -> list[str]:
    """Return the rows of a cluster (`cku`) at full throughput, by increasing partitions: figure 7, then one of 6."""
    return [*FIGURE_7[cku], AT_THE_LIMIT[cku]]


def _rates(audit: Audit) -> list[tuple[str, float, str]]:
    """Recompute egress (ingress x consumer groups), aggregate throughput, and limits of rates, with the working."""
    reads, ingress = audit.number("fan-out"), audit.number("figure-1-ingress")
    low, high, full = (_mb_per_s(audit, name) for name in ("t1-low", "t1-high", "cku28-ingress"))
    most = high / 1e3 * (1 + reads)
    added = f"ingress is read {number(reads)} times, so the aggregate is {number(1 + reads)} times ingress"
    reached = (
        f"Holds if the highest aggregate reaches the claimed number. The source's numbers: {added}: {number(most)} "
        "GB/s."
    )
    audit.judge("range-high", most >= audit.number("range-high"), reached)
    alone = f"{added}; {number(low * reads)} MB/s is egress alone."
    at_the_limit = ("figure-1-ingress", "t1-high", "t2-28cku-rate", "t3-rate")
    return [
        *((name, low * (1 + reads), alone) for name in ("range-low", "t1-low-aggregate")),
        ("t1-high-aggregate", most, f"{added}."),
        ("figure-1-aggregate", ingress * (1 + reads), f"{added}."),
        ("figure-1-egress", ingress * reads, "ingress times the number of reads."),
        ("fan-out", audit.number("groups"), "the number of consumer groups."),
        *((name, full / 1e3, "the limit of 28 CKU.") for name in at_the_limit),
        ("t2-2cku-rate", _mb_per_s(audit, "cku2-ingress"), "the limit of 2 CKU."),
        ("t1-low", _mb_per_s(audit, "f6-1-load"), "the first row of figure 6."),
    ]


def _shapes(audit: Audit) -> list[tuple[str, float, str]]:
    """Recompute limits, topics and partitions of both clusters, with the working."""
    reads, each, rows, per_topic = audit.number("fan-out"), audit.number("t1-per-topic"), [], []
    for one, other in (("2", "28"), ("28", "2")):
        topics, partitions = audit.number(f"t1-{one}cku-topics"), audit.number(f"cku{one}-partitions")
        ingress = audit.number(f"cku{one}-ingress")
        per_cku = f"A CKU then has {number(partitions / CLUSTERS[one], 0)} partitions."
        scaled = audit.number(f"cku{other}-ingress") / CLUSTERS[other] * CLUSTERS[one]
        rows += [
            (f"cku{one}-ingress", scaled, f"as much per CKU as with {other}."),
            (f"cku{one}-egress", ingress * reads, "ingress times the number of reads."),
            (f"cku{one}-partitions", topics * each, f"{number(topics)} topics of {number(each)}. {per_cku}"),
            (f"t1-{one}cku-partitions", partitions, "the limit of figure 3."),
            (f"t1-{one}cku-topics", partitions / each, "partitions divided by partitions per topic."),
            (f"t2-{one}cku-topics", topics, "as in test 1."),
        ]
        per_topic.append(partitions / topics)
    rows.append(("t1-per-topic", max(per_topic), f"{' and '.join(map(number, per_topic))}."))
    return [*rows, ("t3-topics", audit.number("t1-28cku-topics"), "as in test 1.")]


def _client(audit: Audit) -> None:
    """Note how many messages a producer has within linger.ms, the default batch size, and the length of tests."""
    size, linger_s = 1e3 * audit.number("message-size"), audit.number("linger") / 1e3
    per_linger = [
        1e6 * _mb_per_s(audit, f"{row}-load") / audit.number(f"t1-{cku}cku-topics") * linger_s / size
        for cku, rows in FIGURE_6.items()
        for row in rows
    ]
    audit.note(
        "linger",
        f"The source's numbers: within linger.ms a producer collects {number(min(per_linger), 1)} messages at the "
        f"lowest throughput and {number(max(per_linger), 1)} at the highest, for a topic of "
        f"{number(audit.number('t1-per-topic'))} partitions; a batch holds {number(BATCH_DEFAULT_BYTES / size, 1)}.",
    )
    default = f"The default of the Java client is {number(BATCH_DEFAULT_BYTES)} bytes."
    audit.compare("batch", BATCH_DEFAULT_BYTES / 1024, default)
    messages = 1e6 * _mb_per_s(audit, "t1-high") / size * 3600 * audit.number("duration")
    many = (
        f"The source's numbers: that is {number(messages / 1e9)} billion messages at the highest throughput, but only "
        "one"
    )
    audit.note("duration", f"{many} test per row: no repetition and no interval is printed.")


def _rows(audit: Audit) -> None:
    """Test the settings of figures 6 and 7, and recompute their column of improvements."""
    for cku in CLUSTERS:
        limit = audit.number(f"cku{cku}-ingress")
        for row in FIGURE_6[cku]:
            share = _mb_per_s(audit, f"{row}-load") / limit
            _setting(audit, f"{row}-load", share <= 1, f"{quantity(share, 'fraction')} of the cluster's limit.")
        topics, limit = audit.number(f"t2-{cku}cku-topics"), audit.number(f"cku{cku}-partitions")
        for row in FIGURE_7[cku]:
            partitions = audit.number(f"{row}-load")
            shares = f"{number(partitions / topics)} per topic, {quantity(partitions / limit, 'fraction')}"
            possible = partitions % topics == 0 and partitions <= limit
            _setting(audit, f"{row}-load", possible, f"{shares} of the cluster's limit.")
    for row in (*ROWS_6, *ROWS_7):
        pair = [f"{row}-kafka", f"{row}-kora"]
        old, new = (audit.claims[name].formatted for name in pair)
        made = audit.from_printed(lambda old, new: PERCENT * (old - new) / new, *pair, unit="%")
        times = number(ratio(audit, row), 2)
        audit.compare(
            f"{row}-gain", made, f"The source's numbers: ({old} - {new}) / {new}; the p99 is {times} times as high."
        )


def _setting(audit: Audit, claim: str, possible: bool, text: str) -> None:
    """Add a note to the claim of a setting, and judge it as not reproduced unless it is `possible`."""
    audit.note(claim, text)
    if not possible:
        audit.judge(claim, False, text)


def _headlines(audit: Audit) -> None:
    """Test "10x", "12x", "11.5x" and "16x" against the largest advantage in each table, as a ratio and as an excess."""
    ratios = {row: ratio(audit, row) for row in (*ROWS_6, *ROWS_7)}
    largest, texts = [max(rows, key=ratios.__getitem__) for rows in (ROWS_6, ROWS_7)], []
    for row in largest:
        old, new = (audit.claims[f"{row}-{system}"].formatted for system in ("kafka", "kora"))
        times = ratios[row]
        texts.append(f"{old} / {new} = {number(times, 2)} as a ratio, {number(times - 1, 2)} as an excess")
    best, top = max(ratios.values()), ratios[AT_THE_LIMIT["28"]]
    own = f"The source's numbers: the largest improvement in figure 6 is {texts[0]}; that in figure 7 is {texts[1]}."
    column = "as the source's column of improvements does"
    reaching = sum(times >= audit.number("title") for times in ratios.values())
    rows = f"{number(reaching)} of {number(len(ratios))} rows reach the claimed ratio."
    reached = "Holds if the largest ratio reaches the claimed ratio, because the claim says “up to”."
    audit.judge("title", best >= audit.number("title"), f"{reached} {own} {rows}")
    shown = (
        "Holds if the ratio of p99 in the row with the claim's rate exceeds the claimed ratio. The row has "
        f"{number(top, 2)}."
    )
    audit.judge("figure-1", top > audit.number("figure-1"), shown)
    others = "Cases that the source does not print may reach it; its test 3 claims this ratio for higher percentiles."
    audit.compare("p99-times", best, f"{own} {others}")
    for claim in ("t1-improvement", "figure-5-times"):
        audit.compare(claim, ratios[largest[0]] - 1, f"{own} The claim states the ratio minus 1, {column}.")
    names = (f"{largest[1]}-{system}" for system in ("kafka", "kora"))
    times = audit.from_printed(lambda old, new: old / new, *names, unit="times")
    excess = f"if it stated the ratio minus 1, {column}, it would be {number(times.estimate - 1, 1)}."
    audit.compare("t2-improvement", times, f"{own} The claim states the ratio, rounded down; {excess}")
    implied = (
        "The source prints no numbers of figure 8. The last row of figure 6 has the same rate and number of topics. "
        f"There Apache Kafka's p99 is {number(top, 1)} times Confluent Cloud's, so only a higher percentile can reach "
        "the claimed factor."
    )
    audit.judge("t3-times", None, implied)
    for claim, figure in (("t1-better", ROWS_6), ("t2-better", ROWS_7)):
        series = ", ".join(number(ratios[row], 2) for row in figure)
        holds = all(ratios[row] > 1 for row in figure)
        audit.judge(
            claim,
            holds,
            f"Holds if each p99 of Apache Kafka exceeds that of Confluent Cloud. The source's ratios: {series}.",
        )


def _growth(audit: Audit) -> None:
    """Test claims on how much each system's p99 grows with throughput and with partitions at one cluster."""
    by_partitions = {cku: _by_partitions(cku) for cku in CLUSTERS}
    (kafka, kora), (kafka_partitions, kora_partitions) = (
        [_growths(audit, rows, system) for system in ("kafka", "kora")] for rows in (FIGURE_6, by_partitions)
    )
    own = (
        "The source's numbers: as throughput grows, the largest p99 of Apache Kafka over its smallest is "
        f"{_texts(kafka)}, and that of Confluent Cloud {_texts(kora)}. As the number of partitions grows, these ratios "
        f"are {_texts(kafka_partitions)} for Apache Kafka, and {_texts(kora_partitions)} for Confluent Cloud."
    )
    worse = f"Holds if p99 grows by a factor above {CONSISTENT:g} at the largest cluster."
    same = f"Holds if p99 grows by a factor below {CONSISTENT:g} everywhere (the source gives no limit)."
    stable = all(kora[cku] < kafka[cku] and kora_partitions[cku] < kafka_partitions[cku] for cku in CLUSTERS)
    everywhere = max(*kora.values(), *kora_partitions.values()) < CONSISTENT
    by_load, with_more = (
        {cku: [ratio(audit, row) for row in own] for cku, own in rows.items()} for rows in (FIGURE_6, by_partitions)
    )
    grows = all(each == sorted(each) for each in by_load.values())
    even = all(max(each) < CONSISTENT * min(each) for each in with_more.values())
    bound = f"Holds if the ratios at one cluster differ by a factor below {CONSISTENT:g} (the source gives no limit)."
    all_partitions = f"The source's numbers, with the row of figure 6 that has all partitions: {_series(with_more)}."
    every = [ratio(audit, row) for row in (*ROWS_6, *ROWS_7)]
    ends = f"{number(min(every), 2)} to {number(max(every), 2)}"
    varies = f"Holds if the ratio differs by a factor above {CONSISTENT:g} between rows. The source's numbers: {ends}."
    for claim, holds, working in (
        ("kafka-throughput", kafka["28"] > CONSISTENT, f"{worse} {own}"),
        ("kafka-partitions", kafka_partitions["28"] > CONSISTENT, f"{worse} {own}"),
        (
            "more-stable",
            stable,
            f"Holds if Confluent Cloud's latency grows by a smaller factor than Apache Kafka's in every case. {own}",
        ),
        ("stays-low", everywhere, f"{same} {own}"),
        ("any-scenario", everywhere, f"{same} {own}"),
        ("figure-5-consistent", max(kora.values()) < CONSISTENT, f"{same} {own}"),
        (
            "figure-5-expands",
            grows,
            "Holds if, at each cluster size, Apache Kafka's p99 over Confluent Cloud's never falls from one row of "
            f"figure 6 to the next, as throughput rises. The source's numbers: {_series(by_load)}.",
        ),
        ("t2-consistent", even, f"{bound} {all_partitions}"),
        ("your-mileage", max(every) > CONSISTENT * min(every), varies),
    ):
        audit.judge(claim, holds, working)


def _growths(audit: Audit, rows: dict[str, list[str]], system: str) -> dict[str, float]:
    """Return, by cluster, the largest over the smallest p99 of a system in the cluster's rows."""
    p99 = {cku: [audit.number(f"{row}-{system}") for row in each] for cku, each in rows.items()}
    return {cku: max(values) / min(values) for cku, values in p99.items()}


def _texts(growths: dict[str, float]) -> str:
    return " and ".join(f"{number(growth, 1)} times at {cku} CKU" for cku, growth in growths.items())


def _series(ratios: dict[str, list[float]]) -> str:
    return "; ".join(f"{', '.join(number(one, 2) for one in own)} at {cku} CKU" for cku, own in ratios.items())


def _caveats(audit: Audit) -> None:
    """Test the note under figure 7, on tiered storage."""
    kora = [audit.number(f"{row}-kora") for row in _by_partitions("2")]
    loads = [*(audit.number(f"{row}-load") for row in FIGURE_7["2"]), audit.number("cku2-partitions")]
    series = ", ".join(f"{number(ms)} ms with {number(load)}" for ms, load in zip(kora, loads, strict=True))
    again = "The note explains the first p99; it neither marks nor explains the last, which is high again."
    falls = "This p99 falls as the number of partitions grows, as the note says."
    course = again if kora[-1] > kora[-2] else falls
    audit.judge(
        "tiering", None, f"The source's numbers: Confluent Cloud's p99 at 2 CKU is {series} partitions. {course}"
    )
    admitted = "This limits the whole comparison: Apache Kafka ran without tiered storage in all"
    marked = f"{len(ROWS_6 + ROWS_7)} rows, although only {len(FIGURE_7['2'])} are marked."
    audit.judge("not-alike", None, f"{admitted} {marked}")


def evidence(by_rate: SideBySide | None = None, by_partitions: SideBySide | None = None) -> dict[str, Estimate]:
    """
    Return every measured quantity that tests a claim, by its name in `RULES` or `SHOWN`.

    The first system represents the source's Apache Kafka, and is the numerator of ratios. The highest throughput is the
    last step at which both systems have trials that count, even if they fell behind.
    """
    made = {}
    for name, table in (("", by_rate), ("partitions_", by_partitions)):
        if table is not None:
            best = max((step.ratio for step in table.steps), key=lambda one: np.nan_to_num(one.estimate))
            made[f"largest_{name}ratio"] = _chosen(best) if len(table.steps) > 1 else best
            made |= _grown("partitions" if name else "throughput", table)
    made |= _far_out(by_rate) if by_rate is not None else {}
    return {name: one for name, one in made.items() if np.isfinite(one.estimate)}


def _grown(name: str, table: SideBySide) -> dict[str, Estimate]:
    """Estimate how much each system's percentile, and the ratio of both, grow from the first step to the last."""
    if len(table.steps) < 2:
        return {}
    q, p = table.q, order.name(table.q)
    (a, b), (a_last, b_last) = table.steps[0].tails, table.steps[-1].tails
    steps = _steps(table, table.steps)
    grown = {
        f"{name}_growth": _ratio([(a_last, q)], [(a, q)], f"growth of {p} of {a.name} {steps}"),
        f"other_{name}_growth": _ratio([(b_last, q)], [(b, q)], f"growth of {p} of {b.name} {steps}"),
    }
    if name == "throughput":
        both = [(a_last, q), (b, q)], [(b_last, q), (a, q)]
        grown["ratio_growth"] = _ratio(*both, f"growth of the ratio of both systems' {p} {steps}")
        grown["growth_ratio"] = _ratio(*both, f"growth of {p} of {a.name} over growth of {p} of {b.name} {steps}")
        return grown
    known = (step for step in table.steps if np.isfinite(step.ratio.estimate))
    ordered = sorted(known, key=lambda step: step.ratio.estimate)
    if len(ordered) > 1:
        (a, b), (a_last, b_last) = ordered[0].tails, ordered[-1].tails
        both = [(a_last, q), (b, q)], [(b_last, q), (a, q)]
        widest = _ratio(*both, f"growth of the ratio of both systems' {p} {_steps(table, ordered)}")
        grown["ratio_partitions_growth"] = _chosen(widest)
    return grown


def _steps(table: SideBySide, steps: list[Step]) -> str:
    return f"from {number(steps[0].step)} to {number(steps[-1].step)} {table.unit}"


def _far_out(table: SideBySide) -> dict[str, Estimate]:
    """Estimate p99.9 over p50 at the last step, and the largest ratio of the systems' percentiles at this step."""
    (a, b), far, middle = table.steps[-1].tails, order.name(FAR), order.name(MIDDLE)
    at = f"at {number(table.steps[-1].step)} {table.unit}"
    ratios = [
        _ratio([(a, q)], [(b, q)], f"{order.name(q)} of {a.name} over {b.name} {at}") for q in (MIDDLE, 0.9, 0.99, FAR)
    ]
    widening = f"ratio of both systems' {far} over that of their {middle} {at}"
    return {
        "other_tail_growth": _ratio([(b, FAR)], [(b, MIDDLE)], f"{far} over {middle} of {b.name} {at}"),
        "tail_ratio_growth": _ratio([(a, FAR), (b, MIDDLE)], [(b, FAR), (a, MIDDLE)], widening),
        "largest_tail_ratio": _chosen(max(ratios, key=lambda one: np.nan_to_num(one.estimate))),
    }


def _ratio(above: list[tuple[TailTrials, float]], below: list[tuple[TailTrials, float]], quantity: str) -> Estimate:
    """
    Estimate the product of the quantiles in `above` over the product of those in `below`, from the blocks that have all
    of them.
    """
    logs = [
        sign * pd.Series(np.log(trials.by_trial(q))).groupby(list(trials.blocks)).mean()
        for sign, terms in ((1, above), (-1, below))
        for trials, q in terms
    ]
    total = pd.concat(logs, axis=1).replace([np.inf, -np.inf], np.nan).sum(axis=1, skipna=False)
    kept, out = total.dropna(), int(total.isna().sum())
    lost = f"{count(out, 'block')} left out: a quantile is that of a lost record, or a trial is missing"
    name = quantity if quantity.startswith("p") else quantity[0].upper() + quantity[1:]
    about: Fields = {"quantity": quantity, "claim": f"{name} is {{}}", "warnings": (lost,) if out else ()} | COMBINED
    return geometric_mean(np.exp(kept), 0.95, unit_name="block", **about)


def _chosen(one: Estimate) -> Estimate:
    return replace(one, warnings=(*one.warnings, CHOSEN))
