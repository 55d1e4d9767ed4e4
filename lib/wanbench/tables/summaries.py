"""Tables that analysing makes: summaries, what could not be read, flags, findings."""

from __future__ import annotations

from .context import FROM, TO
from .declare import column, declare

declare(
    "pairs",
    "a summary: one ordered pair of regions over all its tests",
    FROM,
    TO,
    column("from_cloud", "text", "", "cloud of from_region"),
    column("to_cloud", "text", "", "cloud of to_region"),
    column("distance_km", "number?", "km", "geodesic, WGS-84; null if a region is not in the catalogue"),
    column("light_rtt_ms", "number?", "ms", "round trip of light in fibre over that distance"),
    column("n_tests", "count", "", "tests that from_region started and that are done"),
    column("n_echoes", "count?", "", "echoes that from_region sent (extra replies apart); null: not known"),
    column("n_lost", "count?", "", "echoes lost; null: not known"),
    column("rtt_ms", "number?", "ms", "median over tests of each test's minimum RTT (or as requested)"),
    column("throughput_bps", "number?", "bit/s", "TCP from from_region to to_region: median over tests"),
    column("n_transfers", "count", "", "TCP transfers in that direction that gave a throughput"),
    column("retransmits", "count?", "segments", "sum over those transfers; null if none gives them"),
)
declare(
    "link_counters",
    "what one direction of an emulated link carried",
    column("run_id", "text?", "", "the run; null outside one"),
    column("from_region", "text", "", "region whose packets take this link"),
    column("to_region", "text", "", "region they arrive in"),
    column("packets_sent", "count", "packets", "that entered the link"),
    column("bytes_sent", "count?", "bytes", "that entered the link"),
    column("packets_delivered", "count", "packets", "that left it"),
    column("bytes_delivered", "count", "bytes", "that left it"),
    column("packets_lost", "count", "packets", "dropped by the link's random loss"),
    column("packets_queue_dropped", "count", "packets", "dropped because the queue was full"),
    column("packets_cut", "count", "packets", "dropped because the link was cut"),
    column("packets_device_dropped", "count?", "packets", "not taken by the receiving host's device"),
    column("mean_late_ms", "number?", "ms", "mean lateness of the emulator's deliveries"),
    column("worst_late_ms", "number?", "ms", "maximum lateness"),
)
declare(
    "unread",
    "a raw file, or a line of one, that could not be read",
    column("run_id", "text?", "", "the run; null outside a run folder"),
    column("path", "text", "", "the file, relative to the run folder (or as it was given)"),
    column("line_number", "count?", "", "1 for the first line; null: the whole file", minimum=1),
    column("found", "text", "", "what it holds"),
    column("expected", "text", "", "what was expected instead"),
)
declare(
    "sources",
    "a file from another source",
    column("path", "text", "", "the file, as it was given"),
    column("title", "text", "", "a description"),
    column("address", "text?", "", "where it can be fetched; null: not known"),
    column("version", "text?", "", "the commit or the date of that state of it; null if not known"),
    column("sha256", "text", "", "SHA-256 of the bytes that were read"),
    column("bytes", "count", "bytes", "how many they were"),
    column("licence", "text?", "", "its licence; null if not known"),
)
declare(
    "flags",
    "a value, row, column or region that a plausibility rule flags",
    column("table", "text", "", "the table that it is in"),
    column("scope", "text", "", "what is flagged", allowed=("row", "column", "region", "table")),
    column("verdict", "text", "", "how sure that is", allowed=("impossible", "suspect")),
    column("rule", "text", "", "the rule that it breaks"),
    column("row", "text?", "", "the row: its test, or its source file; null if the scope is wider"),
    column("from_region", "text?", "", "the row's pair"),
    column("to_region", "text?", "", "the row's pair"),
    column("region", "text?", "", "the region that is blamed; null if none is"),
    column("column_name", "text?", "", "the column that is flagged"),
    column("value", "number?", "see found", "what it holds", minimum=None),
    column("bound", "number?", "see found", "the rule's maximum or minimum", minimum=None),
    column("found", "text", "", "the figure, as a sentence"),
    column("cause", "text", "", "the likely cause"),
)
declare(
    "findings",
    "a sentence of a page and the numbers in it",
    column("name", "text", "", "short name, unique on its page"),
    column("sentence", "text", "", "the finding as a sentence, computed"),
    column("estimate", "number?", "see unit", "the estimate", minimum=None),
    column("low", "number?", "see unit", "lower end of its interval", minimum=None),
    column("high", "number?", "see unit", "upper end of its interval", minimum=None),
    column("unit", "text", "", "unit of estimate, low and high"),
    column("n", "count?", "", "observations of the unit of replication"),
    column("n_regions", "count?", "", "regions they come from"),
    column("method", "text", "", "how estimate and interval were computed"),
    column("assumption", "text", "", "what it assumes"),
    column("page", "text", "", "the page that it is on"),
    column("answer", "flag", "", "whether it answers the question of its page"),
    column("place", "count", "", "its place among the findings of its page, from 1; 0: on no page"),
    column("cautions", "text", "", "what a reader must know before quoting it, a line each"),
)
