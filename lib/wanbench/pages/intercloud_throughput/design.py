"""Record the routers on the way to a host with mtr; `wanbench.read.ingest.route` reads the files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from wanbench.measure.experiments.base import (
    PROCESS_S,
    ExperimentError,
    bounded,
    check_declared,
    ended_with,
    keep,
    run_to_end,
)
from wanbench.measure.labs.base import Host
from wanbench.runs import RawFile

_PROBE_BYTES = 64  # mtr's default size of a packet
_HOPS = 30  # mtr's default for the most hops
_GRACE_S = 1  # wait for late replies; no path between clouds takes longer
_MARGIN_S = 20.0  # added to the cycles; then mtr counts as hung
# A host without mtr leaves an empty file, which says so: a campaign should not fail for a by-product.
_IF_INSTALLED = 'command -v mtr >/dev/null || exit 0; exec mtr "$@"'


@dataclass(frozen=True)
class Route:
    """Send `cycles` probes, one per second, to each router on the way. Without mtr on the host, the record is empty."""

    cycles: int = bounded(3, 1, 100)

    name: ClassVar[str] = "route"

    def __post_init__(self):
        check_declared(self)

    def __str__(self) -> str:
        return f"route: mtr with {self.cycles} cycles, where it is installed"

    def run(self, source: Host, target: Host, folder: Path, stem: str) -> list[RawFile]:
        """
        Trace the route from `source` to `target`; write route/<stem>.json, which is empty if mtr is not installed.

        Raises ExperimentError, with mtr's output, if mtr fails or does not end in time.
        """
        options = ["--json", "--no-dns", "--gracetime", str(_GRACE_S), "--report-cycles", str(self.cycles)]
        command = ["sh", "-c", _IF_INSTALLED, "mtr", *options, target.address]
        done, stopped = run_to_end(source, command, self.cycles + _MARGIN_S)
        files = keep(folder, self.name, stem, "json", done)
        if stopped or done.returncode:
            raise ExperimentError(stopped or ended_with(f"mtr on {source.name}", done), files)
        return files

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Return the expected duration in s: one second per cycle, and the wait for late replies."""
        return self.cycles + _GRACE_S + PROCESS_S

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Return the maximum bytes on the wire, for probes and replies."""
        return 2.0 * self.cycles * _HOPS * _PROBE_BYTES
