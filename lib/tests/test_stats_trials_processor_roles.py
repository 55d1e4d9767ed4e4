"""Who used the processors, from made-up counters with a known answer."""

import pandas as pd
import pytest

from wanbench.errors import MissingDataError
from wanbench.methods.trials import processors as roles

KEY = ("r", "t", 1)
TESTS = pd.DataFrame([{"run_id": "r", "test_id": "t", "attempt": 1, "setting": "one", "outcome": "done"}])


def tables(per_s, *, until_s=20, warmup_s=5.0, **more):
    """Two processors for 20 s; each subject uses so many seconds a second. A load counts from 1,005 to 1,015."""
    per_s = {roles.ALL: 2.0, **per_s}
    rows = [
        {"run_id": "r", "test_id": "t", "attempt": 1, "source": "processors", "host": "h", "subject": name,
         "at_utc": pd.Timestamp(1_000 + at, unit="s", tz="UTC"), "value": rate * at}
        for name, rate in per_s.items()
        for at in range(until_s + 1)
    ]  # fmt: skip
    load = {"run_id": "r", "test_id": "t", "attempt": 1, "start_s": 1_000.0, "warmup_s": warmup_s, "duration_s": 10.0}
    return {"metrics": pd.DataFrame(rows), "open_loop_loads": pd.DataFrame([load]), "tests": TESTS} | more


def test_every_second_has_a_role():
    used = {
        roles.BUSY: 1.6, roles.INTERRUPTS: 0.1, "driver": 0.02, "kafka.Kafka": 0.8, "open_loop_producer": 0.06,
        "io.openmessaging.benchmark.Benchmark": 0.04, "lab_supervisor": 0.1, "sar": 0.02, "program": 0.02,
    }  # fmt: skip
    [row] = roles.by_trial(tables(used)).to_dict("records")
    shares = {name: pytest.approx(row[name]) for name in roles.ROLES}
    assert shares == {"brokers": 40, "clients": 5, "links": 5, "harness": 3, "kernel": 5, "other": 22}
    assert row["busy"] == pytest.approx(80) == pytest.approx(sum(row[name] for name in roles.ROLES))


def test_only_the_seconds_that_count():
    made = tables({roles.BUSY: 1.0, "kafka.Kafka": 0.5})
    start = made["metrics"].subject == "kafka.Kafka"
    made["metrics"].loc[start, "value"] = [min(n, 5) * 1.0 for n in range(21)]  # all of it in the warm-up
    [row] = roles.by_trial(made).to_dict("records")
    assert row["brokers"] == 0 and row["other"] == pytest.approx(50)


def test_a_harness_that_burns_a_processor_is_a_caution():
    calm = {roles.BUSY: 0.9, "kafka.Kafka": 0.7, "open_loop_producer": 0.04, "lab_supervisor": 0.1}
    assert roles.processor_roles(tables(calm)).cautions == ()
    spinning = roles.processor_roles(tables(calm | {roles.BUSY: 1.9, "open_loop_producer": 1.0}))
    [caution] = spinning.cautions
    assert "measurement itself takes more than 15 %" in caution and "clients 50 %" in caution
    [caution] = roles.processor_roles(tables(calm | {roles.BUSY: 1.9})).cautions
    assert "other work on the machine" in caution and "(53 %)" in caution
    assert "The processors were busy for 95 % of the time (brokers 35 %, clients 50 %" in str(spinning)


def test_a_warm_up_of_one_run_leaves_tests_of_other_runs():
    other = tables({roles.BUSY: 1.0, "kafka.Kafka": 0.5})
    given = {name: frame.assign(run_id="r2") for name, frame in other.items()}
    warm_up = pd.DataFrame([{"run_id": "r", "test_id": "t", "block": None}])
    assert roles.processor_roles(given | {"trials": warm_up}).rows.trials.tolist() == [1]


def test_busy_is_never_less_than_what_programs_used():
    """The kernel times programs exactly, but samples the busy time of a processor at its ticks, which miss bursts."""
    [row] = roles.by_trial(tables({roles.BUSY: 0.5, "kafka.Kafka": 0.6, "lab_supervisor": 0.2})).to_dict("records")
    assert row["busy"] == pytest.approx(40) == pytest.approx(sum(row[name] for name in roles.ROLES))


def test_interrupts_charged_to_processes_count_once():
    used = {roles.BUSY: 1.0, roles.INTERRUPTS: 0.4, "lab_supervisor": 1.0}
    [row] = roles.by_trial(tables(used)).to_dict("records")
    assert (row["links"], row["kernel"], row["other"]) == (pytest.approx(50), 0, 0)


def test_a_run_without_samples_says_so():
    for given in ({}, {"metrics": tables({})["metrics"].head(0)}):
        with pytest.raises(MissingDataError, match="no samples of processors by program"):
            roles.processor_roles(given)
    warm_up = pd.DataFrame([{"run_id": "r", "test_id": "t", "block": None}])
    for more in ({"tests": TESTS.assign(outcome="failed")}, {"trials": warm_up}):
        with pytest.raises(MissingDataError, match="no test that counts"):
            roles.processor_roles(tables({roles.BUSY: 1.0}, **more))
