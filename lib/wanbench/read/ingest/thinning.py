"""
Replace raw files of ping by counts, to save space.

The counts of a file are a Parquet file: the columns of table echoes without sequence and time, and the number `n` of
equal echoes. So every count and every quantile of round-trip times stays exact, and counts of several files merge by
adding. What is lost is the order of echoes, and the time of each: `sequence` and `received_at_s` are null afterwards.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wanbench.errors import RawDataError
from wanbench.files import replace_file
from wanbench.runs import Run
from wanbench.runs.journal import now_utc
from wanbench.runs.raw import sha256
from wanbench.runs.read import THINNED

from . import ping

ENDING = ".counts.parquet"
ORDER = ("sequence", "received_at_s")


def logs(run: Run) -> list[dict]:
    """Return the outputs of experiment ping in a finished run, as its journal lists them; none if it is unfinished."""
    files = run.raw_files() if run.finished else []
    return [file for file in files if file["experiment"] == "ping" and file["path"].endswith(".txt")]


def thin(run: Run) -> None:
    """
    Replace the `logs` of a run by counts, where these are smaller.

    `thinned.json` in the run folder records when, and the hashes of the originals, before these are deleted; a thinning
    that was interrupted can be repeated. Raise RawDataError if a file differs from its SHA-256; a file that cannot be
    read as ping's output stays.
    """
    thinned, at_utc = dict(run.thinned), now_utc()
    for file in logs(run):
        path = run.folder / file["path"]
        if (found := sha256(path)) != file["sha256"]:
            raise RawDataError(path, None, f"SHA-256 {found}", f"SHA-256 {file['sha256']}, as the journal says")
        sink, target = pa.BufferOutputStream(), path.with_name(path.name.removesuffix(".txt") + ENDING)
        try:
            pq.write_table(_counts(ping.read(path)["echoes"]), sink, compression="zstd")
        except RawDataError:
            continue
        if sink.tell() < file["bytes"]:
            replace_file(target, sink.getvalue())
            counts = {"path": str(target.relative_to(run.folder)), "bytes": sink.tell(), "sha256": sha256(target)}
            about = {"at_utc": at_utc, "sha256": file["sha256"], "bytes": file["bytes"], "counts": counts}
            thinned[file["path"]] = about
    if thinned:
        replace_file(run.folder / THINNED, json.dumps(thinned, indent=1).encode())
    for path in thinned:
        (run.folder / path).unlink(missing_ok=True)


def _counts(echoes: pa.Table) -> pa.Table:
    names = [name for name in echoes.column_names if name not in ORDER]
    return echoes.group_by(names).aggregate([([], "count_all")]).rename_columns([*names, "n"])


def read(source) -> dict[str, pa.Table]:
    """Read counts into table echoes, sorted as they were counted, with null sequences and times."""
    try:
        counts = pq.read_table(source, partitioning=None)
        echoes = counts.drop_columns("n").take(np.repeat(np.arange(len(counts)), counts["n"].to_numpy()))
        for name in ORDER:
            echoes = echoes.append_column(name, pa.nulls(len(echoes), ping.SCHEMA.field(name).type))
        return {"echoes": echoes.select(ping.SCHEMA.names).cast(ping.SCHEMA)}
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise RawDataError(source, None, error, "counts of echoes in Parquet") from error
