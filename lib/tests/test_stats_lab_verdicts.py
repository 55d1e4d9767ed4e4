import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from wanbench.errors import ParameterError
from wanbench.methods.lab import Verdicts, link_verdicts, verdicts

A, B = "aws:eu-west-1", "gcp:us-east1"


def links(**changes):
    rows = []
    for start, end in ((A, B), (B, A)):
        row = {"run_id": "r1", "from_region": start, "to_region": end, "delay_ms": 40.0, "jitter_ms": 0.0}
        rows.append(row | {"loss": 0.0, "rate_bps": np.nan, "queue_bytes": pd.NA} | changes)
    return pd.DataFrame(rows)


def echoes(rtt_ms, lost=(), received_at_s=None):
    rtt_ms = np.array(rtt_ms, dtype=float)
    is_lost = np.isin(np.arange(len(rtt_ms)), lost)
    return pd.DataFrame(
        {
            "run_id": "r1",
            "from_region": A,
            "to_region": B,
            "sequence": np.arange(len(rtt_ms)),
            "received_at_s": received_at_s if received_at_s is not None else np.nan,
            "rtt_ms": np.where(is_lost, np.nan, rtt_ms),
            "lost": is_lost,
            "duplicate": False,
        }
    )


def test_rtt_adds_both_directions_and_judges_the_median():
    row = link_verdicts.rtt(echoes(np.linspace(80.0, 81.0, 101)), links()).rows.iloc[0]
    assert (row.requested, row.delivered, row.allowed) == pytest.approx((80.0, 80.5, 1.8))
    assert row.low < 80.5 < row.high and row.n == 101
    assert (row.verdict, row.limit) == ("within", "1 ms + 1 %")


@pytest.mark.parametrize(("rtt_ms", "verdict"), [(81.79, "within"), (81.81, "outside"), (78.1, "outside")])
def test_rtt_at_the_edge_of_its_limit(rtt_ms, verdict):
    assert link_verdicts.rtt(echoes([rtt_ms] * 20), links()).rows.verdict[0] == verdict


def test_lost_echoes_and_extra_replies_have_no_part_in_the_rtt():
    frame = echoes([80.0] * 20 + [500.0], lost=[3, 4])
    frame.loc[20, "duplicate"] = True
    row = link_verdicts.rtt(frame, links()).rows.iloc[0]
    assert row.n == 18 and row.delivered == 80.0


def test_what_cannot_be_judged_is_unknown_with_its_reason():
    assert link_verdicts.rtt(echoes([80.0] * 3, lost=[0, 1, 2]), links()).rows.iloc[0][
        ["verdict", "note"]
    ].tolist() == ["unknown", "no echo was answered"]
    one_way = links().head(1)
    row = link_verdicts.rtt(echoes([80.0] * 5), one_way).rows.iloc[0]
    assert row.verdict == "unknown" and "do not say what was requested" in row.note
    assert math.isnan(row.requested)


def test_two_links_for_one_request_fail():
    with pytest.raises(ParameterError, match="2 links from aws:eu-west-1"):
        link_verdicts.rtt(echoes([80.0] * 5), pd.concat([links(), links()]))


def test_loss_is_judged_by_the_exact_interval():
    frame = echoes([80.0] * 1000, lost=range(20))
    row = link_verdicts.loss(frame, links(loss=0.01)).rows.iloc[0]
    exact = stats.binomtest(20, 1000).proportion_ci(0.99, method="exact")
    assert (row.low, row.high) == pytest.approx((exact.low, exact.high))
    assert row.requested == pytest.approx(1 - 0.99**2) and row.delivered == 0.02
    assert row.verdict == "within"
    assert link_verdicts.loss(frame, links(loss=0.05)).rows.verdict[0] == "outside"
    assert link_verdicts.loss(frame, links(loss=0.0)).rows.verdict[0] == "outside"
    assert link_verdicts.loss(echoes([80.0] * 10), links(loss=0.0)).rows.verdict[0] == "within"


@pytest.mark.slow
def test_the_loss_verdict_is_wrong_for_about_one_link_in_a_hundred():
    rng = np.random.default_rng(1)
    outside = 0
    for _ in range(100):
        lost = np.flatnonzero(rng.random(400) < 1 - 0.95**2)
        outside += link_verdicts.loss(echoes([80.0] * 400, lost=lost), links(loss=0.05)).rows.verdict[0] == "outside"
    assert outside <= 4


