"""What changed between two runs, campaigns or sets of findings: `sides` are compared, and `verdicts` given."""
