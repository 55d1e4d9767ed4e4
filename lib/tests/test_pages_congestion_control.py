"""The page on congestion controls: its plan, the route that it sets, ratios and slopes, models, and published cells."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scripted_lab import Reply, ScriptedLab

from wanbench.errors import MissingDataError, ParameterError
from wanbench.measure.experiments import ExperimentError
from wanbench.methods.tcp.models import RANDOM, mathis_bps
from wanbench.pages import congestion_control
from wanbench.pages.congestion_control import claims, design

A, B = "aws:eu-west-1", "gcp:us-east1"
ROUTE = "10.0.0.0/8 dev wan0 src 10.1.0.1 congctl cubic"
RATES = {"cubic": 2e6, "bbr": 18e6, "reno": 1e6}


@pytest.fixture
def plan():
    links = design.paths([20, 100, 200], [(0, 1), (0.01, 0.25)], rate_bps=10e6)
    about = {"blocks": 3, "duration_s": 5, "omit_s": 2, "at_once": 4}
    return design.transfers(links, ["cubic", "bbr"], **about, seed=1)


def test_every_block_has_every_path_with_every_algorithm_once(plan):
    blocks = pd.DataFrame([(test.block, test.setting, test.from_region) for test in plan.tests])
    assert (blocks.groupby(0)[1].nunique() == 12).all() and len(blocks) == 36
    assert (blocks.groupby([0, 2]).size() == 2).all()


def test_a_round_uses_no_path_twice_and_no_more_than_asked(plan):
    for tests in plan.rounds:
        assert len({test.from_region for test in tests}) == len(tests) <= 4
    assert len({test.id for test in plan.tests}) == 36


def test_the_algorithms_of_a_path_are_in_random_order(plan):
    firsts = [next(t for t in plan.tests if t.block == block and t.from_region == "lab:a1") for block in (1, 2, 3)]
    other = {test.setting.partition(",")[0] for test in plan.tests if test.round <= 2}
    assert other == {"cubic", "bbr"} and all(test.experiments[0].omit_s == 2 for test in firsts)


@pytest.mark.parametrize("name, value", [("blocks", 0), ("at_once", 0)])
def test_an_impossible_plan_is_refused(name, value):
    about = {"blocks": 1, "duration_s": 5, "omit_s": 0, "at_once": 1} | {name: value}
    with pytest.raises(ParameterError, match=f"{name} is {value}"):
        design.transfers(design.paths([20], [(0, 1)], rate_bps=1e7), ["cubic"], **about)
    with pytest.raises(ParameterError, match="queue is 0"):
        design.paths([20], [(0, 0)], rate_bps=1e7)


def routes(refused=False):
    """A host's script that prints `ROUTE` and keeps the commands that it got."""
    seen = []

    def script(host, command):
        seen.append(" ".join(command))
        fails = refused and "replace" in command
        return Reply(ROUTE.encode(), b"not permitted", returncode=2 if fails else 0)

    return script, seen


@pytest.mark.parametrize("fails", [False, True])
def test_the_route_sets_the_congestion_control_and_is_restored(tmp_path, fails):
    script, seen = routes()
    with ScriptedLab([A, B], script) as lab:
        try:
            with design.CongestionControl("bbr").concurrently(lab.host(A), lab.host(B), tmp_path, "t") as files:
                assert files == [] and seen[-1] == "ip route replace 10.0.0.0/8 dev wan0 src 10.1.0.1 congctl bbr"
                assert not fails or 1 / 0
        except ZeroDivisionError:
            assert fails
    assert seen[-1] == f"ip route replace {ROUTE}"


def test_an_algorithm_that_the_kernel_lacks_fails_the_trial(tmp_path):
    script, _ = routes(refused=True)
    with ScriptedLab([A, B], script) as lab, pytest.raises(ExperimentError, match="cannot use vegas"):  # noqa: SIM117
        with design.CongestionControl("vegas").concurrently(lab.host(A), lab.host(B), tmp_path, "t"):
            pass


@pytest.fixture
def transfers():
    """Four blocks that are faster and slower as a whole; Reno and CUBIC follow Mathis's law, BBR fills the link."""
    rows = []
    for block, rtt_ms, loss, algorithm in product(range(1, 5), (20.0, 50.0, 100.0, 200.0), (0.003, 0.01), RATES):
        limited = (
            min(float(mathis_bps(loss, rtt_ms, RANDOM)), 19e6) * {"cubic": 1.3, "reno": 1.0, "bbr": 0.0}[algorithm]
        )
        rate = (limited or 19e6) * (1.0, 0.9, 1.1, 1.0)[block - 1]
        row = {"algorithm": algorithm, "block": block, "rtt_ms": rtt_ms, "loss": loss, "throughput_bps": rate}
        rows.append(row | {"burst": 1.0, "queue": 1.0, "rate_bps": 20e6})
    return pd.DataFrame(rows)


def test_drift_of_blocks_falls_out_of_ratio_and_slopes(transfers):
    cells = congestion_control.by_path(transfers, loss=0.01, rtt_ms=100)
    expected = 19e6 / (1.3 * float(mathis_bps(0.01, 100, RANDOM)))
    assert np.allclose([cells.ratio.low, cells.ratio.estimate, cells.ratio.high], expected) and cells.ratio.n == 4
    assert [round(one.estimate, 6) for one in cells.slopes] == [-1, 0, -1]
    assert cells.sentence.startswith("BBR carries") and "4 blocks" in cells.sentence
    assert len(cells.rows) == 24 and len(cells.figure().data) == 6
    assert cells.formatted_table().columns.tolist()[:2] == ["Path", "RTT in ms"]