def test_jitter_adds_as_squares_and_knows_when_it_cannot_tell():
    values = 80 + np.random.default_rng(2).normal(0, 5.0, 2000)
    row = link_verdicts.jitter(echoes(values), links(jitter_ms=5 / math.sqrt(2))).rows.iloc[0]
    assert row.requested == pytest.approx(5.0) and row.low < 5.0 < row.high
    assert row.verdict == "within"
    assert link_verdicts.jitter(echoes(values), links(jitter_ms=7.0)).rows.verdict[0] == "outside"
    few = link_verdicts.jitter(echoes(values[:6]), links(jitter_ms=5.0)).rows.iloc[0]
    assert few.verdict == "unknown" or few.low <= few.requested + few.allowed


def wandering(n, deviation, seed):
    """A first-order autoregression of the correlation that echoes a millisecond apart have by default."""
    rng, kept = np.random.default_rng(seed), math.exp(-0.001 / 0.05)
    values = [rng.normal()]
    for draw in rng.normal(0, math.sqrt(1 - kept**2), n - 1):
        values.append(kept * values[-1] + draw)
    return deviation * np.array(values)


def mean_row(rtt_ms, jitter_ms):
    result = link_verdicts.rtt(echoes(rtt_ms), links(jitter_ms=jitter_ms), statistic="mean")
    return result.rows.iloc[0]


def test_jitter_must_not_become_delay():
    late = mean_row(86 + wandering(4000, 2.0, 1), 1.0)
    assert late.verdict == "outside" and late.requested == 80.0 and late.low > 81.8
    unsure = mean_row(82.2 + wandering(4000, 7.0, 1), 5.0)
    assert unsure.verdict in ("unknown", "within") and unsure.high - unsure.low > 3
    assert mean_row([80.0], 0.0).verdict == "unknown"


@pytest.mark.slow
def test_the_interval_of_a_mean_under_wandering_jitter_holds(monkeypatch):
    monkeypatch.setattr(link_verdicts, "LEVEL", 0.95)
    held = 0
    for seed in range(80):
        row = mean_row(80 + wandering(2000, 7.0, seed), 5.0)
        held += row.low <= 80 <= row.high
    assert 0.9 <= held / 80 <= 0.99


def test_wandering_jitter_counts_for_fewer_echoes():
    rng = np.random.default_rng(3)
    walk = np.zeros(500)
    for k in range(1, 500):
        walk[k] = 0.95 * walk[k - 1] + rng.normal()
    assert link_verdicts.effective_n(rng.normal(size=500)) > 450
    assert link_verdicts.effective_n(walk) < 80


def transfers(throughput_bps, **changes):
    values = {
        "run_id": "r1",
        "from_region": A,
        "to_region": B,
        "direction": "forward",
        "protocol": "TCP",
        "throughput_bps": throughput_bps,
        "mss_bytes": 1448,
        "block_bytes": 131072,
    }
    return pd.DataFrame([values | changes])


def test_rate_counts_headers():
    payload = 100e6 * 1448 / 1500
    row = link_verdicts.rate(transfers(payload), links(rate_bps=100e6)).rows.iloc[0]
    assert row.delivered == pytest.approx(100e6) and row.verdict == "within"
    assert link_verdicts.rate(transfers(0.94 * payload), links(rate_bps=100e6)).rows.verdict[0] == "outside"


@pytest.mark.parametrize(("block_bytes", "headers"), [(1448, 28), (1472, 28), (1473, 48), (4000, 68)])
def test_rate_of_datagrams_counts_fragments(block_bytes, headers):
    frame = transfers(1e6, protocol="UDP", block_bytes=block_bytes)
    row = link_verdicts.rate(frame, links(rate_bps=1e6)).rows.iloc[0]
    assert row.delivered == pytest.approx(1e6 * (block_bytes + headers) / block_bytes)


def test_rate_belongs_to_the_direction_that_sends():
    asked = links(rate_bps=100e6)
    asked.loc[asked.from_region == B, "rate_bps"] = 10e6
    frame = pd.concat([transfers(95e6), transfers(9.5e6, direction="reverse")])
    table = link_verdicts.rate(frame, asked).rows.set_index("from_region")
    assert table.requested.to_dict() == {A: 100e6, B: 10e6}


