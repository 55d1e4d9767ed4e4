"""Files of tools that are not read, or read under another name, are named together with what to do."""

import pytest

from wanbench.errors import RawDataError
from wanbench.read import importers, ingest
from wanbench.read.ingest import route

OUTPUTS = {
    "iperf 2:": "----\nClient connecting to 10.9.0.2, UDP port 5001\n[  3] local 10.9.0.1 port 40000 connected with\n",
    "iperf 2 (-y C):": "20250302081510,10.9.0.1,40000,10.9.0.2,5001,3,0.0-5.0,12582912,20132659\n",
    "nuttcp:": "   56.2500 MB /   5.01 sec =   94.1843 Mbps 2 %TX 4 %RX 1 retrans 22.10 msRTT\n",
    "sockperf:": "sockperf: == version #3.7 == \nsockperf: [Valid Duration] RunTime=1.0 sec; SentMessages=90\n",
    "qperf:": "udp_lat:\n    latency  =  11.2 ms\n",
    "ethr:": "[ ID ]   Protocol    Interval      Bits/s\n[  7 ]     TCP      000-001 sec    12.10M\n",
    "NDT (ndt7-client):": '{"ServerFQDN":"a.example","Download":{"Throughput":{"Value":10.5,"Unit":"Mbit/s"}}}\n',
    "pScheduler:": '{"succeeded": true, "schema": 1, "packets-sent": 50, "histogram-latency": {"11.05": 50}}\n',
    "pScheduler: ": '{"succeeded":true,"intervals":[{"streams":[{"start":0,"throughput-bits":1.0e7}]}]}\n',
    "tcping:": "PING a.example (10.9.0.2) on port 80.\nReply from a.example (10.9.0.2) on port 80: time=9 ms\n",
    "hping:": "HPING 10.9.0.2 (eth1 10.9.0.2): S set, 40 headers + 0 data bytes\nlen=44 ip=10.9.0.2 rtt=9.1 ms\n",
    "fping -J:": '{"resp":{"host":"10.9.0.2","seq":0,"size":64,"rtt":9.12}}\n',
    "traceroute:": "traceroute to 10.9.0.2 (10.9.0.2), 30 hops max, 60 byte packets\n 1  10.9.0.9  0.4 ms\n",
    "netperf -P 0:": " 87380  16384  16384    5.01      80.20\n",
    "sar:": "Linux 6.8.0 (h2) \t03/02/2025 \t_x86_64_\t(4 CPU)\n\n08:15:01        IFACE   rxpck/s\n",
    "sadf -d:": "# hostname;interval;timestamp;IFACE;rxpck/s\nh2;1;2025-03-02 08:15:02 UTC;eth1;812.00\n",
    "rdkafka_performance:": "% Sending messages of size 200 bytes\n% 1000 messages produced (200000 bytes)\n",
    "the bench of franz-go:": "20.10 MiB/s; 210.50k records/s\n21.00 MiB/s; 220.20k records/s\n",
    "kafka-python's producer_performance:": "9000 records sent, 1800.2 records/sec (0.172 MB/sec),\t4.2 ms avg\n",
    "xk6-kafka:": "     kafka_writer_message_count...: 9000  300.1/s\n",
    "Prometheus' query API:": '{"status":"success","data":{"resultType":"matrix","result":[]}}\n',
    "cloudping:": '{"metadata": {"percentile": "p_50"}, "data": {"us-east-1": {"eu-west-1": 68.9}}}\n',
    "a table of pairs:": "source,destination,p50_ms\nus-east-1,eu-west-1,68.9\n",
    "iperf3 inside other JSON:": '[{"at":"20250302","data":{"results":{"start":{"test_start":{}},"end":{}}}}]\n',
}
HERE = {
    "kafka_load": "500 records sent, 99.9 records/sec (0.10 MB/sec), 2.5 ms avg latency, 9.0 ms max latency.\n",
    "ping": "PING ::1(::1) 56 data bytes\n64 bytes from ::1: icmp_seq=1 ttl=64 time=0.021 ms\n",
    "netperf": "MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 10.9.0.2 () port 0 AF_INET : demo\n",
    "openmessaging": '{"workload": "w", "publishRate": [1.0]}\n',
    "host_metrics": '{"sysstat": {"hosts": []}}\n',
    "flent": '{"metadata": {"SERIES_META": {}}}\n',
    "iperf3": '{"start": {"version": "iperf 3.12", "test_start": {"protocol": "TCP"}}, "end": {}}\n',
}


