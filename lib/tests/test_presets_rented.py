"""Dry runs of presets on rented hosts: what the notebook asks for is planned and priced; no cloud is called."""

from pathlib import Path

import pytest

from wanbench.cli import main
from wanbench.measure.campaign import start
from wanbench.measure.labs import CLOUDS
from wanbench.measure.labs.aws import preflight
from wanbench.measure.labs.rented.costs import SET_UP_S
from wanbench.publish.notebooks import read_notebook
from wanbench.publish.parameters import read_parameters

ROOT = Path(__file__).parents[2]


class Asked(Exception):
    """The notebook has come to its call of `campaign.run`."""


@pytest.fixture
def dry_run(monkeypatch):
    """A function that runs a notebook with a preset up to measuring: the plan, and the lab with its estimate."""
    monkeypatch.setenv("WANBENCH_OPERATOR_ADDRESS", "192.0.2.7")
    for cloud in CLOUDS:
        monkeypatch.setattr(CLOUDS[cloud].lab_class, "survey", lambda *asked: ([], []))
    monkeypatch.setattr(preflight, "list_prices", lambda *_: {})

    def run(name, preset):
        def stop(plan, lab, **_):
            raise Asked(plan, lab)

        monkeypatch.setattr(start, "measure", stop)
        given = read_parameters(ROOT / f"papermill-params/{name}/{preset}.yml")
        names = {}
        with pytest.raises(Asked) as asked:
            for cell in read_notebook(ROOT / f"notebooks/{name}.ipynb").cells:
                if cell.cell_type == "code":
                    exec(cell.source, names)
                    if "parameters" in cell.metadata.get("tags", []):
                        names |= given
        plan, lab = asked.value.args
        rented = getattr(lab, "lab", lab)
        return plan, lab, rented.estimate(plan, given["campaign"])[0]

    return run


def test_pairs_between_two_clouds(dry_run):
    plan, lab, expected = dry_run("02-intercloud-throughput", "aws-gcp")
    assert lab.kind == "aws+gcp" and len(plan.tests) == 32
    assert {(t.from_region[:3], t.to_region[:3]) for t in plan.tests} == {("aws", "gcp"), ("gcp", "aws")}
    assert expected.hosts == 8 and expected.hours == pytest.approx((plan.expected_s() + SET_UP_S) / 3600)
    assert expected.unknown == [] and 1 < expected.high_usd < lab.budget_usd


def test_two_paths_between_the_same_hosts(dry_run):
    plan, lab, expected = dry_run("05-private-vs-internet", "aws-azure")
    trials = [experiment for test in plan.tests for experiment in plan.experiments_of(test)]
    assert [trial.path for trial in trials[:3]] == ["internet", "internet", "private"]
    assert {trial.path for trial in trials} == set(lab.path_names) and len(trials) == 1 + 4 * 4
    assert not any(part.name == "link_samples" for trial in trials for part in trial.alongside)
    assert [broker.host.region for broker in lab.cluster.brokers] == ["aws:us-east-1"] * 3
    assert expected.hosts == 4 and expected.unknown == [] and 4 < expected.high_usd < lab.lab.budget_usd


def test_one_kafka_over_three_regions(dry_run):
    plan, lab, expected = dry_run("06-geo-kafka", "gcp-three-regions")
    regions = ["gcp:us-central1", "gcp:us-east1", "gcp:us-west1"]
    assert [broker.host.region for broker in lab.cluster.brokers] == plan.regions == regions
    assert set(lab.sysctls) == {"net.core.rmem_max", "net.core.wmem_max"} and len(plan.tests) == 2 * 11
    assert expected.hosts == 3 and expected.hours == pytest.approx((plan.expected_s() + SET_UP_S) / 3600)
    assert expected.unknown == [] and 1 < expected.high_usd < lab.lab.budget_usd


def test_nine_brokers_and_six_hosts_for_clients(dry_run):
    plan, lab, expected = dry_run("06-geo-kafka", "gcp-nine-brokers")
    assert [broker.host.name for broker in lab.cluster.brokers] == [f"{a}/{n}" for a in plan.regions for n in range(3)]
    trials = {test.setting: plan.experiments_of(test)[0] for test in plan.tests}
    assert trials["tuned"].client_regions == tuple(f"{a}/{n}" for n in (3, 4) for a in plan.regions)
    tuned = trials["tuned"].load
    article = (72, 3, 131_072, "lz4", 18, 50, "all")
    assert article == tuple(
        getattr(tuned, name)
        for name in ("partitions", "replication", "batch_bytes", "compression", "producers", "linger_ms", "acks")
    )
    assert dict(tuned.producer_settings)["send.buffer.bytes"] == "245000000", "3.5 GB/s x 70 ms"
    assert len(plan.tests) == 2 * 13 and expected.hosts == 15
    assert expected.unknown == [] and 1 < expected.high_usd < lab.lab.budget_usd


def test_a_dry_run_shows_plan_and_cost_and_measures_nothing(dry_run, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(start.AGAIN_VARIABLE, "")
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(ROOT)
    preset = "papermill-params/02-intercloud-throughput/aws-gcp.yml"
    with pytest.raises(SystemExit) as ended:
        main(["run", "02", "--dry", "-f", preset, "-p", "distance_km=[0, 5000]"])
    shown = capsys.readouterr().out
    assert not ended.value.code and not (tmp_path / "data").exists()
    assert "12 ordered pairs of 8 regions" in shown and "USD" in shown


@pytest.mark.parametrize("preset", ["instance-types", "instance-types-2"])
def test_brokers_of_several_instance_types(dry_run, preset):
    plan, lab, expected = dry_run("10-price-performance", preset)
    region, rented = "aws:us-east-1", lab.lab
    assert len(plan.tests) == 3 * 3 and plan.regions == [region]
    assert [host.name for host in lab.hosts[region]] == [f"{region}/{number}" for number in range(11)]
    for test in plan.tests:
        [trial] = plan.experiments_of(test)
        at = list(rented.settings["instance_type"]).index(test.setting)
        assert {broker for replicas in trial.load.placement for broker in replicas} == set(
            range(3 * at + 1, 3 * at + 4)
        )
        assert [size is not None for size in trial.broker_sizes].index(True) == 3 * at
        assert trial.client_regions == (f"{region}/9", f"{region}/10")
    assert expected.hosts == 11 and expected.unknown == [] and 0.5 < expected.high_usd < rented.budget_usd
