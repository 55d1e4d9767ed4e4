"""What changed between two runs: verdicts, exit codes, what the command writes, and what it refuses."""

import json
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import perturbed_runs
import pytest
from simulations import simulation
from simulations import two_runs as simulated

from wanbench import cli
from wanbench.errors import ParameterError
from wanbench.findings import Finding
from wanbench.folders import samples_folder
from wanbench.methods.comparison import sides, verdicts
from wanbench.pages import region_loss
from wanbench.runs import find

SURVEY = find(samples_folder(), "survey-quick")[0]
ONE_PAIR = "0001-azure.westeurope-gcp.us-west1"


def compare(values: pd.DataFrame, margin: float = 0.05) -> verdicts.Changes:
    return verdicts.changes(values, margin, sides.Side("a"), sides.Side("b"))


def of(found: verdicts.Changes, quantity: str, key: str = verdicts.SUMMARY) -> pd.Series:
    return found.rows.set_index(["quantity", "key"]).loc[(quantity, key)]


def survey(detail: str = "lab", ratio: float = 1.0, seed: int = 0) -> pd.DataFrame:
    return simulated._survey(detail, ratio, np.random.default_rng(seed))


def trials(ratio: float = 1.0, seed: int = 0, n_blocks: int = 3) -> pd.DataFrame:
    return simulated._trials(5, n_blocks, ratio, np.random.default_rng(seed))


def differing(factors):
    """Each raw file's values times the next factors, as a second run of the same plan would differ."""
    return lambda path, raw: perturbed_runs.scaled(*next(factors))(path, raw)


def noise(rtt: float = 1.0, throughput: float = 1.0, seed: int = 0):
    """Factors with the scatter of 0.6 % that both directions of a pair have in the recording."""
    rng = np.random.default_rng(seed)
    while True:
        yield tuple(np.array([rtt, throughput]) * np.exp(0.006 * rng.normal(size=2)))


@pytest.fixture(scope="module")
def again(tmp_path_factory):
    """The recorded survey, with the noise of another run."""
    return perturbed_runs.copy(SURVEY.folder, tmp_path_factory.mktemp("again"), differing(noise()))


@pytest.fixture(scope="module")
def slower(tmp_path_factory):
    """The recorded survey with 10 % more RTT and 10 % less throughput, and another rate of its links in the plan."""
    copied = perturbed_runs.copy(SURVEY.folder, tmp_path_factory.mktemp("slower"), differing(noise(1.1, 0.9)))
    perturbed_runs.edit_journal(copied, lambda text: text.replace('"path_inflation": 1.5', '"path_inflation": 1.65'))
    return copied


