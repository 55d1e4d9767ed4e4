"""Raw files of a cluster's nodes: logs, output and settings."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

from .effective_settings import effective_settings
from .node import Node
from .security.secret import without_secrets

EXPERIMENT = "kafka_cluster"


def keep(nodes: Sequence[Node], folder: Path, stem: str) -> list[RawFile]:
    """
    Write the logs, the printed output and the settings of nodes to <run folder>/kafka_cluster/.

    Per node <stem>.<role>-<node_id>.server.log.gz (server-2.log.gz of its second start, and so on), .jvm.log.gz of the
    pauses of its JVM (jvm-2.log.gz ...), .txt, .stderr.txt of what it printed, if anything, and .settings.json with
    `given` and `effective` settings, secrets hidden. `wanbench.read.ingest.broker_pauses` reads the logs.
    """
    started, files = now_utc(), []

    def write(name, content, node, returncode=None):
        about = {"command": node.command, "returncode": returncode}
        files.append(
            write_raw(folder, EXPERIMENT, name, content, **about, started_at_utc=started, ended_at_utc=now_utc())
        )

    for node in nodes:
        role = "broker" if node.placement.is_broker else "controller"
        base = ".".join(filter(None, [stem, f"{role}-{node.placement.node_id}"]))
        for start in range(1, node.starts + 1):
            # A log names each partition of each topic several times, and shrinks to a tenth.
            for kind, log in (("server", node.log(start)), ("jvm", node.pause_log(start))):
                if log or kind == "server":
                    name = f"{base}.{kind}{f'-{start}' if start > 1 else ''}.log.gz"
                    write(name, gzip.compress(log, mtime=0), node)
        done = node.printed()
        for name, content in (("txt", done.stdout), ("stderr.txt", done.stderr)) if done else ():
            if content:
                write(f"{base}.{name}", content, node, done.returncode if node.death() else None)
        settings = {
            "given": without_secrets(node.settings),
            "effective": without_secrets(effective_settings(node.log())) if node.starts else {},
        }
        write(f"{base}.settings.json", json.dumps(settings, indent=1).encode() + b"\n", node)
    return files