def test_a_stalled_transfer_counts_as_zero(transfers):
    at = (transfers.algorithm == "reno") & (transfers.block == 1) & (transfers.rtt_ms == 100) & (transfers.loss == 0.01)
    cells = congestion_control.by_path(
        transfers.assign(throughput_bps=transfers.throughput_bps.mask(at, 0.0)), loss=0.01, rtt_ms=100
    )
    row = cells.rows.query("algorithm == 'reno' and rtt_ms == 100 and loss == 0.01").iloc[0]
    assert row.throughput_bps == pytest.approx(0.75 * float(mathis_bps(0.01, 100, RANDOM)))
    assert cells.slopes[2].n == 3


def test_an_unknown_path_is_refused(transfers):
    with pytest.raises(ParameterError, match="rtt_ms is 70"):
        congestion_control.by_path(transfers, loss=0.01, rtt_ms=70)
    with pytest.raises(ParameterError, match=r"no block with both 'bbr' and 'cubic'"):
        congestion_control.bbr_over_cubic(transfers[transfers.algorithm == "bbr"], "throughput_bps", "here")


def test_the_model_that_made_the_data_predicts_left_out_cells(transfers):
    scores = congestion_control.score_models(congestion_control.by_path(transfers, loss=0.01, rtt_ms=100))
    rows = scores.rows.set_index(["algorithm", "model"])
    for algorithm, model, factor in (("reno", "Mathis", 1.0), ("cubic", "Mathis", 1.3), ("bbr", "BBR's pacing", 0.96)):
        assert rows.error[algorithm, model] < 1.01 and rows.factor[algorithm, model] == pytest.approx(factor, rel=0.02)
    assert rows.verdict["reno", "window"] == rows.verdict["reno", "BBR's pacing"] == "worse"
    assert rows.error["reno", "window"] > 1.3 and "Mathis predicts Reno best" in scores.sentence


def test_models_need_three_cells(transfers):
    few = congestion_control.by_path(transfers[(transfers.rtt_ms == 100)], loss=0.01, rtt_ms=100)
    with pytest.raises(MissingDataError, match="three cells"):
        congestion_control.score_models(few)


def request_tables(throughput_bps, later_bps, seconds=6.0):
    transfers = pd.DataFrame({"test_id": ["t"], "algorithm": ["bbr"], "block": [1], "rtt_ms": [200.0], "loss": [0.0]})
    transfers = transfers.assign(
        burst=1.0, queue=1.0, rate_bps=9.9e6, duration_s=seconds, throughput_bps=throughput_bps
    )
    intervals = pd.DataFrame({"test_id": "t", "start_s": [0.0, 2.0, 4.0], "end_s": [2.0, 4.0, 6.0]})
    intervals["bytes"] = [0, *[int(later_bps * 2 / 8)] * 2]
    return transfers.assign(bytes=int(throughput_bps * seconds / 8)), {"intervals": intervals}


@pytest.mark.parametrize(
    "mean_bps, later_bps, seconds", [(8e6, 9e6, 0.6 + 6 + (1e8 - 48e6) / 9e6), (1e6, 3e6, 0.6 + 100), (1e6, 0, 100.6)]
)
def test_the_time_of_a_request_includes_handshakes_and_ramp(mean_bps, later_bps, seconds):
    shares = claims.request_shares(*request_tables(mean_bps, later_bps))
    assert shares.share.item() == pytest.approx(1e8 / seconds / 1e7)


def test_published_cells_are_compared_with_intervals():
    rows = [
        ("bbr", 200.0, 0.0, 0.84),
        ("bbr", 200.0, 0.01, 0.60),
        ("cubic", 200.0, 0.04, 0.04),
        ("cubic", 30.0, 0, 1.0),
    ]
    spread = (-0.001, 0.0, 0.001)
    shares = pd.DataFrame(
        [
            {"algorithm": name, "rtt_ms": rtt, "loss": loss, "share": share + off * share, "block": block, "burst": 1.0}
            for name, rtt, loss, share in rows
            for block, off in enumerate(spread)
        ]
    )
    agreement = claims.agreement(shares)
    assert agreement.rows.set_index("claim").inside.to_dict() == {
        "bbr-100-0": True,
        "bbr-100-1": False,
        "cubic-100-4": True,
    }
    assert agreement.estimates[0].basis == "2 of 3 cells" and len(agreement.figure().data) == 3
    audit = claims.connection_splitting(shares)
    assert audit.rows["bbr-100-0"]["rerun"] == "reproduced" and audit.rows["bbr-100-1"]["rerun"] == "not reproduced"
    assert audit.rows["bbr2-100-0"]["own"] == "cannot be tested here"


def test_transfers_get_their_path_and_block():
    run = SimpleNamespace(plan={"tests": [{"id": "1", "block": 2}]})
    ends = {"from_region": ["lab:a1"], "to_region": ["lab:b1"]}
    link = {"delay_ms": [50.0], "loss": [0.01], "rate_bps": [1e7], "queue_bytes": [31_250], "mean_loss_burst": [None]}
    transfer = {"test_id": ["1"], "throughput_bps": [1e6], "congestion_control": ["bbr"]}
    tables = {
        "links": pd.DataFrame(ends | link).astype({"mean_loss_burst": float}),
        "transfers": pd.DataFrame(ends | transfer),
    }
    row = congestion_control.transfer_rows(run, tables).iloc[0]
    assert (row.algorithm, row.block, row.rtt_ms, row.queue, row.burst) == ("bbr", 2, 100, 0.25, 1)
    tables["transfers"] = tables["transfers"].assign(throughput_bps=np.nan)
    with pytest.raises(MissingDataError, match="No transfer ended"):
        congestion_control.transfer_rows(run, tables)
