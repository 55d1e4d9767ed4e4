"""What the corner of a matrix says about its sides: words for roles, and their order."""

import pytest

from wanbench.read.importers.grid import is_transposed


@pytest.mark.parametrize(
    "corner",
    [
        "Source → Dest",
        "From → To",
        "From -> To",
        "From => To",
        "From ⇒ To",
        "Source ⟶ Destination",
        "src>dst",
        "From | To",
        "From to To",
        "Source to Destination",
        "source-to-dest",
        "From To",
        "from_region → to_region",
        "From \\ To (ms)",
        "**From** → *To*",
        "From &rarr; To",
        "Source city → Destination city",
        "From ↔ To",
        "From <-> To",
        "Source ➡️ Destination",
        "Average latency, source -> destination",
        "Sender → Receiver",
        "From --> To",
        "From — To",
        "Cloud region",
        "Origin → Target",
        "Source\n→ Destination",
        "Src → Dst [ms]",
        "From:To",
        "source region->destination region",
        "Client \\ Server",
        "Clients",
        "sender\\reflector",
        "Initiator → Responder",
        "Prober/Target",
        "tx / rx",
        "Name | Code",
        "Latency (ms)",
        "",
    ],
)
def test_the_side_sends(corner):
    assert is_transposed(corner) is False


@pytest.mark.parametrize(
    "corner",
    [
        "Destination ← Source",
        "Dest <- Source",
        "To <= From",
        "To → From",
        "To -> From",
        "To | From",
        "Destination from Source",
        "dst / src",
        "To From",
        "to_region → from_region",
        "To \\ From (ms)",
        "To/From [ms]",
        "Latency (ms) To \\ From",
        "receiver \\ sender",
        "to from region",
        "Server \\ Client",
        "Receiver / Sender",
        "receivers | senders",
        "Reflector",
        "Reflector / Sender (ms)",
        "Responder \\ Initiator",
        "Target / Probe",
        "Listener / sender",
        "rx / tx",
        "Destinations",
        "to POP / from POP",
        "Destination bucket",
    ],
)
def test_the_side_answers(corner):
    assert is_transposed(corner)


@pytest.mark.parametrize(
    "corner",
    [
        "↓ From / → To",
        "From ↓, To →",
        "rows: From, columns: To",
        "From ⬇️ / To ➡️",
        "Rows = source, columns = destination",
        "From (row) To (column)",
        "From: row / To: column",
        "Source: down, destination: across",
        "client → server",
        "Sources (rows), destinations (columns)",
        "Rows ping columns",
        "Destinations on top, sources on the left",
        "From / Region",
        "Region to region",
        "Server → Server",
        "→ From / ↓ To",
        "From →\nTo ↓",
        "From (columns) / To (rows)",
        "From ➡️ / To ⬇️",
        "From: columns, To: rows",
        "Server (rows), client (columns)",
        "column → row",
        "Columns ping rows",
        "rows ← columns",
        "First column: destination, first row: source",
        "Region ← Region",
        "Server",
        "Server → Client",
        "Client ← Server",
        "server to client",
        "Remote",
        "nach / von",
        "Destination / Destination",
        "From / To / From",
    ],
)
def test_unclear_corners(corner):
    assert is_transposed(corner) is None
