"""What a client of librdkafka needs, beside what one of Java and of kafka-python needs."""

from wanbench.kafka.security.access import Access
from wanbench.kafka.security.secret import Secret


def test_plain_text_needs_nothing():
    assert Access().librdkafka_settings(None, None) == {}


def test_certificates_are_paths_and_the_identity_holds_the_key_too():
    access = Access("SSL", authority_pem=b"a", identity_pem=b"i")
    assert access.librdkafka_settings("/a.pem", "/i.pem") == {
        "security.protocol": "SSL",
        "ssl.ca.location": "/a.pem",
        "ssl.certificate.location": "/i.pem",
        "ssl.key.location": "/i.pem",
    }


def test_a_password_is_among_them():
    access = Access("SASL_SSL", mechanism="PLAIN", user="ada", password=Secret("hush", "HUSH"))
    settings = access.librdkafka_settings(None, None)
    assert (settings["sasl.mechanism"], settings["sasl.username"], settings["sasl.password"]) == (
        "PLAIN",
        "ada",
        "hush",
    )
