"""Connect kafka-python's admin client to a cluster, and name the reason if that fails."""

import re
from typing import Any

from kafka import errors
from kafka.admin import KafkaAdminClient
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

CONNECT_S = 15.0  # default timeout for reaching a broker
REQUEST_S = 30.0  # default timeout for one answer, that of Kafka's request.timeout.ms
CONNECT_MS = 3000  # timeout of a connection to one broker, before another is tried
_PERMANENT = (
    errors.SaslAuthenticationFailedError,
    errors.AuthorizationError,
    errors.UnsupportedSaslMechanismError,
    errors.IncompatibleBrokerVersion,
)
_TLS_REFUSED = re.compile(r"SSL: (CERTIFICATE_VERIFY_FAILED|TLSV\d|SSLV3_ALERT|WRONG_VERSION|RECORD_LAYER)|alert", re.I)


class Unreachable(errors.KafkaError):
    """No bootstrap address answered."""


class Refused(errors.KafkaError):
    """Kafka refused a request; `kind` is Kafka's name for the error."""

    def __init__(self, error: type[errors.KafkaError], reason: str | None = None):
        self.kind = error.__name__
        super().__init__(reason or getattr(error, "description", "") or error.__name__)


def refuse(code: int, reason: str | None = None) -> None:
    """Raise `Refused` for an error code other than 0, with the given reason or Kafka's own."""
    if code:
        raise Refused(errors.for_code(code), reason)


class Connections(KafkaConnectionManager):
    """
    A connection manager that records failed connections, and raises permanent errors at once during bootstrap.

    `failures` maps each address to its last error.
    """

    def __init__(self, net: NetworkSelector, **settings: Any):
        super().__init__(net, **{**settings, "socket_connection_setup_timeout_ms": CONNECT_MS})
        self.failures: dict[str, Exception] = {}
        self._permanent = None

    def get_connection(self, node_id: int | str, timeout_ms: float | None = None, **options: Any) -> Any:
        fresh = node_id not in self._conns
        timeout_ms = min(timeout_ms or CONNECT_MS, CONNECT_MS)
        connection = super().get_connection(node_id, timeout_ms, **options)
        if fresh:
            # kafka-python waits for the answer to a TLS handshake without a timeout.
            error = errors.KafkaTimeoutError(f"no connection after {timeout_ms / 1000:.1f} s")
            timer = self._net.call_later(
                timeout_ms / 1000, lambda: connection.init_future.is_done or connection.close(error)
            )
            connection.init_future.add_both(lambda _: self._net.cancel(timer))
            node = self.cluster.broker_metadata(node_id)
            for future in (connection.init_future, connection.close_future):
                future.add_errback(lambda error: self._remember(f"{node.host}:{node.port}", error))
        return connection

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        # kafka-python drops data that arrives with the end of a connection; brokers refuse a password in this way.
        transport = await super()._build_transport(node, timeout_at=timeout_at)
        receive = transport._sock_recv

        def receive_all() -> tuple[bytes, Any]:
            data, error = receive()
            return data, None if data else error

        transport._sock_recv = receive_all
        return transport

    def update_backoff(self, node_id: int | str) -> Any:
        if self._permanent is not None and self.cluster.is_bootstrap(node_id):
            raise self._permanent
        return super().update_backoff(node_id)

    def _remember(self, where: str, error: Exception | None) -> None:
        if error is None:
            return
        if str(error) or where not in self.failures:
            self.failures[where] = error
        if isinstance(error, _PERMANENT) or _TLS_REFUSED.search(str(error)):
            self._permanent = error


_Client: Any = KafkaAdminClient  # the type checker knows only an older version of it


class Admin(_Client):
    """
    An admin client that is connected to the cluster.

    `settings` are keyword arguments for kafka-python: bootstrap_servers, security_protocol and so on. `connect_s` and
    `request_s` are the timeouts for reaching a broker and for one answer. Raise Unreachable, with the last error of
    each address, if no broker answers; raise the KafkaError of the cluster if it refuses the client.
    """

    def __init__(self, settings: dict[str, Any], *, connect_s: float = CONNECT_S, request_s: float = REQUEST_S):
        self.connections: Any = None
        connect_ms, request_ms = (max(1, int(seconds * 1000)) for seconds in (connect_s, request_s))
        timeouts = {"bootstrap_timeout_ms": connect_ms, "request_timeout_ms": request_ms}
        try:
            super().__init__(**settings, kafka_client=self._client, **timeouts)
        except errors.KafkaTimeoutError:
            failures = self.connections.failures if self.connections else {}
            raise Unreachable("; ".join(f"{where}: {message(error)}" for where, error in failures.items())) from None

    def _client(self, **settings: Any) -> KafkaNetClient:
        net = NetworkSelector(**settings)
        self.connections = Connections(net, **settings)
        return KafkaNetClient(net, self.connections, **settings)

    def nodes(self) -> list[int]:
        return [broker.node_id for broker in self.connections.cluster.brokers()]

    def request(self, request: Any, node_id: int | None = None) -> dict[str, Any]:
        """Return the response of a broker (by default, of any broker); raise KafkaError if it does not respond."""
        (answer,) = self.requests([(node_id, request)])
        if isinstance(answer, errors.KafkaError):
            raise answer
        return answer

    def requests(self, asked: list[tuple[int | None, Any]]) -> list[dict[str, Any] | errors.KafkaError]:
        """Send (node_id, request) pairs concurrently; return, for each request, its response or the error."""
        return self.connections.run(self._responses, asked)

    async def _responses(self, asked: list[tuple[int | None, Any]]) -> list[Any]:
        answers = []
        for node_id, request in asked:
            try:
                answers.append(self.connections.send(request, node_id=node_id))
            except errors.KafkaError as error:
                answers.append(error)
        for n, answer in enumerate(answers):
            try:
                answers[n] = answer if isinstance(answer, errors.KafkaError) else (await answer).to_dict()
            except errors.KafkaError as error:
                answers[n] = error
        return answers


def message(error: BaseException) -> str:
    """
    Return an error's message without the class name, or the class name if there is no message.

    >>> message(errors.KafkaConnectionError("refused")), message(errors.RequestTimedOutError())
    ('refused', 'RequestTimedOutError')
    """
    name = type(error).__name__
    return re.sub(rf"^(\[Error -?\d+\] )?({name}(: |$))?", "", " ".join(str(error).split())) or name
