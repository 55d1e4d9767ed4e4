"""A run and the site put into a bucket and got back; what is damaged, planted or in the way is refused."""

import io

import pytest
from aws_stubs import Stubbed
from botocore.response import StreamingBody
from botocore.stub import ANY
from measuring import REGIONS, go
from scripted_lab import ScriptedLab

from wanbench import cli
from wanbench.errors import ParameterError, RawDataError
from wanbench.measure.labs.aws import s3
from wanbench.measure.labs.rented.client import CloudError

AT = "s3://my-bucket/runs/1"


class Bucket:
    """Objects in memory, asked like an account."""

    def __init__(self):
        self.objects = {}

    def home(self):
        return "us-east-1"

    def call(self, service, region, operation, *, Bucket, Key, Body=None, **more):
        assert (service, Bucket) == ("s3", "my-bucket")
        if operation == "put_object":
            assert more["ChecksumAlgorithm"] == "SHA256" and more["ContentType"]
            self.objects[Key] = Body if isinstance(Body, bytes) else Body.read()
            return {}
        if Key not in self.objects:
            raise CloudError("s3 get_object in us-east-1: NoSuchKey: there is none", "NoSuchKey")
        return {"Body": io.BytesIO(self.objects[Key])}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return go(tmp_path_factory.mktemp("run"), ScriptedLab(REGIONS))


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_comes_back_as_it_was(run, tmp_path):
    bucket = Bucket()
    assert s3.put_folder(run.folder, AT + "/", aws=bucket) == len(files_of(run.folder))
    assert list(bucket.objects)[-1] == "runs/1/SHA256SUMS"
    s3.get_folder(AT, tmp_path / "deep" / "back", aws=bucket)
    assert files_of(tmp_path / "deep" / "back") == files_of(run.folder)
    with pytest.raises(ParameterError, match="does not exist yet"):
        s3.get_folder(AT, tmp_path / "deep" / "back", aws=bucket)


def test_a_site_comes_back_and_what_is_damaged_does_not(tmp_path, monkeypatch):
    (tmp_path / "site" / "assets").mkdir(parents=True)
    (tmp_path / "site" / "index.html").write_text("<p>1</p>")
    (tmp_path / "site" / "assets" / "a.svg").write_text("<svg/>")
    (tmp_path / "site" / ".git").mkdir()
    (tmp_path / "site" / ".git" / "config").write_text("url = https://me:password@example.org/site.git")
    bucket = Bucket()
    assert s3.put_folder(tmp_path / "site", AT, aws=bucket) == 2, "hidden files and folders stay here"
    whole = dict(bucket.objects)
    bad = {"runs/1/index.html": b"<p>2</p>", "runs/1/SHA256SUMS": b"0" * 64 + b"  ../../x\n"}
    for key, content in bad.items():
        bucket.objects = whole | {key: content}
        with pytest.raises(RawDataError, match="SHA-256"):
            s3.get_folder(AT, tmp_path / "back", aws=bucket)
    bucket.objects = whole
    with monkeypatch.context() as patch, pytest.raises(RawDataError, match="at most 100 bytes"):
        patch.setattr(s3, "LARGEST_BYTES", 100)
        s3.get_folder(AT, tmp_path / "back", aws=bucket)
    bucket.objects = {}
    with pytest.raises(CloudError, match="NoSuchKey"):
        s3.get_folder(AT, tmp_path / "back", aws=bucket)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["site"]


@pytest.mark.parametrize("planted", ["AKIAPLANTEDPLANTED00", "-----BEGIN OPENSSH PRIVATE KEY-----"])
def test_a_key_and_what_is_no_run_and_no_site_stay_here(tmp_path, planted):
    with pytest.raises(ParameterError, match="a finished run, or of the site"):
        s3.put_folder(tmp_path, AT, aws=Bucket())
    (tmp_path / "index.html").write_text(planted)
    with pytest.raises(ParameterError, match=r"index\.html is .* contains a key") as refused:
        s3.put_folder(tmp_path, AT, aws=Bucket())
    assert planted not in str(refused.value)


@pytest.mark.parametrize("address", ["my-bucket/x", "s3://my-bucket", "s3://My/x", "s3://my-bucket/../x", 7])
def test_addresses_that_are_refused(tmp_path, address):
    with pytest.raises(ParameterError, match="s3://bucket/prefix"):
        s3.get_folder(address, tmp_path / "x", aws=Bucket())


def test_the_calls_are_those_of_s3_and_the_command_makes_them(tmp_path, monkeypatch, capsys):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "a")
    (tmp_path / "index.html").write_text("1")
    put = {"Bucket": "my-bucket", "ContentType": "text/html", "ChecksumAlgorithm": "SHA256"}
    sums = {"Key": "runs/1/SHA256SUMS", "ContentType": "application/octet-stream"}
    line = b"6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b  index.html\n"
    asked = [put | {"Key": "runs/1/index.html", "Body": ANY}, put | sums | {"Body": line}]
    got = [{"Body": StreamingBody(io.BytesIO(each), len(each))} for each in (line, b"1")]
    aws = Stubbed(s3=[("put_object", {}, each) for each in asked] + [("get_object", each) for each in got])
    monkeypatch.setattr(s3, "Aws", lambda: aws)
    assert cli.main(["bucket", "put", str(tmp_path), AT]) == 0
    assert cli.main(["bucket", "get", AT, str(tmp_path / "back")]) == 0
    assert (tmp_path / "back" / "index.html").read_text() == "1"
    assert cli.main(["bucket", "get", "nowhere", str(tmp_path / "x")]) == 2
    assert capsys.readouterr().out.startswith("1 files, checked by SHA-256: s3://my-bucket/runs/1")
