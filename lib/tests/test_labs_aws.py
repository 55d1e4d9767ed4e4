"""Hosts on AWS against moto's server: made with tags, measured on, taken down; a killed driver; planted secrets."""

import json
import os
import platform
import random
import re
import shutil
import signal
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aws_driver
import pytest
import yaml
from aws_driver import ACCOUNT, CODES, ENVIRONMENT, KEY_ID, REGIONS, SECRET, TOKEN, lab_on_aws, left_in, sweep_now
from patience import comes_about
from sshd_in_namespaces import unavailable as no_sshd

from wanbench.errors import LabError
from wanbench.measure.campaign import measure
from wanbench.measure.experiments import Ping
from wanbench.measure.labs.aws import clients, preflight, teardown
from wanbench.measure.labs.rented import hosts, leases
from wanbench.measure.labs.rented import resources as tags
from wanbench.measure.labs.rented.client import CloudError
from wanbench.measure.labs.rented.costs import BudgetError
from wanbench.measure.labs.rented.hosts import key_pair
from wanbench.measure.links.launch import search_path
from wanbench.measure.plan import make_plan
from wanbench.publish.provenance import provenance
from wanbench.read.ingest import tabulate

PING = Ping(count=2, interval_s=0.01)


@pytest.fixture(scope="module")
def drive():
    """A driver that is killed at a call; made before there is a server with its threads."""
    with aws_driver.driver_to_be_killed() as driven:
        yield driven


@pytest.fixture(scope="module")
def idle(drive, tmp_path_factory):
    """A stand-in for AWS, with planted credentials and a data folder; whether it answers nobody at the moment."""
    with pytest.MonkeyPatch.context() as patch, aws_driver.moto_server() as (address, is_idle):
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.setenv("AWS_ENDPOINT_URL", address)
        patch.setenv("WANBENCH_DATA", str(tmp_path_factory.mktemp("data")))
        aws_driver.in_a_hurry()
        yield is_idle


def plan_of(regions=REGIONS, **options):
    return make_plan(regions=regions, experiments=[PING], batch=1, **options)


def test_a_lab_on_aws_is_tagged_closed_to_others_and_gone_afterwards(idle):
    aws = clients.Aws()
    with lab_on_aws(hosts_per_region=2, zones={"aws:eu-west-1": "eu-west-1b"}, volume_gb=8) as opened:
        resources = teardown.AwsResources(aws)
        found = [each for code in CODES for each in resources.listed(code)]
        kinds = [each.kind for each in found]
        assert [kinds.count(kind) for kind in ("instance", "volume", "security group", "key pair")] == [4, 4, 2, 2]
        assert {each.tags[tags.CAMPAIGN] for each in found} == {"by-hand"}
        assert not any(tags.is_expired(each.tags, datetime.now(UTC)) for each in found)
        assert {tags.RUN, tags.OWNER, tags.EXPIRES} <= set.intersection(*(set(each.tags) for each in found))
        host = opened.host("aws:eu-west-1", 1)
        assert os.stat(host.login.key_file).st_mode & 0o777 == 0o600
        known = Path(host.login.known_hosts_file).read_text().splitlines()
        assert len(known) == 4 and all(" ssh-ed25519 " in line for line in known)
        assert {each["zone"] for each in opened.describe()["hosts"] if each["region"] == "aws:eu-west-1"} == {
            "eu-west-1b"
        }
        [group] = [each.id for each in found if each.kind == "security group" and each.region == "eu-west-1"]
        [rules] = aws.pages("ec2", "eu-west-1", "describe_security_groups", "SecurityGroups", GroupIds=[group])
        open_to = {each["CidrIp"] for rule in rules["IpPermissions"] for each in rule["IpRanges"]}
        assert open_to == {"192.0.2.7/32"} | {f"{each.address}/32" for name in REGIONS for each in opened.hosts[name]}
        assert f"dnat to {host.address}" in host.files["/scratch/own-address.nft"]
        [lease] = leases.lease_folder().glob("*.lease")
        assert leases.is_of(lease, ACCOUNT) and ACCOUNT not in lease.read_text()
        # Another sweep on this machine leaves a lab that is open.
        assert sweep_now(everything=True) == 0
        assert len([each for code in CODES for each in resources.listed(code)]) == len(found)
    assert left_in() == [] and not list(leases.lease_folder().iterdir())


