"""
Outages: fault episodes of a Kafka cluster, and streams of acknowledgements around them.

`gaps` (one stream: its longest gap, and when its rate is restored), `records` (the fate of every record), `bounds`
(medians of few episodes, upper bounds of shares with no hit), `timeouts` (the outage that settings imply); `episodes`
(a run's faults with their tables), `losses` and `recovery` (RPO and RTO over episodes), `over_episodes` (their common
form).
"""

__all__ = []
