"""The study of disturbed brokers, on made-up trials with a known answer: 20 ms, and what an action adds."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from latency_samples import encoded

from wanbench.errors import MissingDataError, ParameterError
from wanbench.measure.experiments import KafkaOpenLoop, KafkaTrial
from wanbench.measure.plan import Trial, in_blocks, warmed_up
from wanbench.pages import rolling_and_degraded
from wanbench.pages import rolling_and_degraded as study
from wanbench.pages.rolling_and_degraded.design import Detection, rolls, slowed

START_S, WARM_UP, RATE = 1_800_000_000.0, 2, 100
TOPIC = "open-loop-{}.1-abc-0"


def trial(test_id, setting, seconds, slow=(), actions=(), *, block=1, leads=(), demotes=None, alarms=(), **load):
    """
    Rows by table. `slow`: (from, to, ms) in s since the warm-up, when records take that long. `actions`: (kind, node,
    began, done, healthy). `leads`: (at, leader of the three partitions, brokers in sync).
    """
    key = {"run_id": "run", "test_id": test_id, "attempt": 1}
    zero = START_S + 1000 * int(test_id) + WARM_UP
    system = None if demotes is None else "slow"
    histograms = []
    for second in range(-WARM_UP, seconds):
        ms = max([20.0, *(value for first, last, value in slow if first <= second < last)])
        values = np.full(RATE, ms * 1000.0)
        values[: RATE // 2] = 10_000.0
        row = key | {"what": "end to end", "group": 0, "window": second + WARM_UP, "start_s": zero + second}
        row |= {"warm_up": second < 0, "n_lost": 0, "histogram": encoded(values)}
        histograms.append(row)
    about = {"start_s": zero - WARM_UP, "warmup_s": WARM_UP, "duration_s": seconds, "late_p99_ms": 1.0, "error": None}
    about |= {"from_region": "clients", "n_intended": RATE * (seconds + WARM_UP), "n_acknowledged": 90}
    about |= {"n_received_per_group_min": 90} | load
    done = [
        key | {"node_id": node, "kind": kind, "rolling": kind in ("restart", "kill"), "detail": '{"share": 0.1}'}
        | {"leaders_moved": 1, "error": None}
        | {f"{name}_at_s": zero + at for name, at in zip(("began", "done", "healthy"), times, strict=True)}
        | {"in_force_at_s": zero + times[0]}
        for kind, node, *times in actions
    ]  # fmt: skip
    samples = [
        key | {"at_s": zero + at, "topic": TOPIC.format(test_id), "partition": n, "leader": leader}
        | {"isr": isr, "n_isr": len(isr.split(","))}
        for at, leaders, isr in leads
        for n, leader in enumerate(leaders)
    ]  # fmt: skip
    found = [
        key | {"node_id": node, "at_s": zero + at, "demoted_at_s": zero + at + 0.5 if demotes else np.nan}
        for node, at in alarms
    ]
    return {
        "trials": [key | {"setting": setting, "system": system, "block": block}],
        "tests": [key | {"outcome": "done", "started_at_utc": pd.Timestamp(zero, unit="s", tz="UTC")}],
        "open_loop_loads": [key | about],
        "open_loop_histograms": histograms,
        "broker_actions": done,
        "cluster_samples": samples,
        "detection_runs": [] if demotes is None else [key | {"demote_on_alarm": demotes}],
        "detections": found,
    }


def tables(*trials):
    found = {name: pd.DataFrame([row for each in trials for row in each[name]]) for name in trials[0]}
    found["trials"] = found["trials"].drop(columns="attempt")
    return {name: frame for name, frame in found.items() if len(frame)}


WHOLE = (1, 2, 3), "1,2,3"
QUIET = trial("1", "undisturbed", 30)
ROLL = trial(
    "2", "restart", 40, slow=[(10, 13, 500.0), (25, 27, 900.0)],
    actions=[
        ("restart", 1, 10.0, 12.5, 14.0), ("restart", 2, 25.0, 27.0, 28.0), ("restart", 3, 41.0, 43.0, 44.0)],
    leads=[(0, *WHOLE), (10.5, (2, 2, 3), "2,3"), (13.5, (2, 2, 3), "1,2,3"), (40, *WHOLE)],
)  # fmt: skip
SLOW = trial("3", "slow", 30, [(10, 18, 400.0)], [("slow", 1, 10.0, 18.0, 18.5)], leads=[(0, *WHOLE)], demotes=False)
DEMOTED = trial(
    "4", "slow, demoted", 30, [(10, 13, 400.0)], [("slow", 1, 10.0, 18.0, 18.5), ("restore", None, 19.0, 20.0, 20.5)],
    leads=[(0, *WHOLE), (12, (2, 2, 3), "1,2,3"), (20, *WHOLE)], demotes=True, alarms=[(1, 11.5)],
)  # fmt: skip
PILED = trial(
    "5", "leaders piled", 24, [(8, 10, 60.0)], [("skew", 1, 8.0, 9.5, 9.5), ("rebalance", None, 16.0, 17.0, 17.0)],
    leads=[(0, *WHOLE), (9.5, (1, 1, 1), "1,2,3"), (17, *WHOLE)],
)  # fmt: skip


@pytest.fixture(scope="module")
def made():
    return tables(QUIET, ROLL, SLOW, DEMOTED, PILED)


@pytest.fixture(scope="module")
def measured(made):
    return study.trials(made)


def test_the_limit_is_that_of_undisturbed_seconds_for_as_many_as_an_episode_has(measured):
    assert measured.n_seconds == 30 + 10 + 10 + 10 + 8 and measured.span_s == 20
    assert measured.limit_ms == pytest.approx(20, rel=0.01) and measured.level == pytest.approx(68 / 88)
    assert "p99 exceeds 20.0 ms (the undisturbed limit) in none of 20 further undisturbed seconds" in str(measured)
    assert "5 of 5 trials count" in str(measured) and len(measured.formatted_table()) == 5
    late = tables(QUIET, trial("2", "restart", 40, late_p99_ms=9.0))
    assert "Not counted: “restart” (the generator itself was late: p99 of its delay is 9.00 ms)" in str(
        study.trials(late)
    )


def test_brokers_that_are_too_slow_even_undisturbed_are_a_caution(measured):
    assert measured.cautions == ()
    queued = study.trials(tables(trial("1", "undisturbed", 30, slow=[(5, 30, 4_000.0)]), ROLL))
    assert queued.cautions[0].startswith("overloaded: in 1 of 2 trials p99 of undisturbed seconds is 1 s or more")


def test_the_warm_up_of_the_brokers_is_no_trial(made, measured):
    slow = trial("6", "warm-up of the brokers", 15, slow=[(0, 15, 9_000.0)], block=np.nan)
    assert str(study.trials(tables(slow, QUIET, ROLL, SLOW, DEMOTED, PILED))) == str(measured)


def test_each_restart_has_what_was_added_to_it(measured):
    found = study.restarts(measured)
    assert found.rows.excess_p99_ms.tolist() == pytest.approx([480, 880], rel=0.01)
    assert found.rows.back_s.tolist() == [3.0, 2.0] and not found.rows.back_s_censored.any()
    assert found.of("restart", "excess_p99_ms").estimate == pytest.approx(680, rel=0.01)
    assert "In 2 of 2 restarts some second had a p99 above the undisturbed limit" in str(found)
    with pytest.raises(MissingDataError, match="no trial with restart or kill"):
        study.restarts(study.trials(tables(QUIET)))


def test_a_restart_is_held_against_its_own_trial_and_a_spike_of_a_second_is_seen():
    noisy = trial("1", "undisturbed", 30, slow=[(5, 8, 100.0)])
    run = tables(noisy, trial("2", "restart", 40, actions=[("restart", 1, 10.5, 18.0, 30.0)], leads=[(0, *WHOLE)]))
    rows = run["open_loop_histograms"]
    spike = (rows.test_id == "2") & (rows.start_s == START_S + 2_000 + WARM_UP + 10)
    rows.loc[spike, "histogram"] = encoded(np.r_[np.full(98, 20_000.0), 150_000.0, 150_000.0])  # of three seconds 0.7 %
    found = study.restarts(study.trials(run))
    row = found.rows.iloc[0]
    assert row.undisturbed_p99_ms == pytest.approx(20, rel=0.01)  # that of all trials of the block is 100
    assert row.excess_p99_ms == pytest.approx(0, abs=0.5) and row.peak_ms == pytest.approx(150, rel=0.01)
    assert row.back_s == 0.5 and "In 1 of 1 restart some second had a p99 above the undisturbed limit" in str(found)


def test_a_restart_that_is_over_within_the_warm_up_has_no_latency_and_does_not_count():
    early = [("restart", 1, -9.0, -8.0, -7.0), ("restart", 2, 10.0, 12.0, 13.0)]
    run = tables(QUIET, trial("2", "restart", 40, actions=early, leads=[(0, *WHOLE)]))
    assert study.restarts(study.trials(run)).rows.node_id.tolist() == [2]


def test_a_demotion_shortly_before_the_end_of_a_slowness_is_no_test_of_demotion(made):
    late = trial(
        "4", "slow, demoted", 30, [(10, 18, 400.0)], [("slow", 1, 10.0, 18.0, 18.5)], leads=[(0, *WHOLE)], demotes=True,
        alarms=[(2, 11.0), (1, 17.3)],
    )  # fmt: skip
    run = tables(QUIET, SLOW, late)
    found = study.degraded(study.trials(run), run)
    assert found.demotions == {} and found.rows.late_demoted.tolist() == pytest.approx([0, 0.2 / 4])
    assert "Demotion was not tested under “slow”, because brokers were demoted for only 5 % of the second half" in str(
        found
    )
    assert "(demotion acted in 1 of 1 episode)" in str(found) and "times" not in str(found)
    evidence = study.evidence(slowed=found, kind="slow")
    assert not {"demotion", "demotion_rest", "demotion_min"} & set(evidence) and "demotion_restored" in evidence


def test_demotion_in_every_episode_has_nothing_to_be_compared_with():
    early = trial(
        "4", "slow, demoted", 30, [(10, 18, 400.0)], [("slow", 1, 10.0, 18.0, 18.5)], leads=[(0, *WHOLE)], demotes=True,
        alarms=[(1, 10.5)],
    )  # fmt: skip
    run = tables(QUIET, early)
    found = study.degraded(study.trials(run), run)
    assert found.demotions == {} and "“slow”, because there is no episode without demotion" in str(found)


def test_demotion_is_held_against_the_same_slowness_without(made, measured):
    found = study.degraded(measured, made)
    by = found.rows.set_index("demotes")
    assert by.late_ms.tolist() == pytest.approx([400, 20], rel=0.01)
    assert by.late_back.tolist() == [False, True] and by.after_back.all()
    assert (
        by.back_s.tolist() == [8.0, 3.0]
        and by.back_censored.tolist() == [True, False]
        and by.demoted_s[True] == 2.0
        and np.isnan(by.demoted_s[False])
    )
    [ratio] = found.estimates
    assert ratio.estimate == pytest.approx(1 / 20, rel=0.01) and ratio.n == 1
    assert (by.led_late[True], by.led_after[True]) == (0, 1)
    phases = [f"{found.of('slow', on, phase).formatted}" for phase in ("early", "return") for on in (True, False)]
    cost = (
        "In the first half p99 is {} with demotion and {} without it. Just after the slowness it is {} with "
        "demotion and {} without it."
    )
    assert cost.format(*phases) in found.sentence
    assert "no interval" in found.cautions[0] and "rises from 20.0 ms (undisturbed) to 400 ms in" in str(found)
    assert by.late_demoted[True] == 1
    assert list(found.formatted_table().columns) == ["", "slow", "slow, demoted"]


def test_piled_leaders_are_seen_phase_by_phase(measured):
    found = study.leader_skew(measured)
    rows = found.rows.set_index("phase")
    assert rows.leader_share["on one broker"] == 1 and rows.leader_share["spread again"] == pytest.approx(1 / 3)
    assert (
        rows.p99_ms["moving to one broker"] == pytest.approx(60, rel=0.01)
        and rows.lasts_s["moving to one broker"] == 1.5
    )
    assert "leads 100 % of the partitions" in str(found) and len(found.formatted_table()) == 5


def test_moved_partitions_are_seen_phase_by_phase():
    moves = [("reassign", 3, 8.0, 14.0, 14.5), ("reassign", None, 20.0, 25.0, 25.5)]
    leads = [(0, *WHOLE), (14, (1, 2, 1), "1,2"), (25, *WHOLE)]
    found = study.reassignment(study.trials(tables(trial("1", "moved", 30, [(8, 12, 60.0)], moves, leads=leads))))
    rows = found.rows.set_index("phase")
    assert rows.replica_share.tolist() == pytest.approx([1 / 3, 1 / 2, 1 / 2, 1 / 3, 1 / 3])
    assert rows.lasts_s.tolist() == [8, 6, 6, 5, 5] and rows.leader_share["with an empty broker"] == pytest.approx(
        2 / 3
    )
    assert "Emptying a broker took 6.00 s, with a p99 of 60.0 ms" in str(found)
    with pytest.raises(MissingDataError, match="completed both of its moves"):
        study.reassignment(study.trials(tables(trial("1", "moved", 30, actions=moves[:1], leads=leads))))


def test_the_timeline_shows_every_action(measured):
    figure = measured.figure(settings=["restart", "slow, demoted"])
    assert len(figure.data) == 6 and "restart 2" in figure.layout.meta["csv"]
    with pytest.raises(MissingDataError):
        measured.figure(settings=["nothing"])


def test_the_claims_get_what_was_measured(made, measured):
    evidence = study.evidence(study.restarts(measured), study.degraded(measured, made), roll="restart", kind="slow")
    rows = rolling_and_degraded.claims.rolling_and_degraded(**evidence).table().set_index("claim")
    assert evidence["roll_spikes"].estimate == 1
    for claim in ("roll-every", "roll-seconds", "rediscover", "no-leadership", "restores"):
        assert rows.rerun[claim] == "not tested" and "Re-run, without a verdict:" in rows.working[claim]
    of_disks = study.degraded(measured, made)
    of_disks = replace(of_disks, rows=of_disks.rows.assign(kind="disk"))
    assert study.evidence(slowed=of_disks, kind="slow")["degraded_disk"].estimate == evidence["degraded"].estimate
    plain = study.restarts(measured)
    slower = plain.rows[plain.rows.setting == "restart"].assign(setting="new", p99_ms=lambda rows: 2 * rows.p99_ms)
    both = replace(plain, rows=pd.concat([plain.rows, slower], ignore_index=True))
    rolls = {"restart": {"kind": "restart"}, "new": {"kind": "restart", "load": {"producer_settings": {"x": 1}}}}
    assert study.differ_in_clients(rolls) == ("new", "restart")
    assert study.evidence(both, other_clients=("new", "restart"))["roll_clients"].estimate == pytest.approx(2)


def test_restarts_of_one_trial_share_its_undisturbed_p99_and_so_count_as_one(measured):
    plain = study.restarts(measured)
    alone = study.evidence(plain, roll="restart")
    assert alone["roll"].n == 1 and np.isnan(alone["roll"].low) and alone["roll"].basis == "1 trial"
    rows = rolling_and_degraded.claims.rolling_and_degraded(**alone).table().set_index("claim")
    assert rows.rerun["disruptive"] == "undecided" and "two trials or episodes" in rows.working["disruptive"]
    again = plain.rows.assign(block=2, p99_ms=lambda rows: 1.01 * rows.p99_ms)
    two = study.evidence(replace(plain, rows=pd.concat([plain.rows, again])), roll="restart")["roll"]
    assert two.n == 2 and two.estimate == pytest.approx(1.01**0.5 * alone["roll"].estimate) and two.low > 0


def test_newly_started_brokers_are_warmed_up_before_the_next_trial():
    load = KafkaOpenLoop(100, warmup_s=2)
    kinds = {"many": {"kind": "restart", "load": {"warmup_s": 10}}, "few": {"kind": "kill", "for_s": 1}}
    made = rolls(load, kinds, calm_s=5)
    assert [made[name].alongside[0].actions[0].at_s for name in kinds] == [13, 5]
    steady = KafkaTrial(load)
    settings = {"a": steady, "other": KafkaTrial(load, broker_settings={"num.io.threads": 4}), "b": steady, **made}
    settings["apart"] = KafkaTrial(load, cluster="apart")
    order = [Trial(name, (settings[name],), 1) for name in ("a", "a", "other", "apart", "b", "many", "apart", "few")]
    found = warmed_up(order, replace(load, duration_s=16), client_regions=["us"])
    names = ["w", "a", "a", "w", "other", "w", "apart", "w", "b", "many", "apart", "w", "few"]
    assert [{"warm-up of the brokers": "w"}.get(each.setting, each.setting) for each in found] == names
    warm = [each.experiments[0] for each in found if each.block is None]
    assert [one.cluster for one in warm] == [None, None, "apart", None, None]
    assert warm[1] == KafkaTrial(
        replace(load, duration_s=16), broker_settings={"num.io.threads": 4}, client_regions=["us"]
    )


def test_plans_say_what_is_wrong_with_a_disturbance():
    load = KafkaOpenLoop(100)
    made = slowed(
        load, {"far": {"kind": "link", "delay_ms": 50}}, Detection(), brokers=2, first_s=70, slow_s=5, calm_s=5
    )
    assert [trial.setting for trial in in_blocks(made, replicates=1, seed=0)] != [] and made["far"].system == "far"
    for wrong, why in (
        ({"share": 0.1}, "has no kind"),
        ({"kind": "kill", "node_id": 1}, "node_id; allowed"),
        ({"kind": "kill", "load": {"rate": 1}}, "the load of “x” has rate"),
    ):
        with pytest.raises(ParameterError, match=why):
            rolls(load, {"x": wrong}, calm_s=1)


def of_disks(*episodes, set_bytes=4e6):
    """A trial per episode of 12 s: s until the disk slows, its rates in MB/s before and after that, does p99 rise."""
    trials = []
    for n, (slows_s, before, after, rises) in enumerate(episodes, 1):
        slow = [(int(10.5 + slows_s), 22, 900.0)] if rises else []
        one = trial(str(n), "disk", 30, slow, [("disk", 1, 10.5, 22.5, 22.6)], leads=[(0, *WHOLE)], demotes=False)
        counts = [[s, 1e6 * (min(s, slows_s) * before + max(s - slows_s, 0) * after)] for s in np.arange(0, 12.1, 0.1)]
        one["broker_actions"][0]["detail"] = json.dumps({"disk_credit_bytes": set_bytes, "written": counts})
        trials.append(one)
    return study.trials(tables(trial("9", "undisturbed", 30), *trials))


RATES = 1.8, 1.9, 2.0, 2.1, 2.2, 2.4


def test_a_disk_whose_burst_credit_is_used_up_is_named_with_its_credit():
    found = study.disk_credits(of_disks(*((4 / (rate - 1), rate, 1.0, True) for rate in RATES)))
    credit, written = (found.of("slow", name) for name in ("credit_bytes", "written_bytes"))
    assert credit.n == written.n == 6 and [credit.low, credit.estimate, credit.high] == pytest.approx([4e6] * 3)
    assert written.estimate == pytest.approx(8e6, abs=1e6)
    assert f"p99 rose in 6 of 6 episodes, after {written.formatted_with_interval} were written" in found.sentence
    assert f"which shows a burst credit of {credit.formatted_with_interval}; 4.00 MB were set." in found.sentence


def test_a_disk_without_burst_credit_has_none_named():
    """Nor if one disk happens to have slowed later."""
    found = study.disk_credits(of_disks(*((0.1, rate, 1.0, True) for rate in RATES), (4, 2, 1, True), set_bytes=0))
    assert found.sentence.startswith("With “slow” p99 rose in 7 of 7 episodes, after ")
    assert found.sentence.endswith("were written, which shows no burst credit; 0 bytes were set.")
    assert not found.of("slow", "credit_bytes").n


def test_a_burst_credit_that_was_not_used_up_is_not_named():
    found = study.disk_credits(of_disks(*((12, rate, rate, False) for rate in RATES)))
    assert found.sentence == "With “slow” p99 rose in 0 of 6 episodes, so no burst credit was used up."
    assert found.estimates == () and found.finding("x").estimate is None
    with pytest.raises(MissingDataError, match="counted what a limited disk wrote"):
        older = trial("1", "disk", 30, [(10, 18, 400.0)], [("disk", 1, 10.0, 18.0, 18.5)], demotes=False)
        study.disk_credits(study.trials(tables(older)))
