"""Requests that kafka-python has no schema of, in Kafka's own notation of its protocol."""
