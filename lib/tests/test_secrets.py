"""Secrets planted wherever one may stand: in no file of a run, page or batch, in no log and in no message."""

import io
import subprocess

import pytest
from example_site import ONE_SIZE, make_checkout
from scripted_lab import ScriptedLab

from wanbench import cli
from wanbench.measure.campaign.execute import measure
from wanbench.measure.experiments import Ping
from wanbench.measure.labs.ssh.programs import facts
from wanbench.measure.plan import make_plan
from wanbench.publish.jobs import Job
from wanbench.publish.site import Site, publish
from wanbench.runs.deposit import deposit

PLANTED = "zQ7planted"
VARIABLES = [
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET", "GOOGLE_API_KEY"),
    *("GITHUB_TOKEN", "KAFKA_PASSWORD", "SASL_JAAS_CONFIG", "KAFKA_OPTS", "SSH_PASSPHRASE", "PGPASSWORD", "SSHPASS"),
]
ADDRESSES = ("HTTPS_PROXY", "PIP_INDEX_URL", "DATABASE_URL")
REGIONS = ["aws:eu-west-1", "gcp:us-east1"]
CRASH = (
    "import os\npassword = os.environ['KAFKA_PASSWORD']\nwith open('/nowhere/' + str(len(password))) as file:\n    pass"
)
SHOWN = """\
from wanbench.publish.provenance import provenance
from wanbench.runs import Run

run = Run.open(folder)
run"""


@pytest.fixture
def environment(monkeypatch):
    for name in VARIABLES:
        monkeypatch.setenv(name, PLANTED)
    for name in ADDRESSES:
        monkeypatch.setenv(name, f"http://me:{PLANTED}@127.0.0.1:9/")


@pytest.mark.slow
def test_no_secret_of_the_environment_is_in_what_measuring_and_publishing_leave(environment, tmp_path, capfd):
    plan = make_plan(regions=REGIONS, experiments=[Ping(count=1)])
    run = measure(plan, ScriptedLab(REGIONS), data_folder=tmp_path, campaign="planted", parameters={"a": 1})
    deposit(run.folder, tmp_path / "deposit")
    page = [("text", "# Run"), ("parameters", f"folder = {str(run.folder)!r}  # of the run"), ("code", SHOWN)]
    page.append(("code", "provenance(run)"))
    crash = [("text", "# Crash"), ("parameters", "n = 1  # a number"), ("code", CRASH)]
    top = make_checkout(tmp_path / "checkout", {"00-run": page, "01-crash": crash})
    for command in (["init", "-q"], ["remote", "add", "origin", f"https://me:{PLANTED}@example.org/a.git"]):
        subprocess.run(["git", *command], cwd=top, check=True)
    said = io.StringIO()
    with ONE_SIZE:
        records = publish([Job(path) for path in sorted(top.glob("notebooks/*.ipynb"))], Site.of(top), said)
    assert [record.outcome for record in records] == ["published", "failed"]
    print(facts.machine())
    left = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and ".git" not in path.parts}
    assert {"manifest.json", "journal.jsonl", "00-run.html", "01-crash.ipynb"} <= {path.name for path in left}
    assert [str(path) for path, content in left.items() if PLANTED.encode() in content] == []
    assert not any(PLANTED in text for text in (said.getvalue(), *capfd.readouterr()))


HOST = "hosts:\n- {name: a, region: 'aws:eu-west-1', control_address: 192.0.2.1, "
AWAY = f"https://me:{PLANTED}@example.org/"


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("doctor --inventory FILE", f"{HOST}password: {PLANTED}}}\n"),
        ("doctor --inventory FILE", f"- {{name: a, password: {PLANTED}}}\n"),
        ("doctor --inventory FILE", f"hosts: {{password: '{PLANTED}, x'}}\n"),
        ("doctor --inventory FILE", HOST.replace("192.0.2.1", f"'{AWAY}'") + "user: ada}\n"),
        ("doctor --inventory FILE", HOST + f"proxy_command: [nc, '--password={PLANTED}%r']}}\n"),
        ("batch FILE", f"- {{notebook: '00', password: {PLANTED}}}\n"),
        ("campaign FILE", f"sasl.jaas.config: {PLANTED}\n"),
        ("campaign FILE", f"- secret: {PLANTED}\n"),
        ("claims check FILE", f"title: [{{token: {PLANTED}}}]\n"),
        (f"batch 00 --sweep seed=1..2 --to s3://me:{PLANTED}@bucket/x", ""),
        (f"batch 00 --sweep seed=1..2 --cluster https://me:{PLANTED}@example.org", ""),
        (f"bucket put FILE {AWAY}", ""),
        (f"run 00 -p seed={AWAY}", ""),
    ],
)
def test_what_is_refused_does_not_repeat_a_secret(environment, tmp_path, monkeypatch, capfd, command, file):
    monkeypatch.setenv("WANBENCH_DATA", str(tmp_path / "data"))
    path = tmp_path / "given.yml"
    path.write_text(file)
    path.chmod(0o600)
    try:
        status = cli.main([str(path) if word == "FILE" else word for word in command.split()])
    except SystemExit as ended:
        status = ended.code
    said = "".join(capfd.readouterr())
    assert status == 2 and said
    assert PLANTED not in said
