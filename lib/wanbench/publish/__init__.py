"""
Turn notebooks into pages: check parameters, run the notebooks, and write HTML with figures that work offline.

The command line calls this package. A notebook imports only `provenance` from it, to list the runs that it used.
"""
