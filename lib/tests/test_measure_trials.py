"""What measuring keeps of trials."""

import json

from scripted_lab import Reply, ScriptedLab, well

from wanbench.measure.campaign.execute import measure
from wanbench.measure.experiments import KafkaLoad, Ping
from wanbench.measure.plan import Trial, make_trials
from wanbench.measure.plan.pairs import MAX_NAME
from wanbench.pages.private_vs_internet.design import Path, two_paths
from wanbench.read.ingest import read_run
from wanbench.runs.journal import now_utc

PATHS = [Path("internet", 132.9, 25.1), Path("private", 62.5, 0.7)]
LOAD = KafkaLoad(batch_bytes=80_000, duration_s=5, warmup_s=2)


def plan_of(trials):
    return make_trials(trials, from_region="a", to_region="b")


def test_trials_of_one_pair_are_measured_in_order_and_resumed(tmp_path):
    trials = [Trial(name, (Ping(count=2),), block) for block, name in ((1, "A"), (1, "B"), (2, "B"), (2, "A"))]
    run = measure(plan_of(trials), ScriptedLab(["a", "b"]), data_folder=tmp_path, campaign="turns")
    tests = run.tests()
    assert tests.setting.tolist() == ["A", "B", "B", "A"]
    assert tests.outcome.tolist() == ["done"] * 4
    again = measure(plan_of(trials), ScriptedLab(["a", "b"]), data_folder=tmp_path, campaign="turns")
    assert again.run_id == run.run_id
    renamed = [Trial("C", trial.experiments, trial.block) for trial in trials]
    longer = [Trial(trial.setting, (Ping(count=3),), trial.block) for trial in trials]
    later = [Trial(trial.setting, trial.experiments, trial.block + 1) for trial in trials]
    for others in (renamed, longer, later):
        other = measure(plan_of(others), ScriptedLab(["a", "b"]), data_folder=tmp_path, campaign="turns")
        assert other.run_id != run.run_id


def test_regions_with_the_longest_names_are_measured(tmp_path):
    ends = ["a" * MAX_NAME, "b" * MAX_NAME]
    plan = make_trials([Trial("A", (Ping(count=2),))], from_region=ends[0], to_region=ends[1])
    longest = f".{plan.tests[0].id}.99.consumer-999.metrics.stderr.txt.zst.unfinished"
    assert len(longest) < 255
    run = measure(plan, ScriptedLab(ends), data_folder=tmp_path, campaign="long")
    assert run.tests().outcome.tolist() == ["done"]


def test_a_trial_that_fails_is_tried_again_at_the_end(tmp_path):
    asked = []

    def script(host, command):
        asked.append(command)
        return Reply(returncode=2, stderr=b"no") if len(asked) == 1 else well(host, command)

    trials = [Trial(name, (Ping(count=2),)) for name in ("A", "B", "B")]
    lab = ScriptedLab(["a", "b"], script)
    run = measure(plan_of(trials), lab, data_folder=tmp_path, campaign="again")
    tests = run.tests()
    assert tests.outcome.tolist() == ["failed", "done", "done", "done"]
    assert tests.setting.tolist() == ["A", "B", "B", "A"]


def test_table_trials_comes_from_the_plan(tmp_path):
    trials = two_paths(PATHS, LOAD, rate_bps=1e9, scales={10: 1}, background_share=0.8)
    plan = plan_of(trials)
    folder = tmp_path / "raw" / "c" / "r"
    folder.mkdir(parents=True)
    start = {"schema_version": 1, "campaign": "c", "run_id": "r", "plan": json.loads(json.dumps(plan.as_dict()))}
    event = {"event": "run-started", "at_utc": now_utc(), "parameters": {}, "lab": {"kind": "local"}, **start}
    (folder / "journal.jsonl").write_text(json.dumps(event) + "\n")
    table = read_run(folder)["trials"]
    assert table.setting.tolist() == [trial.setting for trial in trials]
    assert table.batch_bytes.unique().tolist() == [8000] and table.rate_bps.unique().tolist() == [1e8]
    assert table.background_bps.unique().tolist() == [8e7] and table.acks.unique().tolist() == ["all"]