@pytest.mark.slow
def test_a_second_run_of_a_recording_has_not_changed(again, capsys):
    assert cli.main(["compare", "survey-quick", str(again)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("equivalent  ") and "0 of 114 comparisons changed" in out
    assert "differs" not in out


@pytest.mark.slow
def test_ten_per_cent_are_found_and_written(slower, tmp_path, capsys):
    files = {name: tmp_path / f"out.{name}" for name in ("json", "junit", "page")}
    options = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    assert cli.main(["compare", SURVEY.run_id, str(slower), *options]) == 1
    out = capsys.readouterr().out
    assert out.startswith("differs     parameters.path_inflation: 1.5 | 1.65\n")
    found = json.loads(files["json"].read_text())
    assert found["exit_code"] == 1 and len(found["comparisons"]) == 114
    first = {row["quantity"]: row for row in found["comparisons"] if row["key"] == "all"}
    assert first["RTT"]["low"] < 1.1 < first["RTT"]["high"] and first["throughput"]["high"] < 0.95
    suites = {suite.get("name"): suite for suite in ElementTree.parse(files["junit"]).getroot()}
    changed = sum(row["verdict"] == "changed" for row in found["comparisons"])
    assert sum(int(suite.get("failures")) for suite in suites.values()) == changed
    case = suites["RTT"].find("testcase[@name='all']")
    assert case.find("failure").get("message").startswith("B is 1.1")
    page = files["page"].read_text()
    assert "path_inflation" in page and "Plotly.newPlot" in page and "How the set-ups differ" in page
    assert (tmp_path / "plotly.min.js").stat().st_size > 1e6


@pytest.mark.slow
def test_one_changed_pair_is_named(tmp_path, capsys):
    factors = noise()

    def change(path, raw):
        rtt, throughput = next(factors)
        return perturbed_runs.scaled(rtt * (1.15 if ONE_PAIR in path else 1), throughput)(path, raw)

    copied = perturbed_runs.copy(SURVEY.folder, tmp_path, change)
    assert cli.main(["compare", str(SURVEY.folder), str(copied)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("changed     RTT, azure:westeurope to gcp:us-west1: 1.1")
    assert "1 of 114 comparisons changed" in out


@pytest.mark.slow
def test_damaged_files_are_told_and_not_compared(tmp_path, capsys):
    copied = perturbed_runs.copy(SURVEY.folder, tmp_path)
    damaged = next((copied / "ping").glob(f"{ONE_PAIR}*"))
    damaged.write_bytes(damaged.read_bytes() + b"x")
    assert cli.main(["compare", "survey-quick", str(copied), "--strict"]) == 3
    out = capsys.readouterr().out
    assert f"1 raw file of {copied} not read" in out and "1 value measured on one side only" in out


def test_other_experiments_cannot_be_compared(capsys):
    assert cli.main(["compare", "survey-quick", "rolling-and-degraded"]) == 2
    told = capsys.readouterr().err
    assert "survey-quick measured pairs of regions, rolling-and-degraded measured Kafka trials" in told


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        ("survey-quick", "survey-quick", "have the same run"),
        ("survey-quick", "nothing", "campaigns are compression-levels, "),
        ("survey-quick@2020", "geo-kafka", "survey-quick was measured on 2026-11-21"),
        ("survey-quick", "{empty}", "a folder without a journal or findings"),
    ],
)
def test_wrong_names_are_refused(a, b, told, tmp_path, capsys):
    assert cli.main(["compare", a, b.format(empty=tmp_path)]) == 2
    assert told in capsys.readouterr().err


def test_a_date_selects_runs_of_a_campaign():
    assert [run.run_id for run in sides.side("survey-quick@2026-11").runs] == [SURVEY.run_id]


def test_a_margin_that_is_no_share_is_refused():
    with pytest.raises(ParameterError, match="margin"):
        verdicts.compare(sides.Side("a"), sides.Side("b"), 5)


def test_each_verdict_follows_from_its_interval():
    found = compare(survey("one pair", 1.2))
    rows = found.rows
    inside = (rows.low >= 1 / 1.05) & (rows.high <= 1.05)
    beyond = ((rows.low > 1) | (rows.high < 1)) & ~rows.ratio.between(1 / 1.05, 1.05)
    assert (rows.verdict == np.where(beyond, "changed", np.where(inside, "equivalent", "undecided"))).all()
    assert set(rows.verdict) == {"changed", "equivalent", "undecided"}
    changed = rows[rows.verdict == "changed"]
    assert set(changed.key) == {"aws:r0 to aws:r1"} and rows.verdict.iloc[0] == "changed"


def test_intervals_of_all_pairs_hold_together():
    found = compare(survey())
    assert of(found, "RTT", "aws:r0 to aws:r1").level == pytest.approx(1 - 0.025 / 112)
    assert of(found, "RTT").level == pytest.approx(1 - 0.025 / 2)


def test_two_regions_alone_tell_nothing():
    values = survey("lab", 1.5)
    found = compare(values[values.key.isin(["aws:r0 to aws:r1", "aws:r1 to aws:r0"])])
    assert set(found.rows.verdict) == {"undecided"}
    assert set(found.rows.reason) == {"too little shows how much runs differ"}
    assert (found.exit_code(), found.exit_code(strict=True)) == (0, 3)


def test_a_pair_with_scattered_pings_needs_more_to_have_changed():
    values = survey()
    noisy = (values.key == "aws:r0 to aws:r1") & (values.quantity == "RTT")
    values.loc[noisy & (values.side == 1), "value"] *= 1.2
    assert of(compare(values), "RTT", "aws:r0 to aws:r1").verdict == "changed"
    values.loc[noisy, ["variance", "freedom"]] = 0.05, 4.0
    assert of(compare(values), "RTT", "aws:r0 to aws:r1").verdict == "undecided"


def test_several_runs_on_both_sides_show_what_affects_a_whole_run():
    values = survey("3 runs a side", seed=1)
    calm = of(compare(values), "RTT")
    assert calm.basis == "3 runs against 3"
    busy = values.run_id == "1 2"
    uneasy = of(compare(values.assign(value=values.value * np.where(busy, 1.3, 1.0))), "RTT")
    assert uneasy.high / uneasy.low > 2 * calm.high / calm.low and uneasy.verdict == "undecided"


def test_blocks_are_compared_with_the_blocks_of_the_same_place():
    values = trials()
    warming = values.assign(value=values.value * (1 + values.block))  # each side warms up in the same way
    for one, other in zip(compare(values).rows.itertuples(), compare(warming).rows.itertuples(), strict=True):
        assert (one.key, one.verdict) == (other.key, other.verdict)
        assert other.ratio == pytest.approx(one.ratio)


def test_a_busy_block_makes_all_settings_undecided():
    values = trials(1.3)
    assert (compare(values).rows.verdict == "changed").any()
    busy = (values.side == 1) & (values.block == 2)
    found = compare(values.assign(value=values.value * np.where(busy, 4.0, 1.0)))
    assert not (found.rows.verdict == "changed").any()


def test_two_blocks_are_too_few():
    assert set(compare(trials(2.0, n_blocks=2)).rows.verdict) == {"undecided"}


def test_a_single_trial_of_a_setting_is_undecided():
    values = trials(2.0)
    single = (values.key == "setting 0") & (values.block > 0)
    row = of(compare(values[~single]), sides.TRIAL_VALUES["records_per_s"][0], "setting 0")
    assert (row.verdict, row.reason) == ("undecided", "too little shows how much runs differ")


@pytest.mark.slow
@pytest.mark.parametrize(("campaign", "n"), [("price-performance", 5), ("tail-latency", 12)])
def test_trials_of_recordings_are_compared_by_setting(campaign, n):
    run = find(samples_folder(), campaign)[0]
    values = sides.values_of(sides.ingest.read_run(run.folder))
    assert values.key.nunique() == n
    both = pd.concat([values.assign(side=0), values.assign(side=1, run_id="again")])
    found = compare(both)
    assert (found.rows.ratio == 1).all() and (found.rows.verdict == "equivalent").all()
    assert {"p99 of latency", "records received by the brokers"} <= set(found.rows.quantity)


@pytest.mark.slow
def test_runs_with_faults_are_compared_by_their_outages(capsys):
    run = find(samples_folder(), "region-loss")[0]
    tables = sides.ingest.read_run(run.folder)
    values, notes = region_loss.comparison.values_of(tables)
    assert [note for note in notes if "acks 1”: 187 of 3,269 in 3 of 3 episodes" in note]
    both = pd.concat([values.assign(side=0), values.assign(side=1, run_id="again", value=2 * values.value)])
    found = compare(both).rows
    assert found.quantity.nunique() == 4 and (found.verdict == "changed").all()
    # an outage that healing ended is only known to be at least that long
    assert "cut gcp:us-west1, acks 1" not in set(found[found.quantity.str.contains("reads")].key)
    assert [note for note in notes if "acks 1” has an episode without an outage of reads" in note]
    assert cli.main(["compare", "region-loss", "survey-quick"]) == 2
    assert "region-loss measured faults, survey-quick measured pairs of regions" in capsys.readouterr().err


def findings(folder, **changes):
    about = {"sentence": "It is so.", "unit": "ms", "n_regions": None, "method": "", "assumption": "", "page": "p"}
    for name, (estimate, low, high, n) in changes.items():
        one = Finding(name=name, estimate=estimate, low=low, high=high, n=n, **about)
        one.save(folder / "findings" / "p")
    return str(folder)


def test_findings_of_two_batches_are_compared(tmp_path):
    a = findings(
        tmp_path / "a", rtt=(100, 98, 102, None), few=(10, 5, 20, 3), sign=(-1, -2, 3, 9), count=(7, None, None, 1)
    )
    b = findings(
        tmp_path / "b", rtt=(120, 118, 122, None), few=(15, 7.5, 30, 3), sign=(1, -2, 3, 9), count=(8, None, None, 1)
    )
    found = verdicts.compare(sides.side(a), sides.side(b))
    assert found.rows.set_index("key").verdict.to_dict() == {"p/rtt": "changed", "p/few": "undecided"}
    assert found.rows.ratio.iloc[0] == pytest.approx(1.2) and found.exit_code() == 1
    with pytest.raises(ParameterError, match="one has runs and the other findings"):
        verdicts.compare(sides.side(a), sides.side("survey-quick"))


def test_jobs_of_two_batches_are_compared_one_by_one(tmp_path):
    for name, factor in (("a", 1), ("b", 2)):
        for seed in (1, 2):
            level = 100 * seed * (factor if seed == 2 else 1)
            findings(tmp_path / name / f"00-seed={seed}" / "page", rtt=(level, level - 1, level + 1, None))
        findings(tmp_path / name / "00-seed=3" / ".page-half", rtt=(100 * factor, 99, 201, None))  # Still being made.
    found = verdicts.compare(*(sides.side(str(tmp_path / name)) for name in "ab")).rows.set_index("key")
    assert found.verdict.to_dict() == {"00-seed=2/p/rtt": "changed", "00-seed=1/p/rtt": "equivalent"}


def test_jobs_that_are_not_done_are_named(tmp_path):
    for name in "ab":
        findings(tmp_path / name / "00-seed=1" / "page", rtt=(10, 9, 11, None))
    for job, state in (("1", "done"), ("2", "running"), ("3", "failed")):
        (folder := tmp_path / "b" / f"00-seed={job}").mkdir(exist_ok=True)
        (folder / "state.json").write_text(json.dumps({"state": state, "reason": "no lab" * (state == "failed")}))
    found = verdicts.compare(*(sides.side(str(tmp_path / name)) for name in "ab"))
    assert found.cautions == (f"2 jobs of {tmp_path / 'b'} not done: 00-seed=2 (running), 00-seed=3 (no lab)",)


def test_the_figure_shows_the_margin_and_every_row():
    found = compare(survey("lab", 1.1))
    figure = found.figure()
    assert sum(len(trace.x or ()) for trace in figure.data) == verdicts.SHOWN_ROWS
    assert figure.layout.meta["csv"].count("\n") == len(found.rows) + 1


def test_equal_runs_exit_rightly_and_ten_per_cent_are_found():
    """The committed counts: at most 5 % of wrong exits, and nine of ten differences of 10 % found."""
    table = simulation.read("two_runs")
    codes = table[table.quantity == "exit code"].assign(setting=table.setting.map(json.loads))
    for row in codes.itertuples():
        assert row.data_sets >= 200
        assert row.coverage >= (0.95 if row.setting["ratio"] == 1 else 0.9), row.setting


@pytest.mark.slow
def test_the_first_data_sets_have_the_committed_counts():
    chosen = [one for one in simulated.SETTINGS if one["kind"] in ("survey, lab", "trials, 5 settings, 3 blocks")][:3:2]
    again = simulation.run(simulated, datasets=simulation.FIRST_DATASETS, settings=chosen)
    assert simulation.compare_counts(simulation.read("two_runs"), again).same.all()
