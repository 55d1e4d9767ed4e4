"""Columns that several tables share."""

from __future__ import annotations

from .declare import column

RUN = column("run_id", "text", "", "the run, as its folder is called; of an import, as the source calls it")
FROM = column("from_region", "text", "", "region of the host that starts the test (the client)")
TO = column("to_region", "text", "", "region of the host that answers (the server)")
DIRECTION = column(
    "direction", "text", "", "the sender: client (forward) or server (reverse)", allowed=("forward", "reverse")
)
CONTEXT = (
    column("run_id", "text?", "", "the run, as its folder is called; null outside a run folder"),
    column("test_id", "text?", "", "the test: ordinal in the plan, from, to; null outside a run folder"),
    column("attempt", "count?", "", "1 for the first try of the test; null outside a run folder", minimum=1),
    column("from_region", "text?", "", "region of the client; null outside a run folder"),
    column("to_region", "text?", "", "region of the server; null outside a run folder"),
    column("source_file", "text", "", "the raw file, relative to the run folder (or as it was given)"),
)
