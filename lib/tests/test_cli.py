"""The command line: what each command asks for, what it says, and how it ends."""

import os
import signal
import sys
import time
from types import SimpleNamespace

import nbformat
import pytest
from example_site import CELLS, make_checkout

from wanbench import __main__, cli, doctor
from wanbench.measure import kafka
from wanbench.measure.kafka.programs import process_limit
from wanbench.measure.labs.local import LocalLab
from wanbench.publish import notebooks
from wanbench.publish.site import Record


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with four notebooks and presets for two; `publish` only notes what it is asked."""
    notebooks = {"00-tour": CELLS[:1], "01-a": CELLS, "02-b": CELLS, "03-d": CELLS[:1], "10-c": CELLS[:1]}
    top = make_checkout(tmp_path / "top", notebooks)
    for name, text in {"01-a/quick": "n_points: 5", "02-b/quick": "lab: local", "02-b/far": "lab: aws"}.items():
        path = top / f"papermill-params/{name}.yml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(top / "notebooks")
    monkeypatch.setattr(LocalLab, "unavailable", classmethod(lambda _: None))
    return top


@pytest.fixture
def asked(monkeypatch):
    """The jobs that were asked for; a page named 01-a fails if `asked.failing` is set."""

    class Asked(list):
        failing = again = False

    jobs = Asked()

    def publish(wanted, site, *, again):
        jobs.extend(wanted)
        jobs.again = again
        return [
            Record(job.notebook.stem, "failed" if jobs.failing and job.notebook.stem == "01-a" else "published")
            for job in wanted
        ]

    monkeypatch.setattr("wanbench.publish.site.publish", publish)
    return jobs


def names(jobs):
    return [job.notebook.stem for job in jobs]


def test_report_runs_what_is_reported_usually_with_quick(checkout, asked, capsys):
    assert cli.main(["report"]) == 0
    assert names(asked) == ["00-tour", "01-a", "02-b", "03-d", "10-c"]
    assert [job.given for job in asked] == [{}, {"n_points": 5}, {"lab": "local"}, {}, {}]
    assert [job.source for job in asked] == [
        "",
        "papermill-params/01-a/quick.yml",
        "papermill-params/02-b/quick.yml",
        "",
        "",
    ]
    assert [job.replay_reason for job in asked] == [None] * 5
    assert f"5 of 5 pages published. Open {checkout}/site/index.html" in capsys.readouterr().out


def test_report_takes_notebooks_and_a_preset(checkout, asked):
    assert cli.main(["report", "--preset", "far", "02"]) == 0
    assert names(asked) == ["02-b"] and asked[0].given == {"lab": "aws"} and asked[0].replay_reason is None


def test_report_refuses_a_preset_that_a_notebook_lacks(checkout, asked, capsys):
    assert cli.main(["report", "--preset", "quik"]) == 2
    assert asked == []
    assert "wanbench: 01-a has no preset 'quik' (did you mean 'quick'?)" in capsys.readouterr().err


def test_report_tells_of_a_failed_page_by_its_status(checkout, asked, capsys):
    asked.failing = True
    assert cli.main(["report"]) == 1
    assert "4 of 5 pages published" in capsys.readouterr().out


def test_samples_are_replayed_where_no_lab_can_run(checkout, asked, monkeypatch):
    monkeypatch.setattr(LocalLab, "unavailable", classmethod(lambda _: "no user namespaces."))
    assert cli.main(["report"]) == 0
    assert [job.given.get("lab") for job in asked] == [None, "samples", "samples", None, None]
    assert [job.replay_reason for job in asked] == [
        None,
        *["This machine cannot measure this page: no user namespaces."] * 2,
        None,
        None,
    ]
    assert asked[1].given["n_points"] == 5


def test_a_lab_elsewhere_is_not_replayed(checkout, asked, monkeypatch):
    monkeypatch.setattr(LocalLab, "unavailable", classmethod(lambda _: "no user namespaces."))
    assert cli.main(["report", "--preset", "far", "02"]) == 0
    assert asked[0].given == {"lab": "aws"} and asked[0].replay_reason is None


def test_all_clouds_that_cannot_be_used_are_named_before_anything_runs(checkout, asked, monkeypatch, capsys):
    monkeypatch.setattr("wanbench.measure.labs.aws.unusable", lambda: "boto3 finds no credentials")
    monkeypatch.setattr("wanbench.measure.labs.azure.unusable", lambda: "AZURE_SUBSCRIPTION_ID is not set")
    monkeypatch.setattr("wanbench.measure.labs.gcp.unusable", lambda: None)
    assert cli.main(["run", "02", "-p", "lab=aws+azure+gcp"]) == 0
    said = capsys.readouterr().err
    assert "aws: boto3 finds no credentials. " in said and "azure: AZURE_SUBSCRIPTION_ID is not set. " in said
    assert "gcp" not in said and len(asked) == 1


def test_samples_can_be_asked_for(checkout, asked):
    assert cli.main(["report", "--replay", "01"]) == 0
    assert asked[0].given["lab"] == "samples" and asked[0].replay_reason.endswith("run 'wanbench report 01'.")
    assert cli.main(["run", "01", "-p", "lab=samples"]) == 0
    assert asked[1].replay_reason == "The parameter lab asks for it."
    assert cli.main(["report", "--replay", "--preset", "far", "02"]) == 0
    assert asked[2].given["lab"] == "samples", "hosts elsewhere are not measured on"


@pytest.mark.parametrize(("option", "value"), [("--fresh", "fresh"), ("--retry-failed", "retry-failed")])
def test_measuring_again_is_passed_to_the_kernels_and_makes_the_page_anew(checkout, asked, monkeypatch, option, value):
    from wanbench.measure.campaign.start import AGAIN_VARIABLE

    monkeypatch.setenv(AGAIN_VARIABLE, "")
    for command in (["run", "01"], ["report", "01"]):
        assert cli.main([*command, option]) == 0
        assert os.environ[AGAIN_VARIABLE] == value and asked.again
    with pytest.raises(SystemExit):
        cli.main(["report", "01", option, "--replay"])


def test_a_study_with_a_recording_is_replayed_among_others_and_measured_by_name(tmp_path, asked, monkeypatch):
    top = make_checkout(tmp_path / "top", {"01-a": CELLS, "02-b": CELLS})
    path = top / "notebooks/02-b.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].metadata["tags"] = [notebooks.RECORDED]
    nbformat.write(notebook, path)
    monkeypatch.chdir(top)
    monkeypatch.setattr(LocalLab, "unavailable", classmethod(lambda _: None))
    for command, lab in (["report"], "samples"), (["report", "02"], None), (["report", "--measure"], None):
        asked.clear()
        assert cli.main(command) == 0
        assert asked[-1].given.get("lab") == lab
        assert asked[-1].replay_reason == (
            lab and "To measure afresh, which takes some minutes longer, run 'wanbench report 02'."
        )
    assert asked[0].replay_reason is None


def test_run_takes_a_file_and_parameters_which_win(checkout, asked):
    preset = checkout / "papermill-params/01-a/quick.yml"
    assert cli.main(["run", "01-a", "-f", str(preset), "-p", "n_points=7", "-p", "clouds=[aws]"]) == 0
    assert asked[0].given == {"n_points": 7, "clouds": ["aws"]} and asked[0].source == str(preset)


def test_a_page_with_parameters_of_its_own_says_so(checkout, asked):
    preset = checkout / "papermill-params/01-a/quick.yml"
    assert cli.main(["run", "01-a", "-f", str(preset)]) == 0
    assert asked[-1].remark is None
    assert cli.main(["run", "01-a", "-f", str(preset), "-p", "n_points=7"]) == 0
    assert asked[-1].remark == "This page was made with non-default parameters: n_points = 7."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "11"], "no notebook matches '11'"),
        (["run", "01", "-p", "n_points"], "write name=value"),
        (["run", "01", "-p", "n_points=1", "-p", "n_points=2"], "given twice"),
        (["run", "01", "-f", "none.yml"], "none.yml: the parameters cannot be read"),
        (["report", "nosuch"], "no notebook matches 'nosuch'"),
    ],
)
def test_errors_are_one_message_and_status_2(checkout, asked, capsys, arguments, message):
    assert cli.main(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("wanbench: ") and message in err and "Traceback" not in err
    assert asked == []


def test_unknown_parameter_is_refused_before_anything_runs(checkout, capsys):
    assert cli.main(["run", "01", "-p", "n_pionts=3"]) == 2
    assert "01-a.ipynb: unknown parameter 'n_pionts' (did you mean 'n_points'?)" in capsys.readouterr().err
    assert not (checkout / "site").exists() and not (checkout / "build").exists()


def test_outside_a_checkout_the_installed_one_is_used(tmp_path, monkeypatch, asked):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("wanbench.folders.ROOT_MARK", "no-such-folder")
    assert cli.main(["report"]) == 2


def test_a_site_folder_that_cannot_be_written_is_one_message(checkout, capsys):
    (checkout / "site").write_text("a file in the place of the folder")
    assert cli.main(["run", "03", "--publish"]) == 2
    err = capsys.readouterr().err
    assert f"\nwanbench: [Errno 20] Not a directory: '{checkout}/site/" in err and "Traceback" not in err


def test_interrupt_ends_with_130(checkout, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("wanbench.publish.site.publish", interrupted)
    assert cli.main(["report"]) == 130
    assert "The measurements are kept" in capsys.readouterr().err


def test_interrupt_while_the_command_loads_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(cli, "main", lambda: os.kill(os.getpid(), signal.SIGINT) or time.sleep(60))
    before = signal.getsignal(signal.SIGINT)
    try:
        assert __main__.main() == 130
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL, "a traceback could follow while Python ends"
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "wanbench: interrupted before it had started.\n"


def test_without_a_command_the_help_is_shown(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "rfc3987_syntax", raising=False)
    assert cli.main([]) == 2
    assert sys.modules["rfc3987_syntax"] is None, "jsonschema would build its unused grammar for seconds"
    assert "report" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["nosuch"], ["run"], ["report", "--nosuch"]])
def test_wrong_usage_ends_with_2(arguments):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2


def test_doctor_is_well_when_all_is_there(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "find_program", lambda names: f"/bin/{names.split()[0]}")
    monkeypatch.setattr("wanbench.publish.pictures.browser", lambda: "/bin/chromium")
    monkeypatch.setattr(LocalLab, "unavailable", classmethod(lambda _: None))
    monkeypatch.setattr(kafka, "unavailable", lambda: None)
    monkeypatch.setattr(process_limit, "group_for", lambda pid, limit: SimpleNamespace(way="cgroup v2", remove=str))
    monkeypatch.setattr(process_limit, "disk_limit", lambda *_: process_limit.Limit({}, {}, {"device": "254:0"}))
    assert cli.main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "ok       disk limit for slow disks of brokers (optional): " in out and "by cgroup v2" in out
    assert "MISSING" not in out and "iperf3" in out and "/bin/iperf3" in out
    assert "its links are emulated in user space" in out


def test_doctor_says_what_is_missing_and_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "find_program", lambda names: None if "iperf3" in names else "/bin/x")
    monkeypatch.setattr("wanbench.publish.pictures.browser", lambda: None)
    monkeypatch.setattr(LocalLab, "unavailable", classmethod(lambda _: "the kernel has no /dev/net/tun"))
    monkeypatch.setattr(kafka, "unavailable", lambda: "Java on this machine is 8")
    monkeypatch.setattr(process_limit, "group_for", lambda pid, limit: None)
    limit = process_limit.Limit({"cgroup v2": "io"}, {}, {"device": "254:0"})
    monkeypatch.setattr(process_limit, "disk_limit", lambda *_: limit)
    assert cli.main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert out.count("MISSING") == 4
    for remedy in (
        "Debian, Ubuntu:  apt-get install iperf3",
        "Fedora:          dnf install iperf3",
        "macOS:           brew install iperf3",
        "apt-get install chromium fonts-dejavu-core",
        "the kernel has no /dev/net/tun",
        "Java on this machine is 8",
        "not here disk limit",
        "the kernel does not allow it by cgroup v2 (io) here; run as root",
    ):
        assert remedy in out


def test_doctor_finds_programs_outside_the_path(tmp_path, monkeypatch):
    (tmp_path / "ip").touch(mode=0o755)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(doctor, "SYSTEM_FOLDERS", (str(tmp_path),))
    assert doctor.find_program("nosuch ip") == str(tmp_path / "ip")
    assert doctor.find_program("nosuch") is None


def test_a_notebook_with_brokers_is_replayed_where_kafka_cannot_run(tmp_path, monkeypatch):
    from wanbench.measure import kafka
    from wanbench.publish.jobs import Job, measured_or_replayed

    cells = [("parameters", 'lab = "local"  # where\nbrokers = 3  # of a cluster')]
    monkeypatch.setattr(kafka, "unavailable", lambda: "no Java.")
    top = make_checkout(tmp_path / "top", {"00-kafka": cells, "01-plain": CELLS})
    kafka_job, plain_job = (Job(top / "notebooks" / f"{name}.ipynb", {}) for name in ("00-kafka", "01-plain"))
    assert measured_or_replayed(kafka_job, False, doctor.why_not_here).replay_reason.endswith("page: no Java.")
    assert measured_or_replayed(plain_job, False, doctor.why_not_here).replay_reason is None