def test_a_killed_driver_leaves_nothing_that_sweep_does_not_find_and_nothing_of_others_is_touched(idle, drive):
    with aws_driver.with_others() as others:
        # It makes some 50 calls: it finds out, launches, waits, and takes down.
        for killed_at in random.Random(14).sample(range(13, 45), 3):
            assert drive(killed_at) == -signal.SIGKILL
            assert comes_about(idle)
            assert left_in() != others or leases.free_leases()
            assert sweep_now() == 0
            assert left_in() == others and not list(leases.lease_folder().iterdir())
        assert sweep_now(everything=True) == 0 and left_in() == others


def test_sweep_asks_and_leaves_what_may_be_in_use_elsewhere(idle, capsys):
    aws = clients.Aws()
    [site], _ = preflight.survey(aws, [preflight.Wanted("eu-west-1", "t3.micro")])
    public_key = key_pair()[1]
    for hours in (1, -1):
        of_run = tags.Tags(f"elsewhere{hours + 1}", "theirs", "eve", datetime.now(UTC) + timedelta(hours=hours))
        aws_driver.lab.prepare_region(aws, site, of_run, public_key, "192.0.2.7/32")
    assert len(left_in()) == 4
    assert sweep_now(yes=False, ask=lambda question: "no") == 1
    assert len(left_in()) == 4
    with pytest.raises(LabError, match="There is no terminal"):
        sweep_now(yes=False, ask=lambda question: (_ for _ in ()).throw(EOFError()))
    assert sweep_now() == 0
    assert len(left_in()) == 2
    assert "expired" in (shown := capsys.readouterr().out) and "in use" in shown and "owner eve" in shown
    assert sweep_now(everything=True) == 0
    assert left_in() == []


def test_what_remains_and_what_cannot_be_listed_is_an_error(idle, monkeypatch):
    told = clients.Aws._ask

    def refused(self, service, region, operation, ask):
        if operation == "delete_key_pair" or (operation == "describe_volumes" and region == "us-east-1"):
            raise CloudError(f"{operation} in {region}: not now", "NotNow")
        return told(self, service, region, operation, ask)

    monkeypatch.setattr(teardown.AwsResources, "timeout_s", 0.2)
    with (
        pytest.raises(LabError, match=r"(?s)REMAINS.*key pair wanbench-\w+ in eu-west-1.*unknown in us-east-1"),
        lab_on_aws(),
    ):
        monkeypatch.setattr(clients.Aws, "_ask", refused)
    monkeypatch.undo()
    assert left_in()
    assert sweep_now() == 0 and left_in() == []


def test_no_secret_and_no_account_in_what_a_run_leaves(idle, tmp_path, capsys):
    run = measure(plan_of(), lab_on_aws(), data_folder=tmp_path, campaign="planted")
    cost = json.loads((run.folder / "lab_cost" / "session-1.json").read_text())
    assert cost["spent"]["items"][2]["amount"] == pytest.approx(2 * 2.0)
    assert run.lab["hosts"][0]["kernel"] == "6.1.0"
    # 2 GB from each of two hosts; two hosts for five minutes of ping were expected.
    assert str(provenance(run).runs[0]["lab"]) == "aws, 0.08 to 0.55 USD spent, 0.00 to 0.00 USD expected"
    assert set(tabulate(run.folder)["tests"].outcome) == {"done"}
    with pytest.raises(CloudError) as refused:
        clients.Aws().call(
            "ec2", "eu-west-1", "describe_images", ExecutableUsers=[f"{ACCOUNT}", KEY_ID], ImageIds=["bad"]
        )
    texts = {path: path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()}
    shown = capsys.readouterr()
    for text in (*texts.values(), shown.out, shown.err, str(refused.value), repr(lab_on_aws())):
        assert not [planted for planted in (ACCOUNT, KEY_ID, SECRET, TOKEN, "PRIVATE KEY") if planted in text]
    assert left_in() == []


