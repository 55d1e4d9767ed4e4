"""Numbered packets across links: what reads them, the verdicts, and links with bursts, schedules, marks and MTUs."""

import gzip

import numpy as np
import pandas as pd
import pytest

from wanbench import tables
from wanbench.errors import ParameterError, RawDataError
from wanbench.measure import campaign
from wanbench.measure.experiments import Iperf3, Ping
from wanbench.measure.links import LinkSettings, Step
from wanbench.pages.lab_calibration import drop_law, loss_bursts, marks, mtu, relay_cost, schedule, waits
from wanbench.pages.lab_calibration.design import Probes, overloaded, plan_of
from wanbench.read.ingest import probes as reader
from wanbench.read.ingest import tabulate

GOOD = "listening\nprobes 4 100 0 1000000\n0 0 10000\n2 2000 10500\n3 3001 11000\nend 120 5000 7\n"
KEY = {"run_id": "r", "from_region": "lab:a1", "to_region": "lab:b1"}


def written(tmp_path, text):
    path = tmp_path / "0001.txt.gz"
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_packets_are_read_and_those_that_did_not_arrive_are_lost(tmp_path):
    read = reader.read(written(tmp_path, GOOD))
    assert read["probes"].lost.tolist() == [False, True, False, False]
    assert read["probes"].delay_ms.dropna().tolist() == [10.0, 10.5, 11.0]
    assert read["probes"].sent_at_s.dropna().tolist() == [1.0, 1.002, 1.003001]
    [run] = read["probe_runs"].to_dict("records")
    assert (run["packets"], run["relay_processor_s"], run["lasted_s"]) == (4, 0.00012, 0.005)
    assert run["packets_marked"] == 7 and pd.isna(run["schedule_began_at_s"])


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (("probes 4", "probes 0"), None),
        (("probes 4", "probe 4"), None),
        (("probes 4", f"probes {10**9}"), None),
        (("2 2000", "0 2000"), 4),
        (("2 2000", "4 2000"), 4),
        (("2 2000 10500", "2 2000"), 4),
        (("2 2000 10500", "2 2000 -1"), 4),
        (("3 3001 11000", "3 3001 x"), 5),
        (("end 120 5000 7\n", ""), None),
        ((GOOD, ""), None),
    ],
)
def test_output_that_is_not_whole_is_refused(tmp_path, change, line):
    with pytest.raises(RawDataError) as error:
        reader.read(written(tmp_path, GOOD.replace(*change)))
    assert line is None or error.value.line_number == line


def test_settings_are_checked():
    with pytest.raises(ParameterError, match="interval_us is 0"):
        Probes(interval_us=0)


def packets(lost, delay_ms=10.0):
    """A table of probes with these losses and delays, one packet per millisecond."""
    lost, sent = np.asarray(lost), np.arange(len(lost)) / 1000
    columns = {"sequence": range(len(lost)), "sent_at_s": np.where(lost, np.nan, sent), "lost": lost}
    return pd.DataFrame({**KEY, **columns, "delay_ms": np.where(lost, np.nan, delay_ms)})


def links(**settings):
    there = {"from_region": "lab:a1", "to_region": "lab:b1", "delay_ms": 10.0, "jitter_ms": 0.0, "loss": 0.0}
    return tables.from_rows("links", [{"run_id": "r", **there, **settings}])


def gilbert(n, loss, burst, seed=0):
    draw, lost, is_lost = np.random.default_rng(seed), [], False
    for _ in range(n):
        is_lost = draw.random() < (1 - 1 / burst if is_lost else loss / (1 - loss) / burst)
        lost.append(is_lost)
    return lost


@pytest.mark.parametrize(
    ("settings", "delivered", "expected"),
    [
        ({"loss": 0.05, "mean_loss_burst": 5.0}, (0.05, 5), ["within", "within"]),
        ({"loss": 0.05}, (0.05, 1 / 0.95), ["within", "within"]),
        ({"loss": 0.05, "mean_loss_burst": 5.0}, (0.05, 1 / 0.95), ["within", "outside"]),
        ({"loss": 0.05, "mean_loss_burst": 5.0}, (0.15, 5), ["outside", "within"]),
        ({"loss": 0.05}, (0.05, 5), None),
    ],
)
def test_bursts_are_judged_by_their_share_and_their_length(settings, delivered, expected):
    rows = loss_bursts(packets(gilbert(20_000, *delivered)), links(**settings)).rows.set_index("quantity")
    if expected is None:
        assert rows.verdict["burst"] == "outside"
    else:
        assert rows.verdict[["loss", "burst"]].tolist() == expected
        assert (rows.low < rows.delivered).all() and (rows.delivered < rows.high).all()


def test_bursts_cannot_be_judged_where_nothing_was_lost():
    rows = loss_bursts(packets([False] * 100), links(loss=0.0)).rows.set_index("quantity")
    assert rows.verdict.to_dict() == {"loss": "within", "burst": "unknown"}


@pytest.mark.parametrize(("wait_ms", "verdict"), [(0.5, "within"), (12, "within"), (16, "outside")])
def test_the_longest_waits_are_judged_without_the_start(wait_ms, verdict):
    noise = np.random.default_rng(0).normal(0, 1, 3000)
    delays = np.where(np.arange(3000) < 1000, 500.0, np.where(noise > 0, 10 + wait_ms + noise / 10, 10.1))
    sent = pd.DataFrame([KEY | {"throughput_bps": 9e6, "mss_bytes": 1448, "protocol": "TCP", "ip_version": 4}])
    settings = links(codel_target_ms=5.0, rate_bps=1e7)
    [row] = waits(packets([False] * 3000, delays), sent, settings, skip_s=1).rows.to_dict("records")
    assert row["verdict"] == verdict and row["delivered"] == pytest.approx(wait_ms, abs=0.3)
    assert row["low"] <= row["delivered"] <= row["high"] and "TCP uses 93" in row["note"]
    assert ("packets wait in 0" in row["note"]) == (wait_ms == 0.5), "this is less than a full packet takes to send"


