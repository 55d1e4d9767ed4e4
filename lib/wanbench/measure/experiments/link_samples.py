"""Periodic counters of the emulated links. Read by `wanbench.read.ingest.link_samples`."""

from __future__ import annotations

import gzip
import json
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from wanbench.checks import check_choice, check_fields
from wanbench.measure.labs.base import Host
from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

from .base import ExperimentError, links_of
from .sampling import LONGEST_S, Sampling

FOLDER = "links"
WHICH = ("pair", "all")
_AT_ONCE = 6
"""Number of links per request: the relay forwards no packets while it reads them, see `LinkSamples`."""
_END_S = 30.0
"""Timeout for the last sample, from a busy relay."""


@dataclass(frozen=True)
class LinkSamples(Sampling):
    """
    Counters of the links, one JSON object per sample: packets and bytes sent, delivered and dropped, backlog, rate.

    Only for labs with emulated links (`Host.links`). The relay forwards no packets while it reads counters, so at most
    six links are read at once: reading two takes 0.03 to 0.06 ms in the median, six 0.06 to 0.1 ms; all 72 links of
    nine regions at once would take 0.6 to 1 ms (``pytest -s -k cost_of_counting
    lib/tests/test_experiments_link_samples.py``, twice on two processors).

    Parameters
    ----------
    interval_s : float
        Interval between samples.
    which : "pair" or "all"
        Both directions of the pair, or all links of the lab.
    duration_s : float
        Duration of `run`; during another experiment, sampling lasts as long as that.
    """

    interval_s: float = 1.0
    which: str = "pair"
    duration_s: float = 10.0

    name: ClassVar[str] = "link_samples"

    def __post_init__(self):
        check_fields(self, ("interval_s", 0.05, 3600), ("duration_s", 0.1, LONGEST_S))
        check_choice("LinkSamples which", self.which, WHICH)

    def __str__(self) -> str:
        links = "all links" if self.which == "all" else "the links of the pair"
        return f"counters of {links} every {self.interval_s:g} s"

    def start(self, source: Host, target: Host, ending: ExitStack) -> _Sampler:
        links = links_of(source)
        pairs = [(source.region, target.region), (target.region, source.region)]
        pairs = [pair for pair in links.links if self.which == "all" or pair in pairs]
        if not pairs:
            raise ExperimentError(f"the lab has no link between {source.region} and {target.region}.")
        sampler = _Sampler(links, pairs, self.interval_s)
        ending.callback(sampler.stop)
        sampler.start()
        return sampler

    def end(self, started: _Sampler, folder: Path, stem: str, files: list[RawFile]) -> list[str]:
        started.stop()
        about = {"command": ["counters", self.which], "started_at_utc": started.started_at_utc}
        # Every sample repeats the names of all links and counters; compression leaves a tenth.
        name, content = f"{stem}.samples.jsonl.gz", gzip.compress(b"".join(started.lines), mtime=0)
        files.append(write_raw(folder, FOLDER, name, content, ended_at_utc=now_utc(), **about))
        return started.faults


class _Sampler(threading.Thread):
    """Reads the counters at once, every `interval_s`, and once more when stopped."""

    def __init__(self, links, pairs, interval_s: float):
        super().__init__(name="link samples", daemon=True)
        self.links, self.pairs, self.interval_s = links, pairs, interval_s
        self.lines: list[bytes] = []
        self.faults: list[str] = []
        self.started_at_utc, self._ended = now_utc(), threading.Event()

    def stop(self) -> None:
        self._ended.set()
        if self.is_alive():
            self.join(_END_S)
            if self.is_alive():
                self.faults.append(f"the last sample did not arrive within {_END_S:g} s.")

    def run(self) -> None:
        due = time.monotonic()
        try:
            while not self._ended.wait(max(0.0, due - time.monotonic())):
                self._sample()
                due += self.interval_s * max(1, -(-(time.monotonic() - due) // self.interval_s))
            self._sample()
        except Exception as error:  # an exception that ends a thread is seen by nobody
            self.faults.append(f"sampling stopped after {len(self.lines)} samples: {error}")

    def _sample(self) -> None:
        rows, longest_s = [], 0.0
        for first in range(0, len(self.pairs), _AT_ONCE):
            asked_at_s, asked = time.time(), time.perf_counter()
            counted = self.links.counters(self.pairs[first : first + _AT_ONCE])
            took_s = time.perf_counter() - asked
            longest_s = max(longest_s, took_s)
            rows += [{"at_s": asked_at_s + took_s / 2, **self._nominal(row), **row} for row in counted]
        sample = {"answer_ms": round(longest_s * 1000, 3), "links": rows}
        self.lines.append(json.dumps(sample).encode() + b"\n")

    def _nominal(self, row):
        gateway_bps = self.links.gateways.get(row["from_region"])
        own_bps = self.links.links[row["from_region"], row["to_region"]].rate_bps
        return {"rate_bps": own_bps if gateway_bps is None else gateway_bps}
