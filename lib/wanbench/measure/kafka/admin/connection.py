"""
An admin client of kafka-python that fails at once on permanent errors, and knows why it found no broker.

Imports the standard library and kafka-python only: `wanbench.measure.kafka.admin.program` starts with it.
"""

from __future__ import annotations

import re

from kafka import errors
from kafka.admin import KafkaAdminClient
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

CONNECT_MS = 3000
"""Timeout of a connection to one broker, before another is tried."""

_PERMANENT = (
    errors.SaslAuthenticationFailedError,
    errors.AuthorizationError,
    errors.UnsupportedSaslMechanismError,
    errors.IncompatibleBrokerVersion,
)
_TLS_REFUSED = re.compile(r"SSL: (CERTIFICATE_VERIFY_FAILED|TLSV\d|SSLV3_ALERT|WRONG_VERSION|RECORD_LAYER)|alert", re.I)


class Unreachable(errors.KafkaError):
    """No bootstrap address answered."""


class Connections(KafkaConnectionManager):
    """
    Records why connections failed (`failures`, by address), and raises permanent errors during the search for a broker.
    """

    def __init__(self, net, **settings):
        super().__init__(net, **{**settings, "socket_connection_setup_timeout_ms": CONNECT_MS})
        self.failures: dict[str, Exception] = {}
        self._permanent = None

    def get_connection(self, node_id, timeout_ms=None, **options):
        fresh = node_id not in self._conns
        timeout_ms = min(timeout_ms or CONNECT_MS, CONNECT_MS)
        connection = super().get_connection(node_id, timeout_ms, **options)
        if fresh:
            # kafka-python waits for the answer to a TLS handshake without end.
            error = errors.KafkaTimeoutError(f"no connection after {timeout_ms / 1000:.1f} s")
            timer = self._net.call_later(
                timeout_ms / 1000, lambda: connection.init_future.is_done or connection.close(error)
            )
            connection.init_future.add_both(lambda _: self._net.cancel(timer))
            node = self.cluster.broker_metadata(node_id)
            where = f"{node.host}:{node.port}"
            connection.init_future.add_errback(lambda error: self._remember(where, error))
            connection.close_future.add_errback(lambda error: self._remember(where, error))
        return connection

    async def _build_transport(self, node, timeout_at=None):
        # kafka-python drops data that comes with the end of a connection: that is how brokers refuse a password.
        transport = await super()._build_transport(node, timeout_at=timeout_at)
        receive = transport._sock_recv

        def receive_all():
            data, error = receive()
            return data, None if data else error

        transport._sock_recv = receive_all
        return transport

    def update_backoff(self, node_id):
        if self._permanent is not None and self.cluster.is_bootstrap(node_id):
            raise self._permanent
        return super().update_backoff(node_id)

    def _remember(self, where, error):
        if error is None:
            return
        if str(error) or where not in self.failures:
            self.failures[where] = error
        if isinstance(error, _PERMANENT) or _TLS_REFUSED.search(str(error)):
            self._permanent = error


def connected(settings: dict, *, connect_s: float, request_s: float) -> KafkaAdminClient:
    """
    An admin client that has found the cluster.

    Parameters
    ----------
    settings : dict
        Keywords of kafka-python: bootstrap_servers, security_protocol and so on.
    connect_s, request_s : float
        How long to look for a broker, and to wait for one answer.

    Raises
    ------
    Unreachable
        With the last reason for each address.
    KafkaError
        If the cluster refuses.
    """
    managers = []

    def client(**configs):
        net = NetworkSelector(**configs)
        managers.append(Connections(net, **configs))
        return KafkaNetClient(net, managers[0], **configs)

    try:
        return KafkaAdminClient(
            **settings,
            kafka_client=client,
            bootstrap_timeout_ms=max(1, int(connect_s * 1000)),
            request_timeout_ms=max(1, int(request_s * 1000)),
        )
    except errors.KafkaTimeoutError:
        failures = managers[0].failures if managers else {}
        raise Unreachable("; ".join(f"{where}: {message(error)}" for where, error in failures.items())) from None


def message(error: BaseException) -> str:
    """
    An error's message without its class name.

    >>> message(errors.KafkaConnectionError("refused")), message(errors.RequestTimedOutError())
    ('refused', 'RequestTimedOutError')
    >>> message(errors.SaslAuthenticationFailedError("Invalid username or password"))
    'Invalid username or password'
    """
    name = type(error).__name__
    return re.sub(rf"^(\[Error -?\d+\] )?({name}(: |$))?", "", " ".join(str(error).split())) or name
