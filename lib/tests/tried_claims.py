"""What tests of a source's claims share: the verdicts, estimates that are made up, and claims printed otherwise."""

from dataclasses import replace

from wanbench.claims import ledger
from wanbench.stats.result import Estimate

OWN, WITHIN, UNKNOWN = "reproduced", "inside the interval", "undecided"
NOT, CANNOT = "not reproduced", "cannot be tried here"


def estimate(value, low, high, unit="times"):
    return Estimate("q", "it is {}", value, low, high, unit, 8, "method", "assumption", basis="8 trials")


def check_all_tried(rows, source, page, n):
    """Each of the n claims of a page has a verdict and its working, which fit the column `tried_by` of the source."""
    assert (rows.verdict != "not tried").all() and (rows.working != "").all() and len(rows) == n
    claims = ledger.read_claims(source).claims
    assert {claims[name].page for name in rows.index} == {page}
    left = {name for name in rows.index if claims[name].tried_by == "not here"}
    assert left == set(rows.index[rows.verdict == CANNOT])
    settings = [name for name in rows.index if claims[name].tried_by == "setting"]
    assert set(rows.verdict[settings]) <= {UNKNOWN}


def corrected(audit, own_numbers, values):
    """The verdicts on the source's own numbers with some of them printed otherwise."""
    for name, value in values.items():
        claim = name.replace("_", "-")
        audit.claims[claim] = replace(audit.claims[claim], value=value)
    own_numbers(audit)
    return audit.table().set_index("claim")
