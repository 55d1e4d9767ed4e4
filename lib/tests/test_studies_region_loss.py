"""The study of a lost region, on made-up episodes with a known answer."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from fault_tables import campaign, episode, together

from wanbench.errors import MissingDataError, ParameterError
from wanbench.pages import region_loss
from wanbench.pages.region_loss.records import faulty
from wanbench.pages.region_loss.recovery import SHOWN
from wanbench.pages.region_loss.timeouts import implied


@pytest.fixture(scope="module")
def tables():
    return campaign()


@pytest.fixture(scope="module")
def found(tables):
    return region_loss.episodes(tables)


@pytest.fixture(scope="module")
def disasters(found):
    return found.with_fault()


@pytest.fixture(scope="module")
def lost(found):
    return region_loss.losses(found)


@pytest.fixture(scope="module")
def recovered(disasters):
    return region_loss.recovery(disasters)


def test_settings_stand_in_order_and_failures_are_named(tables):
    failed = dict(tables)
    failed["faults"] = tables["faults"].assign(error=[*[None] * 15, "the cluster never was healthy"])
    failed["tests"] = tables["tests"].assign(outcome=["failed", *["done"] * 15])
    found = region_loss.episodes(failed)
    assert len(found) == 14
    assert found.settings[:4] == ("cut", "cut acks 1", "two regions", "kill")
    assert "never was healthy" in str(found) and "the test was failed" in str(found)


def test_a_run_without_episodes_or_tables_says_so(tables):
    with pytest.raises(MissingDataError, match="no completed episode"):
        region_loss.episodes(tables | {"tests": tables["tests"].assign(outcome="failed")})
    with pytest.raises(ParameterError, match="table fault_log is missing"):
        region_loss.episodes({name: each for name, each in tables.items() if name != "fault_log"})
    planted = region_loss.episodes(together([episode(fault="none", at="", damage="drop")]))
    with pytest.raises(MissingDataError, match="no episode of this run has a fault"):
        planted.with_fault()


def test_losses_have_their_bound_and_planted_damage_is_none(lost):
    assert lost.sums("cut").gone == 0 and lost.sums("cut acks 1").gone == 9 + 18 + 27
    assert (
        "“kill”: 0 of 3,780 in 3 episodes (with 95 % confidence, fewer than 63.2 % of episodes lose records)"
        in lost.sentence
    )
    assert "“cut acks 1”: 54 of 3,780 in 3 of 3 episodes" in lost.sentence
    assert "1 in 1,262" not in str(lost) and lost.estimates[0].high == pytest.approx(0.632, abs=0.001)
    assert not [name for name in lost.settings if name.startswith("planted")]
    assert lost.episodes_with("cut acks 1").estimate == 1
    shown = lost.formatted_table().set_index("")
    assert shown["kill"]["lost or undelivered"] == "0 of 3,780"
    assert shown["kill"]["episodes with a loss"] == "0 of 3 (0 to 63 %)"


def test_duplicates_and_disorder_are_counted():
    rows = [episode(k, doubled=2, reread=3, swapped_log=1) for k in (1, 2)] + [episode(3, "calm", block=2)]
    shown = region_loss.losses(region_loss.episodes(together(rows))).formatted_table().set_index("")
    assert shown.loc["duplicates in the log"].to_dict() == {"cut": "4", "calm": "0"}
    assert shown.loc["out of order in the log", "cut"] == "2" and shown.loc["delivered again", "cut"] == "10"
    assert "lost from the log" not in shown.index, "kinds that did not occur are left out"


def test_outages_are_those_that_were_made(recovered):
    for setting, name, expected in (
        ("cut", "writes", 3.4),
        ("cut", "writes_partition", 3.4),
        ("cut", "writes_affected", 11.0),
        ("cut", "reads_partition", 4.0),
        ("cut acks 1", "writes", 0.1),
        ("kill", "writes", 2.9),
        ("two regions", "writes", 10.0),  # healing ended it after 11 s
    ):
        assert recovered.of(setting, name).estimate == pytest.approx(expected, abs=0.15), (setting, name)
    assert recovered.of("two regions", "writes").at_least and not recovered.of("cut", "writes_affected").at_least
    assert re.search(
        r"no write was acknowledged for a median of at least 10\.0+ s \(75 % interval at least 10\.0+\)",
        recovered.sentence,
    )
    whole = recovered.of("cut", "writes")
    assert whole.n == 3 and whole.level == 0.75 and whole.high - whole.low == pytest.approx(0.4, abs=0.05)


def test_an_outage_that_never_ends_is_a_lower_limit():
    rows = together([episode(k, outage_s=100) for k in (1, 2)])
    recovered = region_loss.recovery(region_loss.episodes(rows))
    rows["fault_records"]["acknowledged_at_s"] = rows["fault_records"].acknowledged_at_s.where(
        rows["fault_records"].acknowledged_at_s < rows["faults"].ended_at_s.max() + 50
    )
    assert recovered.of("cut", "writes").high == np.inf
    assert "this applies to some outages of “cut”" in str(recovered)


def test_phases_are_those_that_were_made(disasters, recovered):
    split = region_loss.phases(disasters, recovered)
    assert split.of("cut", "detection_s").estimate == pytest.approx(2.0, abs=0.25)
    assert split.of("cut", "election_s").estimate == pytest.approx(0.5, abs=0.25)
    whole = sum(split.of("cut", name).estimate for name in split.QUANTITIES)
    assert whole == pytest.approx(3.4, abs=0.2)
    assert split.rows.resolution_s.max() == pytest.approx(0.25)


def test_the_controllers_log_is_finer_than_samples():
    found = region_loss.episodes(together([episode(controller_events=True)]))
    split = region_loss.phases(found, region_loss.recovery(found))
    assert split.rows.detection_s[0] == pytest.approx(1.9) and split.rows.resolution_s[0] == 0


def test_what_a_node_in_the_dark_logs_does_not_count():
    rows = together([episode(controller_events=True)])
    events = rows["controller_events"]
    alone = events.iloc[[0]].assign(node_id=1, broker=2, at_s=events.at_s.min() - 1.5)
    found = region_loss.episodes(rows | {"controller_events": pd.concat([alone, events], ignore_index=True)})
    assert found.items[0].dark == {1}
    assert region_loss.phases(found, region_loss.recovery(found)).rows.detection_s[0] == pytest.approx(1.9)


def test_no_leader_that_changes_leaves_the_section_out():
    found = region_loss.episodes(together([episode(detected_s=50, elected_s=60)]))
    with pytest.raises(MissingDataError, match="no leader change was seen"):
        region_loss.phases(found, region_loss.recovery(found))


def test_healing_counts_leaders_that_came_back(disasters):
    healed = region_loss.healing(disasters)
    assert healed.of("cut", "in_sync_s").estimate == pytest.approx(2.0, abs=0.3)
    assert healed.of("cut", "reassigned_s").estimate == pytest.approx(4.0, abs=0.3)
    by_setting = healed.rows.groupby("setting")[["moved", "back"]].sum()
    assert by_setting.loc["kill"].tolist() == [6, 6] and by_setting.loc["cut"].tolist() == [6, 0]


def planted(damage="drop", n_damaged=1, **settings):
    return region_loss.episodes(
        together([episode(fault="none", at="", damage=damage, n_damaged=n_damaged, **settings)])
    )


def test_every_planted_damage_is_named(found):
    for damage in ("drop", "duplicate", "reorder", "alter"):
        checked = region_loss.check_checker(planted(damage))
        assert checked.rows.right.tolist() == [True], damage
    assert (
        checked.sentence == "The checker reported 1 of 1 planted fault correctly, that is once and as no other fault."
    )
    assert not region_loss.check_checker(found).rows.right.any()  # three were damaged in each
    for missed in (planted(undelivered=1), planted(doubled=1)):
        assert not region_loss.check_checker(missed).rows.right.any()


def test_the_planted_record_must_be_the_one_that_is_found(found):
    rows = planted().items[0]
    gone = faulty(*(rows.tables[f"fault_{name}"] for name in ("records", "receipts", "log")))["undelivered"].iloc[0]
    for shift, right in ((0, True), (1, False)):
        named = {"damaged_producer": int(gone.producer), "damaged_sequence": int(gone.sequence) + shift}
        checked = region_loss.check_checker(planted(**named))
        assert checked.rows.right.tolist() == [right] and ("the record that was damaged" in checked.sentence) is right
    with pytest.raises(MissingDataError, match="planted"):
        region_loss.check_checker(found.of("cut"))


def test_settings_beside_each_other_name_only_what_differs(disasters, lost, recovered):
    compared = region_loss.compare_settings(disasters, lost, recovered)
    assert compared.losing == ["cut acks 1"]
    assert list(compared.abouts) == ["setting", "fault", "acks"]
    assert compared.sentence.startswith(
        "“cut” lost 0 of 3,780 acknowledged records in 3 episodes (with 95 % confidence, fewer than 63.2 %"
    )
    assert (
        "“cut acks 1” lost 54 of 3,780" in compared.sentence
        and "2 other settings lost no record. With these settings, the median time without any write was 2.9 to at "
        "least 10.0 s"
        in compared.sentence
    )


def test_a_single_other_setting_is_named(found):
    items = tuple(each for each in found if each.setting in ("cut", "kill"))
    two = replace(found, items=items)
    compared = region_loss.compare_settings(two, region_loss.losses(two), region_loss.recovery(two))
    assert "“kill” lost 0 of" in compared.sentence and "other setting" not in compared.sentence


def test_a_partition_that_was_out_until_healing_in_one_episode_is_named_beside_the_median():
    rows = together([episode(k) for k in (1, 2, 3)])
    records, faults = rows["fault_records"], rows["faults"]
    began, healed = faults.fault_at_s[1], faults.heal_at_s[1]
    out = records.acknowledged_at_s.between(began, healed) & (records.partition == 4)
    rows["fault_records"] = records.assign(acknowledged_at_s=records.acknowledged_at_s.mask(out, healed + 0.5))
    found = region_loss.episodes(rows)
    recovered = region_loss.recovery(found)
    compared = region_loss.compare_settings(found, region_loss.losses(found), recovered)
    assert recovered.of("cut", "writes_partition").estimate == pytest.approx(3.0, abs=0.2)
    assert re.search(
        r"partition was at least 10\.\d s \(partition 4; in 1 of 3 episodes an outage lasted until healing\)",
        compared.sentence,
    )


def test_the_planner_knows_what_each_time_out_does():
    tight = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500, "socket.timeout.ms": 4000}
    found = implied(tight, 70)
    assert found["writes"] == pytest.approx((2.5, 3.585)) and found["partition"][1] == pytest.approx(6.41)
    assert implied(tight, 70, acks="1")["writes"][1] < 0.2
    assert implied(tight, 70, controller_lost=True)["writes"][0] == pytest.approx(5.07)
    lagging = implied(tight | {"replica.lag.time.max.ms": 1000}, 70)
    assert lagging["writes"][1] < found["writes"][0]
    assert implied({}, 70)["writes"][1] == pytest.approx(10.335)
    newer = implied({"group.consumer.session.timeout.ms": 80_000}, 70, group_protocol="consumer")
    assert newer["reads"][1] > implied({}, 70)["reads"][1]
    with pytest.raises(ParameterError, match="acks is '2'"):
        implied({}, 70, acks="2")
    with pytest.raises(ParameterError, match="socket"):
        implied({"socket.timeout.ms": "soon"}, 70)


def test_the_planner_stands_beside_what_was_measured(disasters, recovered):
    planned = region_loss.planned(disasters, recovered, rtt_ms=70, cluster_settings={"socket.timeout.ms": 4000})
    assert set(planned.rows.setting) == {"cut", "cut acks 1", "kill"}
    rows = planned.rows.set_index(["setting", "quantity"])
    assert set(rows.controller) == {"not known"} and rows.loc[("cut", "all writes"), ["n", "inside"]].tolist() == [3, 3]
    assert "measured outages" in planned.sentence
    told = region_loss.episodes(together([episode(controller_events=True), episode(2, outage_s=20)]))
    planned = region_loss.planned(told, region_loss.recovery(told), rtt_ms=70)
    rows = planned.rows[planned.rows.quantity == "all writes"].set_index("controller")
    assert rows.loc["elsewhere", ["n", "inside", "healed"]].tolist() == [1, 1, 0]
    assert rows.loc["not known", ["n", "inside", "healed"]].tolist() == [0, 0, 1]
    assert "ended only with healing and cannot be compared" in planned.sentence
    with pytest.raises(ParameterError, match="settings imply no outage"):
        region_loss.planned(disasters.of("two regions"), recovered, rtt_ms=70)


def test_the_timeline_shows_leaders_replicas_and_consumers(found):
    figure = region_loss.timeline(found, "cut").figure()
    assert figure.layout.meta["name"] == "timeline-cut" and len(figure.layout.shapes) == 5
    led = [trace for trace in figure.data if trace.name == "broker 1"]
    assert led[0].y[0] > 0 == min(led[0].y)
    with pytest.raises(ParameterError, match="setting is 'melt'"):
        region_loss.timeline(found, "melt")


def test_figures_draw_every_episode_and_setting(disasters, lost, recovered):
    split = region_loss.phases(disasters, recovered)
    compared = region_loss.compare_settings(disasters, lost, recovered)
    drawn = [each.figure() for each in (recovered, compared)]
    n_open = sum(recovered.of("two regions", name).high == np.inf for name in SHOWN)
    assert n_open and len(drawn[0].data) == 6 + n_open
    assert len(drawn[1].data) == 8 + 1
    for each in (recovered, split, compared, lost, region_loss.healing(disasters)):
        assert "<table" in each._repr_html_() and len(each.estimates or [0])


def test_a_setting_that_is_missing_from_older_tables_is_no_error(tables):
    about = tables["faults"].drop(columns=["damage", "min_insync"]).assign(broker_settings="")
    found = region_loss.episodes(tables | {"faults": about}).with_fault()
    assert len(found) == 12 and isinstance(json.dumps(found.items[0].about.setting), str)
    assert pd.notna(found.items[0].fault_at_s)


def test_what_the_article_says_becomes_estimates(found, lost, recovered, disasters):
    said = region_loss.article(found, "cut", lost, recovered, region_loss.healing(disasters))
    open_ones = ("leaders_back", "healing")
    assert {name: round(each.estimate, 3) for name, each in said.items() if name not in ("rto", *open_ones)} == {
        "rpo": 0, "order": 0, "leaders": 1, "replicas": 1, "elections": 1, "rearranged": 1, "service": 1,
        "producer_errors": 1, "producers_failed": 0, "replicas_back": 1,
    }  # fmt: skip
    assert {each.n for name, each in said.items() if name not in ("rpo", "order", *open_ones)} == {3}
    assert "(median 2.00 s, 75 % interval 2.00 to 2.00), all replicas were in sync again in 100 %" in str(
        said["replicas_back"]
    )
    assert {np.isnan(said[name].estimate) for name in open_ones} == {True}
    assert "every 300 s; a verdict needs" in str(said["leaders_back"])
    long = region_loss.article(found, "cut", lost, recovered, region_loss.healing(disasters, check_s=5))
    assert [long[name].estimate for name in open_ones] == [0, 0] and long["healing"].n == 3
    dark = region_loss.article(found, "two regions", lost, recovered, region_loss.healing(disasters))
    assert dark["service"].estimate == 0 and dark["rto"].low > 9
    assert said["rto"].estimate == pytest.approx(3.4, abs=0.15)
    killed = region_loss.article(found, "kill", lost, recovered, region_loss.healing(disasters))
    assert [killed[name].estimate for name in open_ones] == [1, 1]


def test_errors_count_of_any_producer_that_remains_and_from_the_fault_on():
    made = together([episode(ordinal) for ordinal in (1, 2)])
    [first, second] = made["faults"].fault_at_s
    # of the region that is hit and of one that remains; of the former, of the latter too early, and of a consumer
    errors = made["fault_errors"].iloc[[0, 2, 3, 4, 4]]
    made["fault_errors"] = errors.assign(
        role=["producer"] * 4 + ["consumer"], at_s=[first, first, second, second - 0.1, second]
    )
    records = made["fault_records"].astype({"error": object})
    given_up, late = records.iloc[[200, 800, 1300]], records.iloc[[1800]]
    assert given_up.producer.tolist() == [0, 1, 0] and late.producer.tolist() == [1]
    records.loc[[*given_up.index, *late.index], "error"] = "_MSG_TIMED_OUT"
    records.loc[given_up.index, "acknowledged_at_s"] = None
    made["fault_records"] = records
    found = region_loss.episodes(made)
    losses, recovered, healed = (region_loss.losses(found), region_loss.recovery(found), region_loss.healing(found))
    said = region_loss.article(found, "cut", losses, recovered, healed)
    assert (said["producer_errors"].estimate, said["producers_failed"].estimate) == (0.5, 0.5)


def test_producers_that_are_behind_before_the_fault_are_a_caution():
    rows = together([episode()])
    assert region_loss.episodes(rows).items[0].on_time == 1 and "behind" not in str(region_loss.episodes(rows))
    slow = rows["fault_records"].acknowledged_at_s + 2.5
    late = region_loss.episodes(rows | {"fault_records": rows["fault_records"].assign(acknowledged_at_s=slow)})
    assert late.items[0].on_time == pytest.approx((5 - 2.57) / 4, abs=0.05)
    assert "producers were behind before the fault in 1 episode" in str(late)


def test_what_the_driver_tidies_up_is_not_healing():
    rows = together([episode(leaders_back_s=3.0)])
    ended = rows["faults"].assign(ended_at_s=rows["faults"].heal_at_s + 2.9)
    healed = region_loss.healing(region_loss.episodes(rows | {"faults": ended}))
    assert healed.rows.back.tolist() == [0] and healed.rows.moved.tolist() == [2]
