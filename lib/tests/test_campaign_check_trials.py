"""What a lab or a cluster cannot do is refused before anything starts."""

import re
from dataclasses import replace

import pytest
from scripted_lab import ScriptedLab

from wanbench.errors import ParameterError
from wanbench.measure.campaign import start
from wanbench.measure.campaign.start import check_trials
from wanbench.measure.experiments import (
    BrokerAction,
    BrokerActions,
    BrokerMetrics,
    HostMetrics,
    KafkaFault,
    KafkaLoad,
    KafkaTrial,
    Ping,
)
from wanbench.measure.kafka.lab import KafkaLab
from wanbench.measure.labs import LocalLab, matrix_links
from wanbench.measure.links import LinkSettings
from wanbench.measure.plan import Trial, make_trials

REGIONS = ("a", "b", "c")
LINKS = matrix_links({("a", "b"): 70, ("a", "c"): 70, ("b", "c"): 70}, rate_bps=1e8)
LIMITS = {"net.core.rmem_max": 212_992, "net.core.wmem_max": 400_000}
TRIAL = KafkaTrial(KafkaLoad(replication=3, topic_settings={"min.insync.replicas": 2}), client_regions=REGIONS)


class Small(LocalLab):
    """On a kernel with the buffers of older ones."""

    def socket_buffer_limits(self):
        return LIMITS


def plan_of(trial):
    return make_trials([Trial("x", (trial,))], from_region="a", to_region="b", more_regions=["c"])


def of_load(**changes):
    return replace(TRIAL, load=replace(TRIAL.load, **changes))


def test_what_can_be_measured_is_not_refused():
    for trial in (
        TRIAL,
        TRIAL.load,
        replace(TRIAL, gateway_bps=1e8),
        of_load(topic_settings={"min.insync.replicas": 3}),
        replace(TRIAL, broker_settings={"socket.send.buffer.bytes": 400_000, "socket.receive.buffer.bytes": -1}),
    ):
        check_trials(plan_of(trial), Small(REGIONS, LINKS), REGIONS, {})


