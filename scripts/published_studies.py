"""
Make `data/published/<study>/` again from the original files: `.venv/bin/python scripts/published_studies.py`.

An original file is a file as its authors published it; `lib/wanbench/read/importers/original_files.csv` has the address
and the SHA-256 of each. A file that is not on this machine is downloaded.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pooch
import requests

from wanbench import tables
from wanbench.checks import check_choice
from wanbench.errors import RawDataError, WanbenchError
from wanbench.folders import data_folder, published_folder, root
from wanbench.read.importers import originals, read_skyplane, read_survey
from wanbench.read.ingest.content import file_sha256

STUDIES = {
    "intercloud-2022-02": (read_survey, ("intercloud-2022-02", "intercloud-locations")),
    "skyplane-latency-2022-04": (read_skyplane, ("skyplane-latency-2022-04",)),
    "skyplane-throughput-2022-01": (read_skyplane, ("skyplane-throughput-2022-01",)),
}
"""The importer of each study, and the names of its original files."""
DOWNLOADS_VARIABLE = "WANBENCH_DOWNLOADS"
TIMEOUT_S = 10
"""Maximum time to wait for a server that does not answer."""


class NotFetchedError(WanbenchError, OSError):
    """An original file is not on this machine and cannot be fetched."""


def original_file(name: str) -> Mapping:
    """Return the row of an original file; the ParameterError for an unknown name lists the known ones."""
    known = {row["name"]: row for row in originals.registry().values()}
    return known[check_choice("name of an original file", name, known)]


def shared_folder() -> Path:
    """Return `shared/data` next to the checkout: original files that several checkouts share. It may not exist."""
    return root().parent / "shared" / "data"


def available(name: str, folder=None) -> Path | None:
    """
    Return the path of an original file on this machine, or None if it is not here; check the file's hash.

    `folder` is searched first, then `shared_folder` and the folders below it. The default is the folder that the
    environment variable WANBENCH_DOWNLOADS names, or else `external` in the data folder. Raise ParameterError if there
    is no original file of this name, and RawDataError, which shows the expected and the actual hash, if the file in
    `folder` has a different hash.
    """
    original = original_file(name)
    kept = _folder(folder) / original["file"]
    if kept.exists():
        sha256 = file_sha256(kept)
        if sha256 != original["sha256"]:
            raise _wrong_hash(kept, original, sha256)
        return kept
    same_name = sorted(path for path in shared_folder().rglob(original["file"]) if path.is_file())
    same_size = (path for path in same_name if path.stat().st_size == original["bytes"])
    return next((path for path in same_size if file_sha256(path) == original["sha256"]), None)


def fetch(name: str, folder=None) -> Path:
    """
    Return the path of an original file; if `available` does not find the file, download it with one request.

    Raise NotFetchedError, which says what to download by hand and where to put it, if the address cannot be reached.
    Raise RawDataError if the file has a different hash; a wrong download is deleted.
    """
    path = available(name, folder)
    return _retrieve(original_file(name), _folder(folder)) if path is None else path


def _retrieve(original: Mapping, folder: Path) -> Path:
    pooch.get_logger().setLevel("ERROR")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = pooch.retrieve(
            original["address"],
            known_hash=f"sha256:{original['sha256']}",
            fname=original["file"],
            path=folder,
            downloader=pooch.HTTPDownloader(timeout=TIMEOUT_S),
        )
    except (requests.RequestException, OSError) as error:
        reason = type(error).__name__ if isinstance(error, requests.ConnectionError) else error
        raise NotFetchedError(
            f"{original['name']} was not fetched ({reason}). Download {original['address']} by hand and save it in "
            f"{folder} as {original['file']} ({original['bytes']:,} bytes, SHA-256 {original['sha256']})."
        ) from None
    except ValueError as error:  # pooch: the hash does not match, and the download was deleted
        hashes = [word for word in re.findall(r"[0-9a-f]{64}", str(error)) if word != original["sha256"]]
        raise _wrong_hash(original["address"], original, hashes[-1] if hashes else str(error)) from error
    return Path(path)


def _folder(folder) -> Path:
    chosen = os.environ.get(DOWNLOADS_VARIABLE)
    return Path(folder or (root() / chosen if chosen else data_folder() / "external"))


def _wrong_hash(where, original: Mapping, sha256: str) -> RawDataError:
    return RawDataError(where, None, f"SHA-256 {sha256}", f"{original['title']}, SHA-256 {original['sha256']}")


def import_originals(name: str, folder=None) -> dict[str, pd.DataFrame]:
    """
    Read the tables of a study from its original files, which are fetched if they are not on this machine.

    Paths are reduced to file names, so that the tables are the same on every machine. `folder` and errors are as for
    `fetch`.
    """
    read, names = STUDIES[check_choice("published study", name, STUDIES)]
    made = read(*(fetch(original, folder) for original in names))
    for table in made:
        for column in {"path", "source_file"} & set(made[table]):
            made[table][column] = made[table][column].map(lambda path: Path(path).name, na_action="ignore")
    return made


def write_tables(name: str) -> list[Path]:
    """Make the tables of a study from its original files, write those that are not empty, and return their paths."""
    made = import_originals(name)
    kept = {table: rows for table, rows in made.items() if len(rows) and table != "flags"}
    return [tables.write(table, rows, published_folder() / name) for table, rows in kept.items()]


if __name__ == "__main__":
    for study in STUDIES:
        print(*write_tables(study), sep="\n")