def test_rate_without_a_limit_or_a_payload_size():
    assert link_verdicts.rate(transfers(95e6), links()).rows.empty
    row = link_verdicts.rate(transfers(95e6, mss_bytes=np.nan), links(rate_bps=100e6)).rows.iloc[0]
    assert (row.verdict, row.note) == ("unknown", "no transfer reports its payload per packet")


def cut_echoes(last_after_cut_s=0.04, heals_at_s=13.0, step_s=0.02):
    """Echoes every 20 ms from 1000 s on; cut at 1005 s, healed at `heals_at_s`."""
    sent = 1000 + np.arange(0, 20, step_s)
    got = (sent <= 1005 + last_after_cut_s) | (sent >= 1000 + heals_at_s)
    return echoes(np.full(len(sent), 40.0), np.flatnonzero(~got), np.where(got, sent, np.nan))


def cuts(healed_at_s=1013.0):
    return pd.DataFrame(
        {"run_id": ["r1"], "from_region": [A], "to_region": [B], "cut_at_s": [1005.0], "healed_at_s": [healed_at_s]}
    )


@pytest.mark.parametrize(("last_s", "verdict"), [(0.0, "within"), (0.06, "within"), (0.15, "outside")])
def test_cut_measures_to_the_last_reply(last_s, verdict):
    row = link_verdicts.cut(cut_echoes(last_s), cuts()).rows.iloc[0]
    assert row.delivered == pytest.approx(1000 * last_s, abs=20.1)
    assert row.verdict == verdict and row.limit == "100 ms"
    assert "after healing" in row.note and row.n > 300


def test_a_cut_that_did_not_cut_is_outside():
    row = link_verdicts.cut(cut_echoes(last_after_cut_s=7.0), cuts()).rows.iloc[0]
    assert row.verdict == "outside" and row.delivered > 6900


def test_a_cut_that_was_never_healed():
    row = link_verdicts.cut(cut_echoes(heals_at_s=99.0), cuts(np.nan)).rows.iloc[0]
    assert row.verdict == "within" and "healing" not in row.note


def test_silence_proves_nothing_without_replies_before_or_losses_after():
    slow = link_verdicts.cut(cut_echoes(step_s=0.5), cuts()).rows.iloc[0]
    assert slow.verdict == "unknown" and "more than 100 ms apart" in slow.note
    ended = cut_echoes(heals_at_s=99.0)
    ended = link_verdicts.cut(ended[~ended.lost], cuts()).rows.iloc[0]
    assert ended.verdict == "unknown" and ended.note == "no echo was lost after the cut"
    still = link_verdicts.cut(cut_echoes(heals_at_s=5.0), cuts()).rows.iloc[0]
    assert still.verdict != "within"


def shortened(to_ms, keeps_order):
    """An echo every 5 ms over 150 ms each way, from 1 s on over `to_ms`; with order kept, none overtakes another."""
    sent = np.arange(0, 2, 0.005)
    arrives = sent + np.where(sent < 1.0, 0.3, 2 * to_ms / 1000)
    if keeps_order:
        arrives = np.maximum.accumulate(arrives)
    return echoes((arrives - sent) * 1000, received_at_s=1000 + arrives)


@pytest.mark.parametrize(
    ("to_ms", "keeps_order", "verdict", "overtaken"),
    [(10, True, "within", 0), (10, False, "outside", 55), (149, False, "unknown", np.nan)],
)
def test_a_shorter_delay_must_not_reorder(to_ms, keeps_order, verdict, overtaken):
    row = link_verdicts.order(shortened(to_ms, keeps_order)).rows.iloc[0]
    assert row.verdict == verdict and row.delivered == pytest.approx(overtaken, nan_ok=True)
    assert row.note == "the round trip did not become shorter" or row.note.startswith("RTT 300")


def test_order_of_nothing_is_unknown():
    assert link_verdicts.order(echoes([80.0], lost=[0])).rows.verdict.tolist() == ["unknown"]


