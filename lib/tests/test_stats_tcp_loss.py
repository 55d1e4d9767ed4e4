"""Loss from throughput: constants against senders simulated packet by packet, intervals that cover, what is refused."""

import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from simulations import models as simulated
from simulations import simulated_surveys

from wanbench.errors import MissingDataError, ParameterError
from wanbench.methods.lab import Verdicts
from wanbench.methods.result.estimate import Estimate
from wanbench.pages.intercloud_throughput import tcp_verdicts
from wanbench.pages.intercloud_throughput.loss import RECOVERY, estimate_loss, loss_limited_window, loss_of_window


@pytest.mark.parametrize(
    ("name", "loss", "rtt_ms"),
    [("reno", 1e-4, 50), ("cubic", 1e-4, 5), ("cubic", 1e-4, 25), ("cubic", 1e-4, 45), ("cubic", 5e-5, 200)],
)
def test_the_window_is_that_of_simulated_senders(name, loss, rtt_ms):
    senders = simulated.Senders(name, loss, rtt_ms / 1000, 300, seed=1)
    sent = [senders.round().mean() for _ in range(3500)][1000:]
    model = loss_limited_window(loss, rtt_ms, name) * (1 + RECOVERY[name] * math.sqrt(loss))
    assert np.mean(sent) == pytest.approx(model, rel=0.035)


@pytest.mark.parametrize("name", ["reno", "cubic"])
def test_the_inverse_gives_the_loss_back(name):
    loss = np.geomspace(1e-7, 0.3, 30)[:, None]
    rtt_ms = np.array([[1.0, 40.0, 300.0]])
    assert_allclose(
        loss_of_window(loss_limited_window(loss, rtt_ms, name), rtt_ms, name), np.broadcast_to(loss, (30, 3))
    )


def transfers(name="cubic", loss=0.002, n=1, seconds=20, seed=0, **more):
    """Table `transfers` of simulated senders, with other values in some columns."""
    return simulated.transfers(name, loss, n, seed=seed, duration_s=float(seconds)).assign(**more)


@pytest.mark.parametrize("name", ["reno", "cubic"])
@pytest.mark.parametrize(("loss", "seconds", "n"), [(0.002, 15, 1), (0.01, 15, 1), (0.002, 10, 4)])
def test_intervals_cover(name, loss, seconds, n):
    rows = transfers(name, loss, n=60 * n, seconds=seconds)
    found = [estimate_loss(rows.iloc[k : k + n]) for k in range(0, 60 * n, n)]
    # 95 % intervals cover fewer than 54 of 60 in one of 33 simulations, 80 % intervals in 32 of 33
    assert sum(each.low <= loss <= each.high for each in found) >= 54
    assert np.median([each.estimate / loss for each in found]) == pytest.approx(1, abs=0.12)


def test_more_transfers_narrow_the_interval_down_to_the_models_own_error():
    widths = [math.log((found := estimate_loss(transfers(n=n))).high / found.low) for n in (1, 4, 16, 400)]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == pytest.approx(2 * 1.96 * 0.08, rel=0.1)


def test_parallel_streams_are_as_many_senders():
    each = transfers(n=4)
    sums = {"throughput_bps": each.throughput_bps.sum(), "streams": 4, "retransmits": each.retransmits.sum()}
    together = estimate_loss(each.iloc[:1].assign(**sums))
    assert together.estimate == pytest.approx(estimate_loss(each).estimate, rel=0.1)


def test_retransmissions_are_another_interval():
    found = estimate_loss(transfers(n=5, seconds=30))
    assert found.others[0].low <= 0.002 <= found.others[0].high
    assert "retransmitted share of segments" in found._repr_html_()
    assert str(found).startswith("The loss that explains the throughput from aws:a to gcp:b is 0.")


def test_a_sender_that_something_else_limits_is_warned_of():
    rows = transfers(n=3, seconds=30)
    slow = rows.assign(throughput_bps=rows.throughput_bps / 6, retransmits=0)
    assert "is an upper bound of the loss" in str(estimate_loss(slow))
    assert "loss" in str(estimate_loss(rows)) and "Caution" not in str(estimate_loss(rows))
    many = rows.assign(retransmits=rows.retransmits * 10)
    assert "losses come in bursts" in str(estimate_loss(many))


def test_bbr_gives_no_loss_and_says_why():
    found = estimate_loss(transfers(congestion_control="bbr"))
    assert math.isnan(found.estimate) and "cannot be estimated" in str(found)
    assert "bbr sends at the rate that it measures" in str(found)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (lambda: transfers(congestion_control="vegas"), "congestion_control is 'vegas'; allowed: 'reno', 'cubic'"),
        (lambda: pd.concat([transfers("reno"), transfers()]), "they have cubic, reno"),
        (lambda: pd.concat([transfers(), transfers(from_region="aws:c")]), "2 directions"),
        (lambda: transfers(protocol="UDP"), "no TCP transfer"),
        (lambda: transfers(throughput_bps=np.nan), "no TCP transfer"),
        (lambda: transfers().drop(columns="mean_rtt_ms"), "lacks column mean_rtt_ms"),
    ],
)
def test_what_gives_no_loss_is_refused(rows, message):
    with pytest.raises(ParameterError, match=message):
        estimate_loss(rows())


def test_rows_left_out_are_counted():
    rows = transfers(n=3)
    rows.loc[1, "error"] = "interrupted"
    assert "1 transfer left out" in str(estimate_loss(rows))