@pytest.mark.parametrize(
    "trial, message",
    [
        (replace(TRIAL, client_regions=("a", "d")), "trial x has clients in d; allowed: regions of the lab: a, b, c."),
        (replace(TRIAL, kafka_version="9.9"), "kafka_version '9.9'; `scripts/kafka-jars.sh VERSION` fetches one into"),
        (of_load(replication=4), "a replication of 4; allowed: at most 3, the number of brokers"),
        (TRIAL.load.__class__(replication=5), "a replication of 5; allowed: at most 3"),
        (of_load(topic_settings={"min.insync.replicas": 4}), "min.insync.replicas 4; allowed: 1 to 3, the replication"),
        (
            KafkaTrial(KafkaLoad(replication=1), broker_settings={"min.insync.replicas": 2}),
            "min.insync.replicas 2; allowed: 1 to 1",
        ),
        (
            replace(TRIAL, broker_settings={"replica.socket.receive.buffer.bytes": 875_000}),
            "replica.socket.receive.buffer.bytes of brokers is 875,000; allowed: at most 212,992 bytes, the limit "
            "net.core.rmem_max of this kernel and all its network namespaces; or -1",
        ),
        (
            of_load(producer_settings={"send.buffer.bytes": 400_001}),
            "of producers is 400,001; allowed: at most 400,000 bytes, the limit net.core.wmem_max",
        ),
        (of_load(consumer_settings={"receive.buffer.bytes": "much"}), "of consumers is 'much'; allowed: bytes, or -1"),
    ],
)
def test_what_cannot_is(trial, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        check_trials(plan_of(trial), Small(REGIONS, LINKS), REGIONS, {})


def test_a_gateway_needs_a_lab_that_has_them():
    lab = ScriptedLab(REGIONS)
    lab.hosts = dict.fromkeys(REGIONS)
    with pytest.raises(ParameterError, match=r"gateway_bps 1e[+]08; allowed: None, because links of a scripted lab"):
        check_trials(plan_of(replace(TRIAL, gateway_bps=1e8)), lab, REGIONS, {})


def test_a_path_is_one_of_the_lab_and_no_link_of_a_real_network_is_set():
    lab = ScriptedLab(REGIONS)
    lab.hosts, link = dict.fromkeys(REGIONS), LinkSettings(5.0)
    with pytest.raises(ParameterError, match="has path 'private'; allowed: None, because there is only one"):
        check_trials(plan_of(replace(TRIAL, path="private")), lab, REGIONS, {})
    with pytest.raises(ParameterError, match="has a link; allowed: None, because links of a scripted"):
        check_trials(plan_of(replace(TRIAL, link=link)), lab, REGIONS, {})
    lab.path_names = ("internet", "private")
    check_trials(plan_of(replace(TRIAL, path="private", link=link)), lab, REGIONS, {})
    lab.kind = "ssh"
    check_trials(plan_of(replace(FAR, path="private")), lab, (), {}, ["far"])
    with pytest.raises(ParameterError, match="has path 'private'; allowed: None, because brokers on hosts by SSH"):
        check_trials(plan_of(replace(TRIAL, path="private")), lab, REGIONS, {})


def test_actions_need_their_broker_and_links_that_can_be_changed():
    far = BrokerActions((BrokerAction("link", 3, delay_ms=50.0),))
    check_trials(plan_of(replace(TRIAL, alongside=(far,))), Small(REGIONS, LINKS), REGIONS, {})
    lab = ScriptedLab(REGIONS)
    lab.hosts = dict.fromkeys(REGIONS)
    with pytest.raises(ParameterError, match="links of a scripted lab cannot be changed"):
        check_trials(plan_of(replace(TRIAL, alongside=(far,))), lab, REGIONS, {})
    nobody = BrokerActions((BrokerAction("restart", 4),))
    with pytest.raises(ParameterError, match="restart broker 4 at 0 s”; allowed: brokers 1 to 3"):
        check_trials(plan_of(replace(TRIAL, alongside=(nobody,))), Small(REGIONS, LINKS), REGIONS, {})


def test_a_disk_is_limited_only_where_brokers_wait_for_it():
    worn = replace(TRIAL, alongside=(BrokerActions((BrokerAction("disk", 1, disk_bytes_per_s=1e6),)),))
    with pytest.raises(ParameterError, match="slows only writes that brokers wait for; set log"):
        check_trials(plan_of(worn), Small(REGIONS, LINKS), REGIONS, {})
    flushed = {"settings": {"log.flush.interval.messages": 1}}
    check_trials(plan_of(worn), Small(REGIONS, LINKS), REGIONS, flushed)


FAR = replace(TRIAL, cluster="far", load=KafkaLoad(replication=5))


def test_a_trial_on_an_external_cluster_may_do_what_its_clients_can():
    for trial in (FAR, replace(FAR, alongside=(HostMetrics(),), gateway_bps=1e8)):
        check_trials(plan_of(trial), Small(REGIONS, LINKS), REGIONS, {}, ["far", "near"])
    for trial in (FAR.load, replace(FAR, cluster=None), KafkaFault("cut", "a"), Ping()):
        check_trials(plan_of(trial), Small(REGIONS, LINKS), (), {}, ["far"])


@pytest.mark.parametrize(
    "trial, brokers, external, message",
    [
        (FAR, REGIONS, ["near"], "trial x is on the cluster 'far'; allowed: external clusters ('near') or None."),
        (FAR, (), (), "on the cluster 'far'; allowed: external clusters (none is given)."),
        (
            TRIAL,
            (),
            ["far", "near"],
            "trial x names no cluster, and the lab starts none; allowed: give brokers, or set cluster to one of the "
            "external clusters ('far', 'near').",
        ),
        (TRIAL.load, (), (), "names no cluster"),
        (
            replace(TRIAL, security="tls", broker_settings={"num.io.threads": 1}),
            (),
            ["far"],
            "trial x sets broker_settings, security on an external cluster; allowed: settings of clients only",
        ),
        (replace(FAR, alongside=(BrokerMetrics(),)), REGIONS, ["far"], "sets broker_metrics on an external cluster;"),
        (KafkaFault("freeze", "a"), (), ["far"], "sets the fault freeze on an external cluster;"),
        (replace(FAR, client_regions=("a", "d")), REGIONS, ["far"], "has clients in d; allowed: regions of the lab"),
        (
            replace(FAR, load=KafkaLoad(producer_settings={"send.buffer.bytes": 400_001})),
            REGIONS,
            ["far"],
            "of producers is 400,001",
        ),
    ],
)
def test_what_only_a_cluster_of_the_lab_can_do_is_refused(trial, brokers, external, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        check_trials(plan_of(trial), Small(REGIONS, LINKS), brokers, {}, external)


def test_a_trial_says_itself_that_an_external_cluster_is_not_restarted():
    with pytest.raises(ParameterError, match="external cluster 'far' has security; allowed: None"):
        replace(FAR, security="tls")


def test_carrying_out_a_plan_checks_its_trials_before_anything_starts(monkeypatch):
    monkeypatch.setattr(start, "measure", lambda *_, **__: pytest.fail("it was started"))
    with pytest.raises(ParameterError, match="a replication of 3; allowed: at most 2"):
        start.run(plan_of(TRIAL), LINKS, lab="local", campaign="c", brokers=["a", "b"])
    with pytest.raises(ParameterError, match=r"external cluster 'far': password_from names .* not set"):
        start.run(plan_of(FAR), LINKS, lab="local", campaign="c", external={"far": SECRETIVE})


SECRETIVE = {
    "bootstrap": "kafka.example.com:9092",
    "mechanism": "PLAIN",
    "user": "ada",
    "password_from": "NOBODY_SETS_THIS",
}


@pytest.mark.parametrize(
    "external, message",
    [
        ({"a/b": {}}, "external has a cluster 'a/b'; allowed: names of letters, digits"),
        ({"far": "kafka.example.com:9092"}, "external cluster 'far' is a str; allowed: a mapping of bootstrap"),
        ({"far": {"password": "zQ7marked"}}, "external cluster 'far' has password; allowed: bootstrap, bootstrap_from"),
        ({"far": {"name": "x", "lab": 1}}, "external cluster 'far' has name, lab; allowed: "),
        ({"far": {"bootstrap": "zQ7marked"}}, "external cluster 'far': bootstrap: address 1 is malformed"),
    ],
)  # fmt: skip
def test_what_no_external_cluster_can_be_is_refused_without_showing_it(external, message):
    with pytest.raises(ParameterError, match=re.escape(message)) as refused:
        KafkaLab(Small(REGIONS, LINKS), REGIONS, external=external)
    assert "zQ7marked" not in str(refused.value)
