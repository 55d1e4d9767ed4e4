"""
Administrative requests to a cluster: `ask` sends them from a host, `program` runs them there.

It imports nothing: the program must start quickly.
"""
