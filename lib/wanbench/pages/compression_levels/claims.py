"""Test the claims of source 005: KIP-390, which made compression levels configurable, and its benchmark."""

import pandas as pd

from wanbench.formatting import number
from wanbench.methods.claims.ledger import Audit, read_claims
from wanbench.methods.claims.rules import Rule, apply_rules, main_estimate, near, over
from wanbench.methods.result import Estimate, Result

SOURCE = "005-compression-levels"
EXPERIMENTAL = "minus-5"
"""The level of zstd that the source calls experimental."""
LEVELS = {"gzip": ("1", "6", "9"), "lz4": ("1", "9", "17"), "zstd": (EXPERIMENTAL, "1", "3", "12", "18")}
"""The levels in the source's table, lowest first."""
GAINS = {"gzip-rate": ("rate-gzip-1", "rate-gzip-6"), "zstd-rate": ("rate-zstd-1", "rate-zstd-3")}
SAVINGS = {"gzip-size": ("size-gzip-1", "size-gzip-9"), "lz4-size": ("size-lz4-1", "size-lz4-17")}
"""Claims in per cent, each with the two rows of the source's table from which it is computed."""
RULES = (
    Rule("gzip-rate", "gzip-rate", near(56.4, 15.64)),  # per cent; a tenth of the ratio is allowed, as elsewhere
    Rule("zstd-rate", "zstd-rate", near(32.7, 13.27)),
    Rule("gzip-size", "gzip-size", near(8.0, 4.0)),  # half of the saving: a tenth of the ratio would exceed it
    Rule("lz4-size", "lz4-size", near(1.5, 0.75)),
    Rule("lowest_over_highest_rate", "lowest-best", over(1)),
)


def compression_levels(**measured: Estimate | Result | None) -> Audit:
    """
    Test every claim of source 005 by arithmetic on the numbers that it prints, and by measured quantities.

    Parameters
    ----------
    **measured
        Measured quantities by their name in `RULES`; a claim without one is tested by arithmetic only. Most are ratios
        between the two levels that a claim names, of messages per second or of message sizes.
        `lowest_over_highest_rate` is the rate at a codec's lowest level over that at its highest, for the codec with
        the smallest ratio.

    Examples
    --------
    >>> rows = compression_levels().table().set_index("claim")
    >>> rows.own[["gzip-rate", "lz4-size", "up-to", "lower-faster", "linear-write"]].tolist()
    ['not reproduced', 'reproduced', 'not reproduced', 'reproduced', 'undecided']
    """
    audit = read_claims(SOURCE)
    gain, saving = (lambda a, b: 100 * (a / b - 1)), (lambda a, b: 100 * (1 - b / a))
    for claims, function in ((GAINS, gain), (SAVINGS, saving)):
        for claim, rows in claims.items():
            audit.compare(claim, audit.from_printed(function, *rows, unit="%"), "From the table.")
    best = audit.from_printed(gain, *GAINS["gzip-rate"], unit="%")
    audit.compare(
        "up-to",
        best,
        "The largest gain over a default level: 156 % is the new rate as a share of the old rate, not the gain.",
    )
    rates, latencies, sizes = (_columns(audit, kind) for kind in ("rate", "latency", "size"))
    falling, rising = (one.apply(lambda v: v.dropna().is_monotonic_decreasing) for one in (rates, -latencies))
    audit.judge("lower-faster", all(falling & rising), "From the source's table; the claim also holds at zstd -5.")
    audit.judge("lowest-best", all(rates.bfill().iloc[0] == rates.max()), "From the table.")
    usual = sizes.drop(index=EXPERIMENTAL)
    levels, codecs = (usual.max() / usual.min()).max(), usual.max().max() / usual.max().min()
    with_it = (sizes.max() / sizes.min()).max()
    audit.judge(
        "codec-first",
        bool(codecs > levels),
        f"From the source's table: sizes differ by a factor of {number(codecs, 3)} between codecs, and by up to "
        f"{number(levels, 3)} between levels of one codec ({number(with_it, 3)} with zstd -5).",
    )
    took_s = audit.number("linear-bytes") / (1e6 * audit.number("linear-write"))
    audit.judge(
        "linear-write",
        None,
        f"At this rate the test's {number(audit.number('linear-bytes'))} bytes take {number(1e6 * took_s, 2)} "
        "microseconds: the rate extrapolates one write into memory to a second, and is not the speed of a disk.",
    )
    for claims, function, what in (
        (GAINS, lambda ratio: 100 * (ratio - 1), "gain in messages per second"),
        (SAVINGS, lambda ratio: 100 * (1 - 1 / ratio), "saving in bytes of a message"),
    ):
        for name in set(claims) & {each for each, value in measured.items() if value is not None}:
            texts = {"quantity": what, "claim": f"The {what} is {{}}", "unit": "%"}
            measured[name] = main_estimate(name, measured[name]).transformed(function, **texts)
    apply_rules(audit, RULES, {}, measured)
    return audit


def _columns(audit: Audit, kind: str) -> pd.DataFrame:
    """Return one kind of number (rate, latency, size) from the source's table: rows are levels, columns are codecs."""
    levels = [EXPERIMENTAL, "1", "3", "6", "9", "12", "17", "18"]
    numbers = {codec: {level: audit.number(f"{kind}-{codec}-{level}") for level in of} for codec, of in LEVELS.items()}
    return pd.DataFrame(numbers).reindex(levels)