def test_an_error_of_nothing_is_not_named():
    [finding] = link_verdicts.order(shortened(10, True)).findings()
    assert finding.sentence.endswith("becomes shorter: 1 of 1 link is within the limit (0 replies).")


def test_verdicts_are_joined_and_summed_up():
    frame = echoes(80 + np.random.default_rng(5).normal(0, 0.1, 500))
    joined = Verdicts.join(
        link_verdicts.rtt(frame, links()),
        link_verdicts.jitter(frame, links()),
        link_verdicts.loss(frame, links()),
        link_verdicts.rate(transfers(50e6), links(rate_bps=100e6)),
        link_verdicts.cut(cut_echoes(), cuts()),
    )
    assert list(joined.rows.columns) == verdicts.COLUMNS
    summed = joined.summary().set_index("quantity")
    assert summed.n_within.to_dict() == {"rtt": 1, "jitter": 1, "loss": 1, "rate": 0, "cut": 1}
    assert summed.n_outside["rate"] == 1
    found = {finding.name: finding for finding in joined.findings("01-lab-calibration")}
    assert found["calibration-rtt"].sentence.startswith("Round-trip time: 1 of 1 link is within the limit (1 ms + 1 %)")
    assert found["calibration-rate"].estimate == 0.0
    assert "48.2 Mbit/s" in found["calibration-rate"].sentence
    assert "1 % of accurate links would be outside by chance" in found["calibration-loss"].sentence
    assert all(finding.sentence in str(joined) for finding in found.values())
    assert str(joined).startswith("Rate: 0 of 1") and next(iter(found)) == "calibration-rate", "the worst is first"
    assert joined.formatted_table().verdict.tolist() == joined.rows.verdict.tolist() and joined._repr_html_()


def test_the_answer_is_a_short_list_with_the_worst_first():
    rows = [
        verdicts.row_of(("r", "a", "b"), f"q{n}", "ms", 0.99, "1 ms", 1)
        | verdicts.judged(1, 1 + n / 6, math.nan, math.nan, 1.0)
        for n in (3, 1, 7, 2, 6, 5, 4)
    ]
    lines = Verdicts.of(rows).sentence.splitlines()
    assert [line[:2] for line in lines[:-1]] == ["Q7", "Q6", "Q5", "Q4", "Q3"]
    assert lines[-1] == "Of 2 checks of the other 2 quantities, 2 are within their limits."
    assert "q1" not in str(lines) and Verdicts.of(rows).headline.startswith("6 of 7 checks")


def test_an_interval_uses_its_limit_up_to_the_end_towards_the_request():
    one = verdicts.row_of(("r", "a", "b"), "loss", "fraction", 0.99, "i", 1)
    rows = [one | verdicts.judged(0.1, 0.05, 0.03, high) for high in (0.15, 0.1, 0.075)]
    assert verdicts.used_limits(pd.DataFrame(rows)).tolist() == pytest.approx([-0.5, -1, -2])


def test_empty_tables_give_empty_verdicts():
    empty = link_verdicts.rtt(echoes([]), links())
    assert empty.rows.empty and list(empty.rows.columns) == verdicts.COLUMNS
    assert empty.findings() == [] and str(empty) == "No link was judged." and empty._repr_html_()
    assert Verdicts.join(empty, empty).rows.empty


def test_an_unknown_statistic_is_refused():
    with pytest.raises(ParameterError, match="statistic is 'mode'; allowed: 'median', 'mean'"):
        link_verdicts.rtt(echoes([80.0]), links(), statistic="mode")


def test_the_worst_link_is_that_which_uses_most_of_its_limit():
    rows = [
        verdicts.row_of(("r", f"a{n}", f"b{n}"), "rate", "bit/s", 0.99, "5 %", 1)
        | verdicts.judged(rate, rate - error, math.nan, math.nan, 0.05 * rate)
        for n, (rate, error) in enumerate([(1e6, 4e4), (300e6, 1e5)], start=1)
    ]
    [row] = Verdicts.of(rows).summary().to_dict("records")
    assert (row["worst_link"], row["worst_requested"]) == ("a1 to b1", 1e6)
    [finding] = Verdicts.of(rows).findings()
    assert "relative to the limit, is 40.0 kbit/s (requested: 1.00 Mbit/s), from a1 to b1" in str(finding)
