"""
Upper bounds on the rates of Kafka connections from the bytes in flight: producers and replica fetchers to a leader.

- A producer has some requests in flight to each leading broker, of one batch per partition. Each is answered after the
  RTT to the leader and, with acks=all, the time to replicate. A broker processes one request of a connection at a time
  (Kafka protocol guide, "Network"), so with acks=all only one passes in the time to replicate.
- A follower has one fetch in flight per leader and fetcher thread. It returns at most replica.fetch.max.bytes per
  partition, and replica.fetch.response.max.bytes in all. A fetcher without partitions opens no connection.
- A connection carries at most its TCP window per RTT.

All arguments are numbers or arrays; rates are in bytes per second.
"""

from __future__ import annotations

from math import inf

import numpy as np

from wanbench.methods.tcp.models import advertised_window_bytes
from wanbench.methods.trials.limits import MAX_REQUEST_BYTES


def connection_window_bytes(receive_buffer_bytes) -> np.ndarray:
    """
    TCP window for this requested receive buffer (Linux doubles the request); infinite for -1.

    >>> connection_window_bytes([65_536, -1]).round().tolist()
    [83886.0, inf]
    """
    asked = np.asarray(receive_buffer_bytes, dtype=float)
    return np.where(asked < 0, inf, advertised_window_bytes(2 * asked))


def request_bytes(batch_bytes, partitions_led) -> np.ndarray:
    """Bytes of a full request: one batch per partition the broker leads, up to max.request.size, and at least one."""
    batch = np.asarray(batch_bytes, dtype=float)
    return batch * np.maximum(np.minimum(partitions_led, np.floor(MAX_REQUEST_BYTES / batch)), 1.0)


def produced_bytes_per_s(request, in_flight, leader_s, replicated_s, window_bytes) -> dict[str, np.ndarray]:
    """
    The maximum rate from one producer to one leader.

    Parameters
    ----------
    request
        Bytes of a request.
    leader_s, replicated_s
        RTT to the leader, and the time to replicate; 0 if the producer does not wait for replication.

    Returns
    -------
    dict
        By limit: "requests" in flight, acknowledgements "in turn", the connection's "window".

    Examples
    --------
    >>> found = produced_bytes_per_s(1000.0, 5, 0.1, 0.1, float("inf"))
    >>> {name: float(rate) for name, rate in found.items()}
    {'requests': 25000.0, 'in turn': 10000.0, 'window': inf}
    """
    request, replicated_s = np.asarray(request, dtype=float), np.asarray(replicated_s, dtype=float)
    with np.errstate(divide="ignore"):
        return {
            "requests": in_flight * request / (leader_s + replicated_s),
            "in turn": request / replicated_s,
            "window": np.asarray(window_bytes, dtype=float) / leader_s,
        }


def fetched_bytes_per_s(
    partitions, fetchers, rtt_s, window_bytes, fetch_max_bytes, response_max_bytes
) -> dict[str, np.ndarray]:
    """
    The maximum rate of one follower from one leader, by limit: size of a "fetch", the connections' "window".

    Parameters
    ----------
    partitions
        Number of partitions that it copies from this leader, at least 1, assumed to be spread evenly over fetchers.

    Examples
    --------
    Four fetchers, but two partitions: two connections.

    >>> found = fetched_bytes_per_s(2, 4, 0.1, 83_886, 1_048_576, 10_485_760)
    >>> {name: round(float(rate)) for name, rate in found.items()}
    {'fetch': 20971520, 'window': 1677720}
    """
    connections = np.minimum(fetchers, partitions)
    fetch = np.minimum(partitions / connections * fetch_max_bytes, response_max_bytes)
    return {"fetch": connections * fetch / rtt_s, "window": connections * window_bytes / rtt_s}