def links(loss):
    ends = {"from_region": ["aws:a", "gcp:b"], "to_region": ["gcp:b", "aws:a"]}
    return pd.DataFrame({"run_id": "simulated", **ends, "loss": [loss, 0.0]})


def test_recovery_says_within_or_outside_of_each_link():
    rows = transfers(n=6, seconds=30)
    [right], [wrong], [none] = (tcp_verdicts.loss(rows, links(loss)).rows.itertuples() for loss in (0.002, 0.02, 0.0))
    assert (right.verdict, wrong.verdict, none.verdict) == ("within", "outside", "unknown")
    assert right.delivered == pytest.approx(0.002, rel=0.3) and "something other than loss limits" in none.note
    several = tcp_verdicts.loss(pd.concat([rows, transfers("reno"), transfers(congestion_control="bbr")]), links(0.002))
    assert list(several.rows.verdict) == ["unknown", "within", "within"]
    assert several.summary().n_links.tolist() == [3]
    assert len(several.findings()) == 1 and len(several.formatted_table()) == 3


def test_recovery_of_a_reverse_transfer_is_of_the_other_direction_and_unknown():
    rows = transfers(direction="reverse", mean_rtt_ms=np.nan)
    [row] = tcp_verdicts.loss(rows, links(0.002)).rows.itertuples()
    assert (row.from_region, row.verdict) == ("gcp:b", "unknown")
    assert "an RTT under load" in row.note


def estimate(value, unit):
    return Estimate("x", "{}", value, value * 0.9, value * 1.1, unit, 10, 5, "m", "a")


def test_recovery_of_window_and_capacity():
    rows = Verdicts.join(
        tcp_verdicts.window(estimate(85_000.0, "bytes"), 83_000),
        tcp_verdicts.window(estimate(85_000.0, "bytes"), 65_536),
        tcp_verdicts.window(estimate(math.nan, "bytes"), 65_536),
        tcp_verdicts.capacity(estimate(9.6e6, "bit/s"), 10e6),
    ).rows
    assert list(rows.verdict) == ["within", "outside", "unknown", "within"]
    assert rows.requested.iloc[3] == pytest.approx(10e6 * 1448 / 1500)


def test_recovery_of_a_run_is_one_table():
    pairs = simulated_surveys.survey(8, seed=1, window_bytes=84_000, capacity_bps=10e6 * 1448 / 1500, pair_log_sd=0.005)
    ends = ["from_region", "to_region"]
    requests = pairs[ends].assign(run_id="lab", loss=0.0, rate_bps=10e6)
    requests.loc[0, "loss"] = 0.004
    rows = pairs[[*ends, "throughput_bps"]].assign(run_id="lab", direction="forward", protocol="TCP", duration_s=10.0)
    rows = rows.assign(streams=1, mss_bytes=1448, window_bytes=65_536, congestion_control="cubic", error=None)
    rows = rows.assign(retransmits=0, mean_rtt_ms=pairs.rtt_ms)
    found = tcp_verdicts.of_run({"transfers": rows, "links": requests}, pairs).rows
    assert set(found.quantity) == {"window", "capacity", "rate", "loss-from-throughput"}
    assert (found[found.quantity != "loss-from-throughput"].verdict == "within").all()
    assert len(found[found.quantity == "loss-from-throughput"]) == 1
    rates = found[found.quantity == "rate"].merge(pairs[[*ends, "rtt_ms"]], on=ends)
    knee_ms = 8 * 84_000 / (10e6 * 1448 / 1500) * 1000
    assert len(rates) >= 4 and (1.24 * rates.rtt_ms < knee_ms).all()
    bare = tcp_verdicts.of_run(
        {"transfers": rows.drop(columns="window_bytes"), "links": requests.assign(rate_bps=np.nan)}, pairs
    ).rows
    assert list(bare.quantity) == ["loss-from-throughput"]
    lossy = tcp_verdicts.of_run({"transfers": rows, "links": requests.assign(loss=0.004)}, pairs).rows
    assert set(lossy.quantity) == {"loss-from-throughput"} and len(lossy) == len(rows)
    wider = rows.assign(window_bytes=90_000)
    other = tcp_verdicts.of_run({"transfers": wider, "links": requests}, pairs)
    assert other.rows.set_index("quantity").verdict["window"] == "outside"


def test_a_run_without_emulated_links_has_no_settings_to_compare_with():
    with pytest.raises(MissingDataError, match="no emulated links"):
        tcp_verdicts.of_run({"transfers": transfers(), "links": links(0.002).head(0)}, pd.DataFrame())


def test_a_loss_is_at_most_all():
    found = estimate_loss(transfers(n=1).assign(throughput_bps=2e4, retransmits=np.nan))
    assert found.estimate <= 1 and found.high == 1.0 and found.low <= found.estimate


def test_a_sender_after_rfc_9438_keeps_a_window_a_tenth_larger_than_linux_does():
    means = {}
    for name in ("cubic", simulated.BY_RFC):
        senders = simulated.Senders(name, 0.01, 0.02, 2000, 1)
        for _ in range(300):
            senders.round()
        means[name] = np.mean([senders.round().mean() for _ in range(300)])
    assert means["cubic"] * 0.1 == pytest.approx(1.24, rel=0.02)  # sqrt(loss) = 0.1
    assert means[simulated.BY_RFC] / means["cubic"] == pytest.approx(1.11, abs=0.02)
    assert "RFC 9438" in estimate_loss(transfers()).method