def expected(path, tool):
    read = ingest.read_files([path], tool)["unread"]
    assert len(read) == 1
    return read.expected[0]


@pytest.mark.parametrize("tool", OUTPUTS)
def test_the_message_names_the_tool_and_what_to_do(tmp_path, tool):
    path = tmp_path / "a.txt"
    path.write_text(OUTPUTS[tool])
    for reader in ("ping", "iperf3", "netperf"):
        message = expected(path, reader)
        assert f"(this looks like {tool.strip()} " in message and message.endswith(")")
        assert "read" in message.partition(tool.strip())[2] or "prints test and units" in message
    path.write_bytes(("\ufeff" + OUTPUTS[tool]).encode("utf-16-le"))
    assert f"(this looks like {tool.strip()} " in expected(path, "netperf")


@pytest.mark.parametrize("tool", HERE)
def test_a_file_given_to_another_reader_is_sent_to_its_own(tmp_path, tool):
    path = tmp_path / "a.txt"
    path.write_text(HERE[tool])
    assert f"read_files(paths, '{tool}')" in expected(path, "cloudwatch")
    path.write_text(HERE[tool].replace("0.0.0.0 (", "{").replace("records/sec", "?"))
    if tool not in ("ping", "kafka_load", "openmessaging"):
        assert "this looks like" not in expected(path, tool), "it is the right reader"


def test_importers_name_the_tool_too(tmp_path):
    path = tmp_path / "aws:eu-west-1_aws:us-east-1.txt"
    path.write_text(OUTPUTS["sockperf:"])
    with pytest.raises(RawDataError, match=r"this looks like sockperf: .* half a round trip"):
        importers.read_folder(tmp_path, "{from}_{to}.txt")
    with pytest.raises(RawDataError, match="this looks like sockperf: "):
        importers.read_matrix(path, statistic="mean")


def test_an_unknown_or_absent_file_is_named_nothing(tmp_path):
    path = tmp_path / "a.txt"
    for text in ("hello\n", "", "\0\1"):
        path.write_text(text)
        assert "this looks like" not in expected(path, "ping")
    assert "this looks like" not in expected(tmp_path / "absent", "ping")


def test_the_csv_of_iperf_2_is_read_as_advised(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(OUTPUTS["iperf 2 (-y C):"])
    header = "time, from, from_port, to, to_port, id, interval, bytes, rate"
    assert header in expected(path, "iperf3")
    mapping = {
        "header": header.split(", "),
        "columns": {"from": "from", "to": "to", "throughput": "rate", "bytes": "bytes", "time": "time"},
        "units": {"throughput": "bit/s"},
        "constants": {"protocol": "TCP"},
        "time_format": "%Y%m%d%H%M%S",
        "time_zone": "UTC",
        "regions": {"10.9.0.1": "aws:eu-west-1", "10.9.0.2": "aws:us-east-1"},
    }
    [transfer] = importers.read_table(path, mapping)["transfers"].to_dict("records")
    assert (transfer["throughput_bps"], transfer["bytes"]) == (20132659, 12582912)


def test_a_route_with_a_hop_that_has_no_host_is_refused(tmp_path):
    path = tmp_path / "route.json"
    path.write_text('{"report": {"mtr": {}, "hubs": [{"host": "192.0.2.1"}, {"count": 2}]}}')
    with pytest.raises(RawDataError, match="each with a host"):
        route.read(path)
