"""Every experiment is an `Experiment`: what plans, campaigns and readers ask of one is there."""

import dataclasses
import inspect
import json

import pytest
from scripted_lab import ScriptedLab

from wanbench.measure import experiments
from wanbench.measure.experiments import (
    BrokerAction,
    ConcurrentExperiment,
    Experiment,
    ExperimentError,
    KafkaLoad,
    KafkaTrial,
)
from wanbench.measure.experiments.base import cluster_of, links_of
from wanbench.measure.plan import make_plan
from wanbench.pages.congestion_control.design import CompetingFlows
from wanbench.pages.lab_calibration.design import Cut, Shorten
from wanbench.pages.rolling_and_degraded.design import Detection
from wanbench.pages.tail_latency.design import OpenMessaging

PAIR = ("aws:eu-west-1", "gcp:us-east1")
NO_EXPERIMENTS = (Experiment, ConcurrentExperiment, ExperimentError, BrokerAction)
NEEDED = {
    "BrokerActions": {"actions": (BrokerAction("demote", 1), BrokerAction("link", 1, 5, loss=0.1))},
    "KafkaFault": {"fault": "none"}, "Shorten": {"delay_ms": 5}, "KafkaTrial": {"load": KafkaLoad()},
    "KafkaOpenLoop": {"rate_records_per_s": 100},
    "OpenMessaging": {
        "distribution": "/opt/benchmark",
        "workload": {
            "topics": 1, "partitionsPerTopic": 3, "messageSize": 100, "subscriptionsPerTopic": 1,
            "producersPerTopic": 1, "consumerPerSubscription": 1, "producerRate": 50, "testDurationMinutes": 1,
            "payloadFile": "payload/a",
        },
    },
}  # fmt: skip
KINDS = [kind for name in experiments.__all__ if (kind := getattr(experiments, name)) not in NO_EXPERIMENTS]
KINDS += [Cut, Shorten, Detection, OpenMessaging]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def experiment(request):
    return request.param(**NEEDED.get(request.param.__name__, {}))


def test_every_experiment_satisfies_the_protocol(experiment):
    assert isinstance(experiment, Experiment)
    kind = type(experiment)
    for name in ("run", "expected_s", "expected_bytes"):
        wanted = list(inspect.signature(getattr(Experiment, name)).parameters.values())
        offered = list(inspect.signature(getattr(kind, name)).parameters.values())
        assert [p.name for p in offered][: len(wanted)] == [p.name for p in wanted]
        assert [p.default for p in offered][: len(wanted)] == [p.default for p in wanted]
        assert all(p.default is not p.empty for p in offered[len(wanted) :]), "a campaign gives no more"


def test_settings_are_frozen_and_come_back_from_a_manifest(experiment):
    with pytest.raises(dataclasses.FrozenInstanceError):
        experiment.name = "other"
    kept = json.loads(json.dumps(dataclasses.asdict(experiment)))
    assert sorted(kept) == sorted(field.name for field in dataclasses.fields(experiment))
    if not isinstance(experiment, KafkaTrial | CompetingFlows):  # whose parts are experiments
        assert type(experiment)(**kept) == experiment


def test_a_plan_can_hold_it(experiment):
    plan = make_plan(pairs=[PAIR], rtt_ms={PAIR: 50.0}, rate_bps=1e8, experiments=[experiment])
    assert plan.as_dict()["experiments"][0]["name"] == experiment.name
    assert plan.expected_s() > 0 and plan.expected_bytes() >= 0 and str(experiment) in str(plan)


def test_what_can_run_concurrently_says_so():
    concurrent = {kind.__name__ for kind in KINDS if issubclass_of_concurrent(kind)}
    assert concurrent == {
        "BrokerActions", "BrokerMetrics", "BrokerProcessors", "Detection", "HostMetrics", "LinkSamples",
        "ProcessorUse",
    }  # fmt: skip


def issubclass_of_concurrent(kind):
    return isinstance(kind(**NEEDED.get(kind.__name__, {})), ConcurrentExperiment)


def test_an_incomplete_experiment_is_none():
    class Incomplete:
        name = "incomplete"

        def run(self, source, target, folder, stem):
            return []

    assert not isinstance(Incomplete(), Experiment)


def test_what_a_lab_lacks_is_said():
    with ScriptedLab(["a", "b"]) as lab:
        with pytest.raises(ExperimentError, match="a has no emulated links"):
            links_of(lab.host("a"))
        with pytest.raises(ExperimentError, match="the lab of a, b has no Kafka cluster"):
            cluster_of(lab.host("a"), lab.host("b"))
        lab.host("b").cluster = "a cluster"
        assert cluster_of(lab.host("a"), lab.host("b")) == "a cluster"
