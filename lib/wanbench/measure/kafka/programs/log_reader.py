"""
Read a topic from beginning to end, to compare with acknowledged and received records.

Runs on a host with confluent-kafka; started by `wanbench.measure.experiments.kafka_fault`. It prints lines as fault_record.py
says: an object with `ends`, the offset after the last record of each partition, then

    [partition, offset, producer, sequence, whether it is damaged]    producer, sequence null if so

and at the end an object with `ended`, and `complete`, whether every partition was read up to its end; its status is 0
if so. The end is the high watermark: the caller first waits until that is the log's end. A partition with unknown end
is not in `ends`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import uuid

from .fault_record import Lines, client_settings, read_record

REQUEST_S = 15.0
BATCH = 500


def read_arguments(given=None):
    """The settings, from the command line."""
    parser = argparse.ArgumentParser(description="Reads a topic from beginning to end.")
    parser.add_argument("--client", required=True, help="JSON file of librdkafka's settings")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--timeout-s", type=float, required=True)
    return parser.parse_args(given)


def main() -> int:
    """Read the whole topic."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

    arguments = read_arguments()
    end_s = time.monotonic() + arguments.timeout_s
    lines = Lines("log reader")
    settings = client_settings(arguments.client, "{}", "consumer")
    consumer = Consumer(settings | {"group.id": f"log-{uuid.uuid4().hex}", "enable.auto.commit": False})
    ends = {}
    for number in range(arguments.partitions):
        while number not in ends and time.monotonic() < end_s:
            try:
                partition = TopicPartition(arguments.topic, number)
                ends[number] = consumer.get_watermark_offsets(partition, timeout=REQUEST_S)[1]
            except KafkaException as error:
                print(f"the end of partition {number} is not known: {error}", file=sys.stderr)
    lines.say({"ends": ends})
    consumer.assign([TopicPartition(arguments.topic, number, OFFSET_BEGINNING) for number in ends])
    left = {number: end for number, end in ends.items() if end}
    while left and time.monotonic() < end_s:
        for message in consumer.consume(BATCH, 0.1):
            number, offset = message.partition(), message.offset()
            if message.error() is not None or offset is None or offset >= ends[number]:
                continue
            if (found := read_record(message.value())) is not None:
                producer, sequence, is_damaged = found
                lines.say((number, offset, producer, sequence, is_damaged))
            if offset + 1 >= ends[number]:
                left.pop(number, None)
        lines.tick()
    complete = not left and len(ends) == arguments.partitions
    if left:
        print(f"partitions {', '.join(map(str, left))} are not read up to their ends", file=sys.stderr)
    lines.say({"ended": lines.now(), "complete": complete})
    lines.flush()
    sys.stderr.flush()
    os._exit(0 if complete else 1)


if __name__ == "__main__":
    sys.exit(main())
