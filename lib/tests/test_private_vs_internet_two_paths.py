"""Page 05 on hosts by SSH and a cluster that runs already, which two paths of different delay lead to."""

import pytest
import sshd_in_namespaces
import yaml
from sshd_in_namespaces import SshdLab

from wanbench.findings import read_all
from wanbench.folders import root
from wanbench.measure.kafka import Cluster
from wanbench.measure.kafka.placement import BROKER_PORT, CLIENT_PORT, CONTROLLER_PORT
from wanbench.measure.kafka.security import Security
from wanbench.measure.labs import matrix_links
from wanbench.publish.jobs import Job, located
from wanbench.publish.notebooks import find_notebook
from wanbench.publish.site import Site, publish
from wanbench.read.ingest import tabulate
from wanbench.runs import find

pytestmark = [pytest.mark.lab, pytest.mark.kafka, pytest.mark.browser, pytest.mark.slow]

SENDS, SERVES, BETWEEN = "azure:westus2", "aws:us-east-1", "gcp:us-central1"
PUBLIC, PUBLIC_PORT = "10.3.0.9", 9099
"""An address of the host in `SERVES` that packets reach through the region `BETWEEN`."""

LINKS = matrix_links({(SENDS, SERVES): 10, (SENDS, BETWEEN): 39, (BETWEEN, SERVES): 1}, rate_bps=50e6)


class TwoListeners(Security):
    """A broker with a listener on each path, as MSK has private and public ones."""

    protocols = Security.protocols | {"PUBLIC": "PLAINTEXT"}

    def broker_settings(self, host):
        ports = {"CLIENT": CLIENT_PORT, "BROKER": BROKER_PORT, "CONTROLLER": CONTROLLER_PORT}
        own = [f"{name}://{host.address}:{port}" for name, port in ports.items()]
        return {"listeners": ",".join([*own, f"PUBLIC://{PUBLIC}:{PUBLIC_PORT}"])}


def lead_through(sshd, between, to, address):
    """Give the host in the region `to` an address whose packets take the way through the region `between`."""
    number = sshd.regions.index(to)
    pid = (sshd.folder / f"{number}.pid").read_text().strip()
    first, last = sshd.lab.host(between), sshd.lab.host(to)
    for host, command in (
        (first, f"ip link add way type veth peer name way netns {pid}"),
        (first, f"ip link set way up; ip route add {address} dev way; echo 1 > /proc/sys/net/ipv4/ip_forward"),
        (last, f"ip address add {address}/32 dev lo; ip link set way up; ip rule add from {address} lookup 7"),
        (last, f"ip route add 10.0.0.0/8 via {first.address} dev way onlink table 7"),
    ):
        host.run(["sh", "-ec", command], timeout_s=30)


@pytest.fixture
def sshd(tmp_path):
    if reason := sshd_in_namespaces.unavailable():
        pytest.skip(reason)
    with SshdLab(tmp_path, LINKS) as opened:
        lead_through(opened, BETWEEN, SERVES, PUBLIC)
        inventory = yaml.safe_load(opened.inventory.read_text())
        for host in inventory["hosts"]:
            host["paths"] = dict.fromkeys(("private", "internet"), host.pop("address"))
            host["paths"] |= {"internet": PUBLIC} if host["region"] == SERVES else {}
        opened.inventory.write_text(yaml.safe_dump(inventory))
        yield opened


def test_a_cluster_that_runs_already_is_compared_over_two_paths(sshd, tmp_path, monkeypatch):
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("wanbench.publish.pictures.SIZES_PX", {})
    options = {"security": TwoListeners(), "profile": "functional", "heap_mb": 256, "start_timeout_s": 300}
    with Cluster(sshd.lab, [SERVES], **options) as cluster:
        given = {
            "lab": "ssh",
            "lab_options": {"inventory": str(sshd.inventory)},
            "network_is_real": True,
            "regions": [SENDS, SERVES],
            "campaign": "two-paths",
            "external": {
                "private": {"bootstrap": cluster.bootstrap, "protocol": "PLAINTEXT"},
                "internet": {"bootstrap": f"{PUBLIC}:{PUBLIC_PORT}", "protocol": "PLAINTEXT"},
            },
            "full_rate_bps": 10_000_000,
            "full_batch_bytes": 4096,
            "scales": [[1, 1]],
            "brokers": 1,
            "producers": 1,
            "duration_s": 4,
            "warmup_s": 1,
            "replicates": 0,
        }
        notebook = find_notebook("05", root())
        made = Site(root(), tmp_path / "site", tmp_path / "build", tmp_path / "data/findings")
        [record] = publish([Job(notebook, located(notebook, given, ""))], made)
        assert record.outcome == "published", record.reason
        assert cluster.ask(sshd.lab.host(SERVES), "topics") == [], "what the trials made is deleted"
    [run] = find(tmp_path / "data", "two-paths")
    tables = tabulate(run.folder)
    assert tables["tests"].groupby("test_id").outcome.last().eq("done").all() and tables["unread"].empty
    trials = tables["trials"].merge(tables["echoes"], on=["run_id", "test_id"])
    assert set(zip(trials.setting, trials.cluster, strict=True)) == {("cold start", "internet")} | {
        (path, path) for path in ("private", "internet")
    }
    fastest = trials.groupby("cluster").rtt_ms.min()
    assert 10 <= fastest["private"] < 39 < fastest["internet"], "pings take the path of the trial"
    findings = {finding.name for finding in read_all(tmp_path / "data/findings" / notebook.stem)}
    assert "private-over-internet" in findings
