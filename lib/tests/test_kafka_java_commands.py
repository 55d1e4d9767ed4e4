"""Kafka's jars on hosts that do not see this machine's files."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from kafka_jars import set_version
from scripted_lab import Reply, ScriptedHost, ScriptedLab

from wanbench.errors import ClusterError
from wanbench.measure.kafka.java_commands import Jars, package_file


def test_hosts_get_their_jars_side_by_side_and_once(monkeypatch, tmp_path):
    monkeypatch.setenv("WANBENCH_KAFKA", str(tmp_path))
    (tmp_path / "kafka_2.13-4.0.0.jar").touch()
    both, put = threading.Barrier(2), []

    class Far(ScriptedHost):
        scratch = "/scratch"

        def put(self, source, target):
            both.wait(20)  # nobody comes where hosts wait for each other
            put.append((self.region, target))

    lab = ScriptedLab(["a", "b"], lambda host, command: Reply(returncode=int(command[0] == "test")))
    jars, hosts = Jars(), [Far(lab, region, 1) for region in "ab"]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(jars.on, hosts * 2)) == ["/scratch/jars-4.0.0"] * 4
    assert sorted(put) == [
        (region, f"/scratch/{name}")
        for region in "ab"
        for name in ("jars-4.0.0/kafka_2.13-4.0.0.jar", "tools_log4j2.properties")
    ]


def test_a_jar_that_is_not_the_pinned_one_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("WANBENCH_KAFKA", str(tmp_path))
    (tmp_path / "kafka_2.13-4.0.0.jar").touch()  # another version than ours is the user's choice
    Jars()
    (tmp_path / "activation-1.1.1.jar").write_bytes(b"half a file")
    with pytest.raises(ClusterError, match=rf"activation-1\.1\.1\.jar in {tmp_path} differs .* `make setup`"):
        Jars()


def test_another_version_is_pinned_with_what_maven_fetches(tmp_path):
    for name in ("pom.xml", "jars.sha256"):
        (tmp_path / name).write_bytes(package_file(name).read_bytes())
    before = (tmp_path / "pom.xml").read_text()

    def fetch(pom, folder):
        (folder / "kafka_2.13-9.8.7.jar").write_bytes(b"jar")
        assert "<kafka.version>9.8.7</kafka.version>" in pom.read_text()

    for wrong in ("9.8.6", "latest"):
        with pytest.raises(ClusterError, match=wrong):
            set_version(wrong, tmp_path, lambda pom, folder: None)
        assert (tmp_path / "pom.xml").read_text() == before
    assert set_version("9.8.7", tmp_path, fetch) == 1
    assert (tmp_path / "pom.xml").read_text() == before.replace("4.3.1", "9.8.7")
    [line] = (tmp_path / "jars.sha256").read_text().splitlines()
    assert line.endswith("  kafka_2.13-9.8.7.jar") and len(line.split()[0]) == 64