def test_a_budget_refuses_or_stops_a_run_which_goes_on_with_a_larger_one(idle, tmp_path):
    placeholder = dict.fromkeys(REGIONS, "subnet-0123456789abcdef0")
    with pytest.raises(LabError, match=r"Nothing was launched.*'subnet-0123456789abcdef0' does not exist"):
        measure(plan_of(), lab_on_aws(subnets=placeholder), data_folder=tmp_path, campaign="a")
    options = {"price_overrides": {"egress between regions": 0.01}, "owner": "ada"}
    with pytest.raises(BudgetError, match="Nothing was started"):
        measure(plan_of(), lab_on_aws(budget_usd=0.001, **options), data_folder=tmp_path, campaign="b")
    assert left_in() == []
    # Each look at the hosts' counters finds 4 GB, which cost 0.04 USD: enough for no round.
    with pytest.raises(BudgetError, match="Stopped: about"):
        measure(plan_of(), lab_on_aws(budget_usd=0.03, **options), data_folder=tmp_path, campaign="c")
    assert left_in() == []
    with pytest.raises(BudgetError, match=r"already spent on this run, but the budget is 0\.03 USD. Nothing"):
        measure(plan_of(), lab_on_aws(budget_usd=0.03, **options), data_folder=tmp_path, campaign="c")
    run = measure(plan_of(), lab_on_aws(budget_usd=5, **options), data_folder=tmp_path, campaign="c")
    assert run.finished and (run.tests().outcome == "done").all()
    assert re.search("BudgetError", (run.folder / "journal.jsonl").read_text())


@pytest.mark.skipif(bool(reason := no_sshd()), reason=str(reason))
def test_the_keys_that_hosts_are_given_open_a_real_sshd_and_no_other(idle, tmp_path, monkeypatch):
    """An sshd of this machine stands for each host, with the host key of its user data and its key pair."""
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    regions, other = REGIONS, tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)

    def connect(name, region, address, login, *, host_key=None, sudo):
        folder = tmp_path / f"{region}-{bool(host_key)}"
        folder.mkdir(exist_ok=True)
        document, public_key = aws_driver.given_to(region.removeprefix("aws:"))
        key = folder / "host_key"
        key.touch(0o600)
        key.write_text(host_key or yaml.safe_load(document)["ssh_keys"]["ed25519_private"])
        (folder / "authorized").write_text(public_key)
        settings = [f"HostKey {key}", f"AuthorizedKeysFile {folder / 'authorized'}", "StrictModes no", "UsePAM no"]
        settings += ["PidFile none", "PermitRootLogin prohibit-password", ""]
        (folder / "sshd").write_text("\n".join(settings))
        proxy = [shutil.which("sshd", path=search_path()), "-i", "-f", str(folder / "sshd")]
        return aws_driver.HostHere(name, region, "127.0.0.1", replace(login, user="root", proxy_command=proxy))

    monkeypatch.setattr(hosts, "START_S", 5)
    lab = lab_on_aws(regions, connect=connect)
    run = measure(plan_of(regions), lab, data_folder=tmp_path, campaign="by-ssh")
    assert (run.tests().outcome == "done").all() and run.lab["hosts"][0]["kernel"] == platform.release()
    opened = lab_on_aws(regions[:1], connect=lambda *who, **how: connect(*who, host_key=other.read_text(), **how))
    monkeypatch.setattr(hosts, "START_S", 0)
    with pytest.raises(LabError, match=r"(?i)host key|identification"):
        opened.__enter__()
    assert left_in() == []
