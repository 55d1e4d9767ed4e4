"""A workload and a driver of the OpenMessaging Benchmark, made up, as objects and as text."""

from wanbench.pages.tail_latency.design.openmessaging_files import Workload

WORKLOAD = Workload(
    topics=2,
    partitionsPerTopic=3,
    messageSize=1024,
    subscriptionsPerTopic=4,
    producersPerTopic=5,
    consumerPerSubscription=3,
    producerRate=600,
    testDurationMinutes=2,
    warmupDurationMinutes=1,
    useRandomizedPayloads=True,
    randomBytesRatio=1.0,
    randomizedPayloadPoolSize=10,
)
TEXT = """
name: 1 topic / 16 partitions   # made up

topics: 1
partitionsPerTopic: 16
messageSize: 1_024
keyDistributor: "NO_KEY"
payloadFile: payload/a.data
subscriptionsPerTopic: 1
producersPerTopic: 1
consumerPerSubscription: 1
producerRate: 50000
consumerBacklogSizeGB: 0
testDurationMinutes: 15
"""
DRIVER = """
name: Kafka
driverClass: io.openmessaging.benchmark.driver.kafka.KafkaBenchmarkDriver
replicationFactor: 3
reset: true
topicConfig: |
  min.insync.replicas=2
commonConfig: |
  bootstrap.servers=localhost:9092
  request.timeout.ms=120000
producerConfig: |
  acks=1
  linger.ms=1
  batch.size=131072
consumerConfig: |
  auto.offset.reset=earliest
  enable.auto.commit=false
"""


def file(tmp_path, text):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    return path
