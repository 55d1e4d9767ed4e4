"""
Measure the clock offset between two hosts by exchanging time stamps over their path, as NTP does.

The exchange with the shortest round trip is the most accurate: its offset is right to within half the RTT, however
asymmetric the path (RFC 5905, section 8).
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path

from wanbench.errors import CommandError
from wanbench.measure.labs.base import Host
from wanbench.measure.labs.clock_offset import Offset, joined, nearest  # noqa: F401  (sessions take readings by this module)
from wanbench.measure.labs.programs import program_command
from wanbench.runs import RawFile

from . import clock_echo
from .base import ExperimentError, keep, last_line, run_to_end

EXCHANGES = 30
"""Number of exchanges. Only the shortest counts, and at least one of this many hardly ever queues."""
INTERVAL_S = 0.01
FIRST_PORT, PORTS = 9500, 200
"""First port, and number of ports: above those of brokers and, by default, of iperf3, which may run concurrently."""
ONE_CLOCK = "one machine, one clock"
UNKNOWN = "not known"
_MARGIN_S = 15.0
"""Time for Python to start on a busy host."""
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def one_clock(source: Host, target: Host) -> bool:
    """Whether both hosts run on the same kernel, by its boot id, and so share a clock."""
    boot_ids = set()
    for host in (source, target):
        done = host.run(["cat", _BOOT_ID], timeout_s=30, ok=None)
        if done.returncode:
            return False
        boot_ids.add(done.stdout.strip())
    return len(boot_ids) == 1


def exchange(
    source: Host, target: Host, folder: Path, experiment: str, stem: str, *, shift_ms: float = 0.0
) -> tuple[Offset, list[RawFile]]:
    """
    Exchange time stamps over UDP; leave <experiment>/<stem>.clock.txt, and stderr if there is any.

    Parameters
    ----------
    shift_ms : float
        To test the exchange: the target's program reads a clock that is ahead by this much.

    Raises
    ------
    ExperimentError
        If there is no answer: the hosts must reach each other by UDP, from port `FIRST_PORT` on.
    """
    port = FIRST_PORT + zlib.crc32(stem.encode()) % PORTS
    here, there = (program_command(host, Path(clock_echo.__file__)) for host in (source, target))
    server = target.start([*there, "answer", target.address, str(port), repr(float(shift_ms))])
    try:
        server.wait_for_output("listening", _MARGIN_S)
        asking = [*here, "ask", target.address, str(port), str(EXCHANGES), repr(INTERVAL_S)]
        done, reason = run_to_end(source, asking, EXCHANGES * INTERVAL_S + _MARGIN_S)
    except CommandError as error:
        raise ExperimentError(
            f"the clock of {target.name} cannot be read: {error}",
            keep(folder, experiment, stem, "clock.txt", server.stop()),
        ) from error
    finally:
        server.stop()
    files = keep(folder, experiment, stem, "clock.txt", done)
    whole = done.stdout[: done.stdout.rfind(b"\n") + 1]  # the last line of a stopped program may lack its end
    stamps = [json.loads(line) for line in whole.splitlines()]
    if not stamps:
        raise ExperimentError(reason or f"the clock of {target.name} did not answer: {last_line(done)}", files)
    return nearest(stamps), files
