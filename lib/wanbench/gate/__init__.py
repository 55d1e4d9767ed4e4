"""The plausibility gate: doubts about the values of tables, each with its rule, figure and likely cause."""
