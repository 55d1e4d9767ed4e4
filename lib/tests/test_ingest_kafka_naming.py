"""Scripts and documents that name Kafka's perf tools are not their output; what a tool printed without figures is."""

from pathlib import Path

import pytest
from reading import tools

from wanbench.errors import RawDataError
from wanbench.read import ingest
from wanbench.read.ingest import kafka_load

PACKAGE = Path(kafka_load.__file__).parents[3]
HEADER = "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
WARN = "[2026-03-01 12:00:00,000] WARN [Producer clientId=perf-producer-client] Got error produce response (Sender)"
DIED = "org.apache.kafka.common.errors.TimeoutException: Expiring 8 record(s) for t-0"
NAMING = {
    "one command": "#!/bin/sh\nkafka-producer-perf-test.sh --topic t --num-records 9 --throughput -1\n",
    "both tools": "set -eu\nbin/kafka-producer-perf-test --topic t\nbin/kafka-consumer-perf-test --topic t\n",
    "echo of an error": 'kafka-producer-perf-test --topic t || echo "ERROR: kafka-producer-perf-test failed"\nexit 1\n',
    "usage in a script": "cat <<END\nusage: producer-perf-test TOPIC\nEND\nexit 2\n",
    "compose": "services:\n  load:\n    command: kafka-run-class kafka.tools.EndToEndLatency b:9092 t 10 1 100\n",
    "python": 'import subprocess\nsubprocess.run(["kafka-consumer-perf-test", "--topic", topic])\n',
    "awk of a header": f"kafka-consumer-perf-test --topic t > out\ngrep -v '{HEADER}' out\n",
    "prose": "# Load\n\nWarning: kafka-producer-perf-test needs a topic.\nError handling is up to you.\n",
    "a quoted line": f"# Trouble\n\nkafka-producer-perf-test may say:\n\n{WARN}\n\nThen look at the brokers.\n",
    "a quoted header": f"# Columns\n\nThe tool kafka-consumer-perf-test prints\n\n{HEADER}\n\nand then figures.\n",
    "numbers in columns": "1\t2.5\n2\t3.5\n3\t4.5\n",
}


@pytest.mark.parametrize("text", NAMING.values(), ids=NAMING)
def test_what_only_names_the_tools_is_refused(text):
    with pytest.raises(RawDataError, match="expected figures of kafka-producer-perf-test"):
        kafka_load.read(text.encode())
    assert tools(text.encode()) == ()


def test_own_sources_are_refused():
    names = ("measure/experiments/kafka_load.py", "read/ingest/kafka_load/lines.py", "methods/tails/distribution.py")
    sources = [PACKAGE / name for name in names]
    assert all(path.is_file() for path in sources)
    found = ingest.read_files(sources, "kafka_load")
    assert len(found["unread"]) == len(sources)
