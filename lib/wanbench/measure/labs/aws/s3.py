"""A finished run folder, or the site, put into a bucket of S3 and got back, every file checked by its SHA-256."""

from __future__ import annotations

import mimetypes
import re
import tempfile
from pathlib import Path, PurePosixPath

from wanbench.checks import refusal
from wanbench.errors import ParameterError, RawDataError
from wanbench.measure.labs.rented.client import CloudError
from wanbench.measure.labs.rented.resources import everywhere
from wanbench.runs import Run
from wanbench.runs.raw import sha256

from .clients import Aws

# The object that lists all others, as sha256sum prints it; put last, so that a folder without it is not whole.
SUMS = "SHA256SUMS"
LARGEST_BYTES = 2**30  # Maximum size of one file: no reader of raw files takes more.
_ADDRESS = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(?P<prefix>[\w./=-]+?)/?")
_LINE = re.compile(r"(?P<sha256>[0-9a-f]{64})  (?P<path>.+)")
_SECRET = re.compile(rb"PRIVATE KEY-----|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")


def put_folder(folder, address: str, *, aws: Aws | None = None) -> int:
    """
    Put a folder's files under an address such as "s3://bucket/runs/<run id>"; returns how many.

    Hidden files and folders are left out. Objects of the same names are written over. The bucket's settings say who may
    read them.
    Raises ParameterError if the address is none, or the folder is neither a finished run nor a site, or holds a key;
    RawDataError if a file of the run is not what its manifest says; CloudError if S3 refuses.
    """
    folder, (bucket, prefix) = Path(folder), _parts(address)
    if (folder / "journal.jsonl").is_file():
        if not (run := Run.open(folder)).finished:
            raise ParameterError(f"{folder} is a run that is not finished; only finished ones are put.")
        run.verify()
    elif not (folder / "index.html").is_file():
        raise refusal("folder", str(folder), "the folder of a finished run, or of the site")
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    # Hidden files, and those of hidden folders such as `.git`, may hold passwords.
    names = [name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts)]
    for path in map(folder.joinpath, names):
        if path.is_symlink() or path.stat().st_size > LARGEST_BYTES or _SECRET.search(path.read_bytes()):
            raise ParameterError(f"{path} is a link, larger than {LARGEST_BYTES:,} bytes, or holds a key.")
    aws = aws or Aws()
    region = aws.home()

    def put(name, body):
        given = {"Bucket": bucket, "Key": f"{prefix}/{name}", "Body": body, "ChecksumAlgorithm": "SHA256"}
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        aws.call("s3", region, "put_object", ContentType=kind, **given)

    everywhere(lambda name: put(name, (folder / name).read_bytes()), names)
    put(SUMS, "".join(f"{sha256(folder / name)}  {name}\n" for name in names).encode())
    return len(names)


def get_folder(address: str, folder, *, aws: Aws | None = None) -> int:
    """
    Get what `put_folder` put there into a new folder, which appears once all of it is checked; returns how many files.

    Raises ParameterError if the address is none, or the folder is there already; RawDataError if a file is not what the
    list of hashes says (or, of a run, its manifest), or the list leads elsewhere; CloudError if S3 refuses.
    """
    folder, (bucket, prefix) = Path(folder), _parts(address)
    if folder.exists():
        raise refusal("folder", str(folder), "a folder that is not there yet")
    aws = aws or Aws()
    region = aws.home()

    def get(name, target):
        from botocore.exceptions import BotoCoreError

        body = aws.call("s3", region, "get_object", Bucket=bucket, Key=f"{prefix}/{name}")["Body"]
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(body.read(LARGEST_BYTES))
            if body.read(1):  # at the end botocore raises an error if the answer was cut short
                raise RawDataError(f"{address}/{name}", None, "more", f"at most {LARGEST_BYTES:,} bytes")
        except (BotoCoreError, OSError) as error:  # the answer ended early, or a folder has the name
            raise CloudError(f"s3 get_object in {region}: {error}") from None
        return target

    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".unfinished-") as unfinished:
        whole = Path(unfinished) / "whole"
        lines = get(SUMS, Path(unfinished) / SUMS).read_bytes().decode("utf-8", "replace").splitlines()
        listed = [_listed(address, number, line) for number, line in enumerate(lines or [""], 1)]

        def keep(entry):
            digest, name = entry
            if (found := sha256(get(name, whole / name))) != digest:
                raise RawDataError(f"{address}/{name}", None, f"SHA-256 {found}", f"SHA-256 {digest}")

        everywhere(keep, listed)
        if (whole / "journal.jsonl").is_file():
            Run.open(whole).verify()
        whole.rename(folder)
    return len(listed)


def _parts(address: str) -> tuple[str, str]:
    match = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if match is None or ".." in match["prefix"]:
        raise refusal("address", address, "s3://bucket/prefix, of letters, digits and ./_=-")
    return match["bucket"], match["prefix"]


def _listed(address: str, number: int, line: str) -> tuple[str, str]:
    match = _LINE.fullmatch(line)
    path = PurePosixPath(match["path"] if match else "/")
    if path.is_absolute() or ".." in path.parts or "\0" in line:
        raise RawDataError(f"{address}/{SUMS}", number, line, "a SHA-256, two spaces and a path inside the folder")
    return match["sha256"], str(path)
