"""Select pairs that have both an RTT and a throughput, as models of throughput need."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wanbench.methods.regions.unordered_pairs import Sample, left_out_of_any, unordered

ENDS = ["region_a", "region_b"]
COLUMNS = [*ENDS, "cloud_pair", "distance_km", "rtt_ms", "throughput_bps"]


def pairs_with_both(pairs: pd.DataFrame, *, ordered: bool = False) -> Sample:
    """
    Pairs with `rtt_ms` and `throughput_bps`, columns as `COLUMNS`.

    The RTT is the median of both directions; the throughput is their geometric mean, or, with `ordered`, one row per
    direction, with region_a the sender.
    """
    rtt = unordered(pairs, "rtt_ms")
    throughput = unordered(pairs, "throughput_bps", combine="geometric mean")
    left_out = left_out_of_any(rtt, throughput)
    frame = throughput.frame
    if ordered:
        # One direction at a time, so that `unordered` combines only repeated rows of that direction.
        ascends = pairs.from_region < pairs.to_region
        directions = [
            unordered(part, "throughput_bps", combine="geometric mean").frame.assign(reverse=reverse)
            for part, reverse in ((pairs[ascends], False), (pairs[~ascends], True))
        ]
        frame = pd.concat(directions, ignore_index=True)
    rtts = rtt.frame[[*ENDS, "value"]].rename(columns={"value": "rtt_ms"})
    frame = frame.rename(columns={"value": "throughput_bps"}).merge(rtts, on=ENDS)
    if ordered:
        reverse = frame.reverse.to_numpy(dtype=bool)[:, None]
        frame[ENDS] = np.where(reverse, frame[ENDS[::-1]].to_numpy(), frame[ENDS].to_numpy())
    return Sample("rtt_ms and throughput_bps", frame[COLUMNS], left_out)
