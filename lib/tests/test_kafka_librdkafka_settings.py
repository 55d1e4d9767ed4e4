"""What a client of librdkafka needs, beside what one of Java and of kafka-python needs."""

import json
import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path

from confluent_kafka import KafkaException, Producer
from mock_kafka import HereHost

from wanbench.measure.kafka.access import Access, ClientFiles, Secret
from wanbench.measure.kafka.security import security


def test_plain_text_needs_nothing():
    assert Access().settings("librdkafka", None, None) == {}


def test_certificates_are_paths_and_the_identity_holds_the_key_too():
    access = Access("SSL", authority_pem=b"a", identity_pem=b"i")
    assert access.settings("librdkafka", "/a.pem", "/i.pem") == {
        "security.protocol": "SSL",
        "ssl.ca.location": "/a.pem",
        "ssl.certificate.location": "/i.pem",
        "ssl.key.location": "/i.pem",
    }


def test_a_password_is_among_them():
    access = Access("SASL_SSL", mechanism="PLAIN", user="ada", password=Secret("hush", "HUSH"))
    settings = access.settings("librdkafka", None, None)
    assert (settings["sasl.mechanism"], settings["sasl.username"], settings["sasl.password"]) == (
        "PLAIN",
        "ada",
        "hush",
    )


def test_librdkafka_takes_the_files_and_shows_its_certificate_to_a_server_known_by_its_address(tmp_path):
    """A handshake alone: the server is no broker, and ends the connection after it."""
    host, kind = HereHost("eu", tmp_path), security("mtls")
    broker = kind.broker_settings(host)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(broker["ssl.keystore.location"])
    context.load_verify_locations(broker["ssl.truststore.location"])
    context.verify_mode = ssl.CERT_REQUIRED
    shown = []

    def serve():
        connection, _ = listener.accept()
        with context.wrap_socket(connection, server_side=True) as secured:
            shown.append(secured.getpeercert())
            secured.recv(4)  # the request comes only if the client trusts the server

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        files = ClientFiles(f"127.0.0.1:{listener.getsockname()[1]}", kind.access())
        path = Path(files.librdkafka(host))
        assert path.stat().st_mode & 0o777 == 0o600
        producer = Producer({**json.loads(path.read_text()), "log_level": 0})
        with suppress(KafkaException):
            producer.list_topics(timeout=5)
        thread.join(60)
    assert "client" in str(shown[0]["subject"])
    files.remove()
    assert not path.exists()
