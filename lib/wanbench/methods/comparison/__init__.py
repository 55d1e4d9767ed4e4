"""Compare two runs, campaigns or sets of findings: `sides` reads what is compared, `verdicts` decides what changed."""
