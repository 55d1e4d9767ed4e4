"""A campaign of two systems: the lab's own cluster, and one that already runs and asks for a password."""

import json

import pytest
from sasl_plain import SaslPlain

from wanbench.campaign import carry_out, start, systems, systems_by_steps
from wanbench.experiments import HostMetrics, KafkaLoad
from wanbench.ingest import tabulate
from wanbench.kafka import Cluster
from wanbench.labs import LocalLab, matrix_links
from wanbench.plan import make_trials

pytestmark = [pytest.mark.lab, pytest.mark.kafka]

MARK = "zQ7marked-pass-word"
THEIRS, OURS = "10.1.0.1:9092", "10.3.0.1:9092"
"""A plan sorts its regions: elsewhere, here, there."""
LINKS = matrix_links(dict.fromkeys([("here", "there"), ("here", "elsewhere")], 4), rate_bps=5e7)
SMALL = {"profile": "functional", "heap_mb": 256, "metrics": False, "start_timeout_s": 300}
USERS = SaslPlain({"boss": "boss-word", "ada": MARK}, ["boss", "ada"], encrypted=True)


class WithAnother(LocalLab):
    """A lab in which somebody else's cluster runs already; a lab of our own does not know it."""

    jvm = ()

    def __enter__(self):
        super().__enter__()
        try:
            self.other = Cluster(self, ["elsewhere"], security=USERS, jvm=self.jvm, **SMALL)
            self.other.__enter__()
        except BaseException:
            super().__exit__(None, None, None)
            raise
        for hosts in self.hosts.values():
            for host in hosts:
                host.cluster = None
        return self

    def __exit__(self, *exception):
        try:
            self.other.__exit__(*exception)
        finally:
            super().__exit__(*exception)


@pytest.fixture
def no_names(tmp_path):
    """The flag that has Java ask no name server: with SASL it looks for the name of every address that connects."""
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    return (f"-Djdk.net.hosts.file={hosts}",)


@pytest.fixture
def far(tmp_path, monkeypatch, no_names):
    """What a preset says of the cluster elsewhere; its lab is the one that `carry_out` opens."""
    monkeypatch.setattr(WithAnother, "jvm", no_names)
    monkeypatch.setitem(start.LABS, "local", WithAnother)
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path / "data"))
    for name, value in {"SERVERS": THEIRS, "USER_NAME": "ada", "PASSWORD": MARK}.items():
        monkeypatch.setenv(f"FAR_{name}", value)
    authority = tmp_path / "authority.pem"
    authority.write_bytes(USERS.tls.authority_pem)
    return {
        "bootstrap_from": "FAR_SERVERS",
        "mechanism": "PLAIN",
        "user_from": "FAR_USER_NAME",
        "password_from": "FAR_PASSWORD",
        "authority_file": str(authority),
    }


def load(no_names):
    quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *no_names)
    return KafkaLoad(
        partitions=1, target_records_per_s=200, duration_s=2, warmup_s=1, jvm=quick, start_timeout_s=300
    )


def test_the_labs_cluster_and_an_external_one_side_by_side(far, no_names, tmp_path, capfd):
    compared = systems(
        [
            {"name": "ours", "load": {"linger_ms": 0}},
            {"name": "theirs", "load": {"linger_ms": 10}, "cluster": "far"},
        ]
    )
    steps = {"target_records_per_s": [100]}
    trials = systems_by_steps(
        compared, load(no_names), steps, replicates=1, beside=(HostMetrics(interval_s=1),)
    )
    plan = make_trials(trials, from_region="here", to_region="there", more_regions=["elsewhere"])
    run = carry_out(
        plan,
        LINKS,
        lab="local",
        campaign="side-by-side",
        parameters={"external": {"far": far}},
        brokers=["there"],
        cluster=SMALL,
        external={"far": far},
        retries=0,
        progress=False,
    )
    assert run.finished and run.tests().outcome.tolist() == ["done"] * 2, run.tests().reason.tolist()
    run.verify()
    about = json.dumps(run.lab["external"])
    assert run.lab["external"]["far"]["brokers"] == [{"node_id": 1, "rack": "elsewhere"}]
    assert THEIRS not in about and "ada" not in about
    kept = {file["path"] for file in run.raw_files()}
    assert {
        "kafka_cluster/session-1.far.external.json",
        "kafka_cluster/session-1.broker-1.server.log.gz",
    } <= kept

    tables = tabulate(run.folder, tmp_path / "tables")
    assert tables["unread"].empty
    found = tables["trials"].merge(tables["producers"], on="test_id")
    assert set(zip(found.system, found.cluster.fillna(""), found.linger_ms, strict=True)) == {
        ("ours", "", 0),
        ("theirs", "far", 10),
    }
    assert set(found.setting) == {trial.setting for trial in trials} and (found.records > 0).all()
    for test in tables["trials"].itertuples():
        commands = json.dumps([file for file in run.raw_files() if test.test_id in file["path"]])
        assert (THEIRS in commands) == (test.system == "theirs")
        assert (OURS in commands) == (test.system == "ours")

    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 20 and not [path for path in files if MARK.encode() in path.read_bytes()]
    assert MARK not in "".join(capfd.readouterr())
