"""What tests of a source's claims share: the verdicts, estimates that are made up, and claims printed otherwise."""

from dataclasses import replace

from wanbench.methods.claims import ledger
from wanbench.methods.result import Estimate

OWN, WITHIN, UNKNOWN = "reproduced", "inside the interval", "undecided"
NOT, CANNOT, UNTESTED = "not reproduced", "cannot be tested here", "not tested"


def estimate(value, low, high, unit="times", **other):
    about = {"n": 8, "basis": "8 trials", "level": 0.95} | other
    return Estimate("q", "it is {}", value, low, high, unit, method="method", assumption="assumption", **about)


def check_all_tested(rows, n):
    """
    Each of n claims has its working and says how it was tested: settings can only be contradicted, claims that cannot
    be tested here have no verdict, and those with numbers of their own have one.
    """
    assert (rows.working != "").all() and len(rows) == n
    by_way = {way: set(each.own) for way, each in rows.groupby("tested_by")}
    assert by_way.get("setting", set()) <= {UNTESTED, NOT}
    assert by_way.get("not here", {CANNOT}) == {CANNOT}
    assert UNTESTED not in by_way["own numbers"] and CANNOT not in set(rows.own[rows.tested_by != "not here"])
    assert not set(rows.working[rows.tested_by == "own numbers"]) & set(ledger.WAYS.values())


def check_shown(audited, shown):
    """Quantities that are not comparable stand beside their claims alone, and change no verdict."""
    alone = audited()
    for measured, claims in shown.items():
        rows = audited(**{measured: estimate(0.5, 0.4, 0.6)})
        assert set(rows.index[rows.working != alone.working]) == set(claims) & set(rows.index), measured
        assert (rows[["own", "rerun"]] == alone[["own", "rerun"]]).all().all(), measured


def corrected(audit, own_numbers, values):
    """The verdicts on the source's own numbers with some of them printed otherwise."""
    for name, value in values.items():
        claim = name.replace("_", "-")
        audit.claims[claim] = replace(audit.claims[claim], value=value)
    own_numbers(audit)
    return audit.table().set_index("claim")
