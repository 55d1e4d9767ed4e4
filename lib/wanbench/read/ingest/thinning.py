"""
Replace raw files of ping by counts, to save space.

The counts of a file are a Parquet file: the columns of table echoes without sequence and time, and the number `n` of
equal echoes. So every count and every quantile of round-trip times stays exact, and counts of several files merge by
adding. What is lost is the order of echoes, and the time of each: `sequence` and `received_at_s` are null afterwards.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wanbench.errors import ParameterError, RawDataError
from wanbench.files import replace_file
from wanbench.runs import Run
from wanbench.runs.journal import now_utc
from wanbench.runs.raw import sha256
from wanbench.runs.read import THINNED

from . import ping

ENDING = ".counts.parquet"
ORDER = ("sequence", "received_at_s")
MOST = 100_000_000
"""Most echoes of a file, more than of a week with a hundred a second: a damaged count must not fill the memory."""


def thin(folder: str | Path | Run, *, dry: bool = False) -> tuple[int, int, int]:
    """
    Replace each text output of experiment ping in a finished run by its counts (see the module), if these are smaller.

    Return the number of files replaced, their bytes before, and the bytes of their counts. With `dry`, return the same
    and change nothing. A file that cannot be read as ping's output stays. Before outputs are deleted, `thinned.json` in
    the run folder records their hashes and the time, so that an interrupted call can be repeated.

    Raise ParameterError if the run is unfinished, and RawDataError if a file differs from its SHA-256.
    """
    run, at_utc = Run.open(folder), now_utc()
    if not run.finished:
        raise ParameterError(f"{run.folder} is an unfinished run; allowed: finished runs.")
    new = {}
    for file in run.raw_files():
        path = run.folder / file["path"]
        if file["experiment"] != "ping" or not path.name.endswith(".txt"):
            continue
        if (found := sha256(path)) != file["sha256"]:
            raise RawDataError(path, None, f"SHA-256 {found}", f"SHA-256 {file['sha256']}, as the journal says")
        target = path.with_name(path.name.removesuffix(".txt") + ENDING)
        try:
            counts = _counts(ping.read(path)["echoes"])
        except RawDataError:
            continue
        sink = pa.BufferOutputStream()
        pq.write_table(counts, sink, compression="zstd")
        if (size := sink.tell()) < file["bytes"]:
            about = {"at_utc": at_utc, "sha256": file["sha256"], "bytes": file["bytes"]}
            new[file["path"]] = about | {"counts": {"path": str(target.relative_to(run.folder)), "bytes": size}}
            if not dry:
                replace_file(target, sink.getvalue())
                new[file["path"]]["counts"]["sha256"] = sha256(target)
    if not dry and run.thinned | new:
        replace_file(run.folder / THINNED, json.dumps(run.thinned | new, indent=1).encode())
        for path in run.thinned | new:
            (run.folder / path).unlink(missing_ok=True)
    sizes = [(about["bytes"], about["counts"]["bytes"]) for about in new.values()]
    return len(sizes), sum(before for before, _ in sizes), sum(after for _, after in sizes)


def _counts(echoes: pa.Table) -> pa.Table:
    names = [name for name in echoes.column_names if name not in ORDER]
    counted = echoes.select(names).group_by(names, use_threads=False).aggregate([([], "count_all")])
    return counted.rename_columns([*names, "n"])


def read(source: str | Path) -> dict[str, pa.Table]:
    """Read counts into table echoes, one row per echo, with null sequences and times."""
    try:
        counts = pq.read_table(source, partitioning=None)
        if sum(counts["n"].to_pylist()) > MOST:
            raise ValueError(f"more than {MOST:,} echoes")
        echoes = counts.drop_columns("n").take(np.repeat(np.arange(len(counts)), counts["n"].to_numpy()))
        for name in ORDER:
            echoes = echoes.append_column(name, pa.nulls(len(echoes), ping.SCHEMA.field(name).type))
        return {"echoes": echoes.select(ping.SCHEMA.names).cast(ping.SCHEMA)}
    except (pa.ArrowException, OSError, TypeError, ValueError, KeyError) as error:
        raise RawDataError(source, None, error, "counts of echoes in Parquet") from error
