"""The error of a cluster."""

from __future__ import annotations

from wanbench.errors import LabError


class ClusterError(LabError):
    """
    A Kafka cluster cannot be started, or failed to do what was requested.

    Parameters
    ----------
    reason : str
        What is wrong, with the broker's own last message.
    log : bytes
        The whole log of the broker concerned; empty where there is none.
    """

    def __init__(self, reason: str, log: bytes = b""):
        super().__init__(reason)
        self.log = log

    def __reduce__(self):
        return ClusterError, (str(self), self.log)
