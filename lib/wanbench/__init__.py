"""wanbench: repeat, audit and extend claims about the network between clouds and about Kafka across it."""

__version__ = "0.1.0"
