"""Copy a finished run folder, or the site, to an S3 bucket and back; every file is checked by its SHA-256."""

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

# The object that lists all others, in the format of sha256sum; written last, so a folder without it is incomplete.
SUMS = "SHA256SUMS"
LARGEST_BYTES = 2**30  # Maximum size of one file, because no reader of raw files accepts more.
_ADDRESS = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(?P<prefix>[\w./=-]+?)/?")
_LINE = re.compile(r"(?P<sha256>[0-9a-f]{64})  (?P<path>.+)")
_SECRET = re.compile(rb"PRIVATE KEY-----|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")


def put_folder(folder: str | Path, address: str, *, aws: Aws | None = None) -> int:
    """
    Copy a folder's files to an address such as "s3://bucket/runs/<run id>"; return the number of files.

    Hidden files and folders are left out. Objects with the same names are overwritten. The bucket's settings determine
    who may read them.

    Raises
    ------
    ParameterError
        If the address is malformed, if the folder is neither a finished run nor a site, or if it contains a key.
    RawDataError
        If a file of the run differs from its manifest.
    CloudError
        If S3 refuses.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise refusal("folder", str(folder), "a folder that exists")
    bucket, prefix = _parts(address)
    if (folder / "journal.jsonl").is_file():
        if not (run := Run.open(folder)).finished:
            raise ParameterError(f"{folder} is an unfinished run; allowed: finished runs.")
        run.verify()
    elif not (folder / "index.html").is_file():
        raise refusal("folder", str(folder), "the folder of a finished run, or of the site")
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    # Hidden files, and those in hidden folders such as `.git`, may contain passwords.
    names = [name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts)]
    for path in map(folder.joinpath, names):
        if path.is_symlink() or path.stat().st_size > LARGEST_BYTES or _SECRET.search(path.read_bytes()):
            raise ParameterError(f"{path} is a link, larger than {LARGEST_BYTES:,} bytes, or contains a key.")
    aws = aws or Aws()
    region = aws.home()

    def put(name: str, body: bytes) -> None:
        given = {"Bucket": bucket, "Key": f"{prefix}/{name}", "Body": body, "ChecksumAlgorithm": "SHA256"}
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        aws.call("s3", region, "put_object", ContentType=kind, **given)

    everywhere(lambda name: put(name, (folder / name).read_bytes()), names)
    put(SUMS, "".join(f"{sha256(folder / name)}  {name}\n" for name in names).encode())
    return len(names)


def get_folder(address: str, folder: str | Path, *, aws: Aws | None = None) -> int:
    """
    Copy to a new folder what `put_folder` put at an address; return the number of files. The folder appears only when
    all files have been checked.

    Raises
    ------
    ParameterError
        If the address is malformed, or the folder exists already.
    RawDataError
        If a file differs from the list of hashes or from the run's manifest, or the list has paths outside the folder.
    CloudError
        If S3 refuses.
    """
    folder, (bucket, prefix) = Path(folder), _parts(address)
    if folder.exists():
        raise refusal("folder", str(folder), "a folder that does not exist yet")
    aws = aws or Aws()
    region = aws.home()

    def get(name: str, target: Path) -> Path:
        from botocore.exceptions import BotoCoreError

        body = aws.call("s3", region, "get_object", Bucket=bucket, Key=f"{prefix}/{name}")["Body"]
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(body.read(LARGEST_BYTES))
            if body.read(1):  # at the end of the body, botocore raises an error if it is incomplete
                raise RawDataError(f"{address}/{name}", None, "more", f"at most {LARGEST_BYTES:,} bytes")
        except (BotoCoreError, OSError) as error:  # the answer is incomplete, or a folder has this name
            raise CloudError(f"s3 get_object in {region}: {error}") from None
        return target

    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".unfinished-") as unfinished:
        whole = Path(unfinished) / "whole"
        lines = get(SUMS, Path(unfinished) / SUMS).read_bytes().decode("utf-8", "replace").splitlines()
        listed = [_listed(address, number, line) for number, line in enumerate(lines or [""], 1)]

        def keep(entry: tuple[str, str]) -> None:
            digest, name = entry
            if (actual := sha256(get(name, whole / name))) != digest:
                raise RawDataError(f"{address}/{name}", None, f"SHA-256 {actual}", f"SHA-256 {digest}")

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
    if not match or path.is_absolute() or ".." in path.parts or "\0" in line:
        raise RawDataError(f"{address}/{SUMS}", number, line, "a SHA-256, two spaces and a path inside the folder")
    return match["sha256"], str(path)
