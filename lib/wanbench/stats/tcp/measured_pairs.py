"""Pairs that have both an RTT and a throughput: what models of throughput are fitted to."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..regions.unordered_pairs import Sample, left_out_of_any, unordered

ENDS = ["region_a", "region_b"]


def with_both(pairs: pd.DataFrame, rtt_column: str, throughput_column: str, ordered: bool) -> Sample:
    """Pairs that have both values; with `ordered`, each direction is a row with region_a the sender."""
    rtt = unordered(pairs, rtt_column)
    throughput = unordered(pairs, throughput_column, combine="geometric mean")
    left_out = left_out_of_any(rtt, throughput)
    parts = [throughput.frame]
    if ordered:
        ascends = pairs.from_region < pairs.to_region
        halves = [
            unordered(part, throughput_column, combine="geometric mean").frame
            for part in (pairs[ascends], pairs[~ascends])
        ]
        parts = [halves[0].assign(is_back=False), halves[1].assign(is_back=True)]
    frame = pd.concat(parts, ignore_index=True).rename(columns={"value": "throughput_bps"})
    rtts = rtt.frame[[*ENDS, "value"]].rename(columns={"value": "rtt_ms"})
    frame = frame.merge(rtts, on=ENDS)
    if ordered:
        back = frame.pop("is_back").to_numpy(dtype=bool)
        frame[ENDS] = np.where(back[:, None], frame[ENDS[::-1]].to_numpy(), frame[ENDS].to_numpy())
    keep = [*ENDS, "cloud_pair", "distance_km", "rtt_ms", "throughput_bps"]
    return Sample(f"{rtt_column} and {throughput_column}", frame[keep], left_out)
