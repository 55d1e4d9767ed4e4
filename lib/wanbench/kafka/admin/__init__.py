"""
Administrative questions to a cluster: `ask` puts them on a host, `program` answers them there.

It imports nothing: the program must start quickly.
"""
