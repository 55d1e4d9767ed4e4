"""
Who may use a cluster: listeners and certificates (`kinds`), what clients need (`access`), and secrets.

It imports nothing: programs on hosts must start quickly.
"""
