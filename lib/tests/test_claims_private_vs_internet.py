"""Source 000: each claim against its own numbers, and against made measurements whose result is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tested_claims import NOT, OWN, UNKNOWN, UNTESTED, check_all_tested
from tested_claims import estimate as contrast

from wanbench.designs import factorial as design
from wanbench.errors import ParameterError
from wanbench.methods.lab.utilisation import capacity
from wanbench.methods.trials.processors import ProcessorEffect
from wanbench.pages import private_vs_internet
from wanbench.pages.private_vs_internet.fit import fit_factorial


def audited(**measured):
    return private_vs_internet.claims.private_vs_internet(**measured).table().set_index("claim")


def samples(bps, *, rate_bps=1e9, backlog=0, dropped=0):
    """A link that carried so much in each second, with so much waiting at each sample."""
    n = len(bps) + 1
    carried = np.concatenate([[0], np.cumsum(bps) / 8]).astype("int64")
    return pd.DataFrame(
        {
            "run_id": "r", "test_id": "t", "attempt": 1, "link_from": "a", "link_to": "b",
            "at_s": 1e9 + np.arange(n), "rate_bps": rate_bps, "packets_sent": carried // 1500,
            "packets_delivered": carried // 1500, "bytes_delivered": carried, "bytes_lost": 0,
            "packets_queue_dropped": dropped * np.arange(n), "bytes_backlog": backlog,
        }
    )  # fmt: skip


def experiment(delay, rate, *, jitter=-0.2, crossed=0.0):
    """A fitted factorial of known elasticities."""
    factors = {"delay_ms": [10, 40, 160], "jitter_ms": [1, 4], "rate_bps": [1e7, 1e8, 1e9]}
    plan = design(factors, replicates=3, seed=1)
    logs = np.log(plan[list(factors)])
    logs = logs - (logs.min() + logs.max()) / 2
    noise = np.random.default_rng(2).normal(0, 0.03, len(plan))
    mean = delay * logs.delay_ms + rate * logs.rate_bps + jitter * logs.jitter_ms
    mean += crossed * logs.delay_ms * logs.rate_bps
    return fit_factorial(plan.assign(batches_per_s=np.exp(6 + mean + noise)), "batches_per_s", list(factors))


def test_every_claim_is_tried_or_says_why_not():
    check_all_tested(audited(), 27)


@pytest.mark.parametrize(
    "claim, verdict, text",
    [
        ("vpn-mean-rtt", UNKNOWN, "70.8 <= 132.9 <= 193.2 holds"),
        ("vpn-deviation", NOT, "is 62.1 ms"),
        ("vpn-deviation", NOT, "at most 61.2 ms"),
        ("private-deviation", NOT, "is 5.6 ms"),
        ("private-deviation", NOT, "at most 1.5 ms"),
        ("jitter", NOT, "630 ms² over the VPN and 0.490 ms²"),
        ("more", NOT, "225 % more is 3.25 times as much, and 2.25 times as much is 125 % more"),
        ("times", OWN, "Table 1 alone predicts a ratio of 2.05 times, nearer to 2.25 times"),
        ("times", OWN, "about 2.00 times, agrees with 2.25 times"),
        ("packets", OWN, "2.25 times rounds to the claim, and 3.25 times does not"),
        ("total", OWN, "800 + 150 = 950"),
        ("below-rate", OWN, "984 Mbit/s, on Ethernet 1,009, while the rate is 1,000"),
        ("below-rate", OWN, "867 Mbit/s"),
        (
            "kafka-traffic",
            UNKNOWN,
            "1.17 MB are in flight over the private link; the same bytes in flight over the VPN yield a "
            "throughput of 73 ",
        ),
        ("never-full", UNKNOWN, "95.0 % of the rate"),
        ("n-producers", UNTESTED, "setting"),
        ("background-below", OWN, "800 Mbit/s is below the rates of both links"),
        ("circuit-below", OWN, "984 Mbit/s"),
        ("no-queue", NOT, "9.02 packets wait"),
        ("thesis", UNKNOWN, "differ by a factor of 2.13"),
        ("variations", UNKNOWN, "leaves a factor of 1.10"),
    ],
)
def test_what_follows_from_the_sources_own_numbers(claim, verdict, text):
    row = audited().loc[claim]
    assert row.own == verdict and text in row.working


def test_the_ratio_as_it_comes_out_again():
    rows = audited(batches=contrast(2.2, 2.05, 2.4), packets=contrast(2.6, 2.55, 2.7))
    assert rows.rerun[["more", "times", "packets"]].tolist() == [NOT, OWN, NOT]
    assert rows.own[["more", "times", "packets"]].tolist() == [NOT, OWN, OWN]
    assert rows.measured["more"] == "120 % (95 % interval 105 to 140)"
    rows = audited(batches=contrast(3.25, 3.1, 3.4), packets=contrast(2.1, 1.4, 2.8))
    assert rows.rerun[["more", "times", "packets"]].tolist() == [OWN, NOT, UNKNOWN]
    assert audited(batches=contrast(1.88, 1.63, 2.16)).rerun["times"] == UNKNOWN
    assert audited(batches=contrast(2.2, np.nan, np.nan)).rerun["times"] == UNKNOWN


@pytest.mark.parametrize("busy, verdict", [(95.0, UNKNOWN), (60.0, NOT)])
@pytest.mark.parametrize("claim", ["times", "more"])
def test_a_ratio_measured_on_a_full_machine_decides_nothing(claim, busy, verdict):
    trials = pd.DataFrame(
        {"setting": ["internet", "private"], "busy_percent": [86.0, busy], "reached": [0.92, 0.82], "rate_bps": 1e9}
    )
    machine = ProcessorEffect(contrast(0.9, 0.8, 1.0), trials)
    row = audited(batches=contrast(1.87, 1.75, 2.0), machine=machine).loc[claim]
    assert row.rerun == verdict
    assert ("processors were full with private" in row.working) == (busy > 90)


def test_what_the_lab_was_set_to_is_no_verdict_on_the_source():
    set_here = {"background": contrast(799.8, 799, 801, "Mbit/s"), "kafka-traffic": 63.0, "total": 887.0}
    rows, alone = audited(traffic=set_here), audited()
    assert (rows[["own", "rerun"]] == alone[["own", "rerun"]]).all().all() and rows.own["total"] == OWN
    assert rows.own[["background", "kafka-traffic"]].tolist() == [UNTESTED, UNKNOWN]
    assert "batches were set: it is 799.8 Mbit/s" in rows.working["background"]
    table_1 = [f"{path}-{what}" for path in ("vpn", "private") for what in ("min-rtt", "mean-rtt", "max-rtt")]
    assert (rows.own[table_1] == UNKNOWN).all() and rows.recomputed[table_1].isna().all()


def links(n, **about):
    """A table of so many links like `samples`."""
    return pd.concat([samples([6e8, 7e8, 9e8], **about).assign(link_to=f"b{i}") for i in range(n)])


def test_capacity():
    calm = audited(capacity=capacity(links(40)))
    assert calm.rerun[["never-full", "no-queue"]].tolist() == [UNTESTED, OWN]
    assert "90.0 %" in calm.working["never-full"]
    assert audited(capacity=capacity(links(2))).rerun["no-queue"] == UNKNOWN
    waiting = audited(capacity=capacity(links(2, backlog=9_000)))
    assert waiting.rerun["no-queue"] == NOT and "2 of 2 links" in waiting.working["no-queue"]
    full = audited(capacity=capacity(samples([6e8, 9.9e8, 9e8], backlog=9_000)))
    assert full.rerun[["never-full", "no-queue"]].tolist() == [UNTESTED, UNKNOWN]


@pytest.mark.parametrize(
    "delay, rate, crossed, verdict",
    [(-0.8, 0.2, 0.0, OWN), (-0.2, 0.8, 0.0, NOT), (-0.5, 0.5, 0.15, NOT), (-0.5, 0.5, 0.0, UNKNOWN)],
)
def test_the_thesis_is_a_statement_on_all_places(delay, rate, crossed, verdict):
    fitted = experiment(delay, rate, crossed=crossed)
    row = audited(factorial=fitted).loc["thesis"]
    assert row.rerun == verdict and fitted.verdict() in row.working and str(fitted.thesis) in row.working
    assert "cannot separate latency from bandwidth" in row.working


@pytest.mark.parametrize("jitter, verdict", [(-0.3, OWN), (0.3, NOT), (0.0, UNKNOWN)])
def test_variations_of_latency(jitter, verdict):
    assert audited(factorial=experiment(-0.8, 0.2, jitter=jitter)).rerun["variations"] == verdict


def test_factors_that_were_not_varied():
    fitted = experiment(-0.8, 0.2)
    rows = audited(factorial=replace(fitted, thesis=None, doublings={}, effects={}))
    assert rows.rerun[["thesis", "variations"]].tolist() == [UNTESTED, UNTESTED]


def test_a_claim_that_is_not_there_is_refused():
    with pytest.raises(
        ParameterError, match="claim of traffic is 'all'; allowed: 'background', 'kafka-traffic', 'total'"
    ):
        audited(traffic={"all": 1.0})
