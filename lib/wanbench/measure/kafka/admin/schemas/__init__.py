"""Requests missing in kafka-python, in the schema notation of Kafka's protocol."""
