"""
Read a topic from beginning to end, so that its records can be compared with those acknowledged and received.

Needs confluent-kafka on the host; started by `wanbench.measure.experiments.kafka_fault`. It prints `Lines`: an object
with `ends`, the offset after the last record of each partition, then

    [partition, offset, producer, sequence, is damaged]    producer and sequence are null if damaged

and at the end an object with `ended`, and `complete`, whether every partition was read to its end; the exit status is 0
if so. A partition ends at its high watermark, so the caller first waits until the watermark has reached the end of the
log. A partition whose end is unknown is missing from `ends`.
"""

import sys
import time
import uuid

from .clients import Lines, client_settings, parse_record, read_arguments

REQUEST_S = 15.0
BATCH = 500


def main() -> int:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

    arguments = read_arguments("Reads a topic from beginning to end.", "client topic partitions timeout-s")
    end_s = time.monotonic() + arguments.timeout_s
    lines = Lines("log reader")
    settings = client_settings(arguments.client, {}, "consumer")
    consumer = Consumer(settings | {"group.id": f"log-{uuid.uuid4().hex}", "enable.auto.commit": False})
    ends = {}
    for number in range(arguments.partitions):
        while number not in ends and time.monotonic() < end_s:
            try:
                partition = TopicPartition(arguments.topic, number)
                ends[number] = consumer.get_watermark_offsets(partition, timeout=REQUEST_S)[1]
            except KafkaException as error:
                print(f"the end of partition {number} is not known: {error}", file=sys.stderr)
    lines.write({"ends": ends})
    consumer.assign([TopicPartition(arguments.topic, number, OFFSET_BEGINNING) for number in ends])
    left = {number: end for number, end in ends.items() if end}
    while left and time.monotonic() < end_s:
        for message in consumer.consume(BATCH, 0.1):
            number, offset = message.partition(), message.offset()
            if message.error() is not None or offset is None or offset >= ends[number]:
                continue
            if (content := parse_record(message.value())) is not None:
                producer, sequence, is_damaged = content
                lines.write((number, offset, producer, sequence, is_damaged))
            if offset + 1 >= ends[number]:
                left.pop(number, None)
        lines.tick()
    complete = not left and len(ends) == arguments.partitions
    if left:
        print(f"partitions {', '.join(map(str, left))} are not read up to their ends", file=sys.stderr)
    sys.stderr.flush()
    lines.end(0 if complete else 1, complete=complete)


if __name__ == "__main__":
    sys.exit(main())
