"""What the corner of a matrix says of its sides: arrows, words, and both orders."""

import pytest

from wanbench.importers.corner import said_transposed


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
        "↓ From / → To",
        "↓ From → To",
        "→ To ↓ From",
        "From ↓, To →",
        "To →",
        "From ↓",
        "from_region → to_region",
        "From \\ To (ms)",
        "**From** → *To*",
        "From &rarr; To",
        "rows: From, columns: To",
        "Source city → Destination city",
        "From ↔ To",
        "From <-> To",
        "Source ➡️ Destination",
        "Average latency, source -> destination",
        "Sender → Receiver",
        "From / To →",
        "To → / From",
        "From --> To",
        "From — To",
        "From ⬇️ / To ➡️",
        "Cloud region",
        "Origin → Target",
        "Source\n→ Destination",
        "Src → Dst [ms]",
        "From:To",
        "source region->destination region",
        "From → To / RTT",
    ],
)
def test_the_side_sends(corner):
    assert not said_transposed(corner)


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
        "→ From ↓ To",
        "→ From / ↓ To",
        "From / ↓ To",
        "From →, To ↓",
        "From →\nTo ↓",
        "From →",
        "To ↓",
        "to_region → from_region",
        "To \\ From (ms)",
        "To/From [ms]",
        "From (columns) / To (rows)",
        "rows = to, columns = from",
        "Latency (ms) To \\ From",
        "receiver \\ sender",
        "From → To ↓",
        "From ➡️ / To ⬇️",
        "to from region",
    ],
)
def test_the_side_answers(corner):
    assert said_transposed(corner)