@pytest.mark.parametrize(("power", "verdict"), [(0.5, "within"), (0.6, "outside"), (0.4, "outside")])
def test_drops_follow_the_law_of_codel(power, verdict):
    at = 0.3 + np.cumsum([0, *(0.1 / np.arange(1, 400) ** power)])
    lost = np.isin(np.arange(3000), np.round(1000 * at))
    delays = 10 + np.minimum(5 + np.arange(3000) / 100, 20)
    [row] = drop_law(packets(lost, delays), links(codel_target_ms=5.0)).rows.to_dict("records")
    assert row["verdict"] == verdict and row["delivered"] > 50


@pytest.mark.parametrize(("marked", "again", "verdict"), [(9, 0, "within"), (9, 1, "outside"), (0, 0, "outside")])
def test_marks_replace_drops(marked, again, verdict):
    runs = pd.DataFrame([KEY | {"packets_marked": marked}])
    [row] = marks(runs, pd.DataFrame([KEY | {"retransmits": again}]), links(ecn=True)).rows.to_dict("records")
    assert row["verdict"] == verdict
    assert marks(runs, pd.DataFrame([KEY | {"retransmits": 5}]), links()).rows.empty


def test_a_schedule_is_judged_step_by_step():
    link = LinkSettings(10, schedule=[Step(0), Step(1, delay_ms=30), Step(2, rate_bps=400_000)])
    sent = np.arange(3000) / 1000
    delay = np.where(sent < 1, 10, np.where(sent < 2, 35, 30 + (sent - 2) * 1000))  # 5 ms too long from 1 to 2 s
    runs = pd.DataFrame([KEY | {"schedule_began_at_s": 0.0, "packet_bytes": 100}])
    judged = schedule(packets([False] * 3000, delay), runs, {("lab:a1", "lab:b1"): link}).rows
    assert judged[["quantity", "verdict"]].to_numpy().tolist() == [
        ["delay", "within"], ["loss", "within"], ["delay", "outside"], ["loss", "within"], ["rate", "within"],
    ]  # fmt: skip


def test_the_relays_cost_is_divided_by_the_packets():
    runs = pd.DataFrame([KEY | {"packets": 20_000, "lasted_s": 1.0, "relay_processor_s": 0.2}])
    assert relay_cost([runs]).rows.relay_us.tolist() == pytest.approx([10])
    assert "10 µs per packet at 20,000 packets a second" in relay_cost([runs]).sentence


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Return the tables of an experiment on links with these settings."""
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path))

    def tables_of(experiment, *settings, **options):
        plan, links = plan_of([{"try": (settings, experiment)}])
        return tabulate(campaign.run(plan, links, lab="local", campaign="try", fresh=True, **options).folder)

    return tables_of


@pytest.mark.lab
def test_links_lose_packets_in_bursts(measured):
    got = measured(Probes(count=6000, interval_us=200), LinkSettings(5, loss=0.1, mean_loss_burst=5))
    assert 250 < got["probes"].lost.sum() < 1100
    assert got["links"].mean_loss_burst.tolist() == [5, 5]
    rows = loss_bursts(got["probes"], got["links"]).rows.set_index("quantity")
    assert rows.delivered["burst"] == pytest.approx(5, rel=0.4)


@pytest.mark.lab
def test_a_link_follows_its_schedule_from_the_restart_on(measured):
    link = LinkSettings(5, schedule=[Step(0), Step(0.7, delay_ms=60), Step(1.4, loss=1)])
    got = measured(Probes(count=2000, restart=True), link)
    since = got["probes"].sent_at_s - got["probe_runs"].schedule_began_at_s[0]
    early, late = (got["probes"].delay_ms[since.between(*when)] for when in ((0, 0.65), (0.72, 1.38)))
    assert early.min() >= 5 and late.min() >= 59.9 and late.median() - early.median() > 30
    assert since.max() < 1.45 and got["probes"].lost.sum() > 300


@pytest.mark.lab
def test_tcp_is_marked_and_does_not_retransmit_where_codel_marks(measured):
    link = LinkSettings(5, rate_bps=5e6, queue_bytes=10**6, codel_target_ms=5, ecn=True)
    load = Probes(count=300, interval_us=10_000, load=Iperf3(duration_s=3, streams=2))
    got = measured(load, link, sysctls={"net.ipv4.tcp_ecn": 1})
    assert marks(got["probe_runs"], got["transfers"], got["links"]).rows.verdict.tolist() == ["within"]
    assert got["link_counters"].packets_marked.sum() >= got["probe_runs"].packets_marked[0] > 0


@pytest.mark.lab
def test_codel_drops_by_its_law_where_nobody_reacts(measured):
    got = measured(Probes(count=2000), overloaded(0.6e6))
    assert drop_law(got["probes"], got["links"]).rows.delivered[0] > 20


@pytest.mark.lab
def test_path_mtu_discovery_works_and_a_black_hole_is_silent(measured):
    settings = LinkSettings(5, mtu_bytes=1400, rate_bps=1e8), LinkSettings(5, mtu_bytes=1400, mtu_black_hole=True)
    got = measured(Ping(count=8, interval_s=0.1, payload_bytes=1472, wait_s=1), *settings)
    assert mtu(got["echoes"], got["links"]).rows.verdict.tolist() == ["within", "within"]
    assert (~got["echoes"].lost).sum() >= 4, "later echoes come back in pieces"
    assert measured(Iperf3(duration_s=1), settings[0])["transfers"].throughput_bps[0] > 1e6
