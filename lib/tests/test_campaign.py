"""One call for a notebook: which recording is replayed, and when there is none."""

import dataclasses

import pytest

from wanbench.errors import ParameterError
from wanbench.folders import samples_folder
from wanbench.measure.campaign import start
from wanbench.measure.experiments import Iperf3, Ping
from wanbench.measure.links import LinkSettings
from wanbench.measure.plan import make_plan
from wanbench.runs import find

CAMPAIGN = "survey-quick"
KINDS = {"ping": Ping, "iperf3": Iperf3}


@pytest.fixture(scope="module")
def recorded():
    """The recording, and the links and the plan it was made with."""
    run = find(samples_folder(), CAMPAIGN)[-1]
    names = [field.name for field in dataclasses.fields(LinkSettings)]
    links = {
        (link["from_region"], link["to_region"]): LinkSettings(**{name: link[name] for name in names if name in link})
        for link in run.links()
    }
    experiments = [
        KINDS[each["name"]](**{name: value for name, value in each.items() if name not in ("name", *start.FORMER)})
        for each in run.plan["experiments"]
    ]
    rtts = {(test["from_region"], test["to_region"]): test["rtt_ms"] for test in run.plan["tests"]}
    plan = make_plan(pairs=list(rtts), rtt_ms=rtts, experiments=experiments, seed=run.plan["seed"])
    return run, links, plan


def replay(plan, links):
    return start.run(plan, links, lab="samples", campaign=CAMPAIGN)


def test_the_recording_of_a_plan_is_found(recorded):
    run, links, plan = recorded
    assert replay(plan, links).run_id == run.run_id
    open_queues = {pair: dataclasses.replace(link, queue_bytes=None) for pair, link in links.items()}
    assert replay(plan, open_queues).run_id == run.run_id


@pytest.mark.parametrize("change", [{"loss": 0.01}, {"rate_bps": 1e6}, {"jitter_ms": 0.1}, {"queue_bytes": 1}])
def test_a_recording_with_other_links_is_not_taken_for_this_one(recorded, change):
    _, links, plan = recorded
    other = {pair: dataclasses.replace(link, **change) for pair, link in links.items()}
    with pytest.raises(ParameterError, match="No recording of this plan"):
        replay(plan, other)


def test_a_recording_with_other_experiments_is_not_taken_for_this_one(recorded):
    _, links, plan = recorded
    with pytest.raises(ParameterError, match="No recording of this plan"):
        replay(dataclasses.replace(plan, experiments=plan.experiments[:1]), links)


@pytest.mark.parametrize(
    ("wanted", "is_it"),
    [
        ({"acks": "all", "rack": None}, True),
        ({"acks": "all", "rack": "a"}, False),
        ({"acks": "all", "ip_version": 4}, True),
        ({"acks": "all", "ip_version": 6}, False),
        ({"acks": "1", "rack": None}, False),
        ({"rack": None}, False),
    ],
)
def test_a_setting_that_is_newer_than_a_recording_must_be_left_open_or_as_it_was(wanted, is_it):
    assert start._is_asked_for([{"load": {"acks": "all"}}], [{"load": wanted}]) is is_it


def test_an_unknown_lab_is_refused(recorded):
    _, links, plan = recorded
    with pytest.raises(ParameterError, match=r"allowed: 'local', .*'samples'"):
        start.run(plan, links, lab="moon", campaign=CAMPAIGN)


@pytest.mark.parametrize(
    ("asked", "options"), [("", (False, False)), ("fresh", (True, False)), ("retry-failed", (False, True))]
)
def test_the_command_line_asks_to_measure_again(recorded, monkeypatch, asked, options):
    _, links, plan = recorded
    monkeypatch.setenv(start.AGAIN_VARIABLE, asked)
    monkeypatch.setattr(
        "wanbench.measure.campaign.start.measure", lambda *_, fresh, retry_failed, **__: (fresh, retry_failed)
    )
    assert start.run(plan, links, lab="local", campaign="c") == options


def test_the_local_lab_has_hosts_for_brokers_and_for_controllers_of_their_own(recorded, monkeypatch):
    _, links, plan = recorded
    monkeypatch.setattr("wanbench.measure.campaign.start.measure", lambda plan, lab, **_: lab)
    here, there = plan.regions[:2]

    def hosts(brokers, **cluster):
        lab = start.run(plan, links, lab="local", campaign="c", brokers=brokers, cluster=cluster)
        return {len(each) for each in lab.hosts.values()}

    assert hosts([]) == hosts([here, there]) == {1} and hosts([here, here]) == {2}
    assert hosts([here], controllers=[there, there, there]) == {3}
