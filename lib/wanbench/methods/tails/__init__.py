"""
Tails of latencies: quantiles with intervals, two tails compared, verdicts, knees, and rates within an objective.

`of_values`, `of_open_loop`, `of_benchmark` make a `Tail`; `TailTrials(name, tails, blocks)` holds those of repeated
trials. Tables of stepped trials have one row per trial: `block`,
`rate_records_per_s`, `tail` (a `Tail`).

    quantiles(tail, at) -> Quantiles
    verdict(a: TailTrials, b: TailTrials, at, margin=0.1) -> Verdicts
    verdicts({label: (a, b)}, at, margin=0.1) -> Verdicts      a whole table, whose verdicts hold together
    by_step(trials, by, name) -> {step: TailTrials}
    knee(trials, q) -> Knee
    best_rate(trials, objective_ms, q) -> BestRate             from stepped trials
    searched_rate(steps, objective_ms, q) -> BestRate          from searches
    per_second(histograms) -> DataFrame                        median, p99 and maximum of each second
    causes(seconds, pauses) -> Causes                          how many slow seconds have a pause of a broker in them
"""

__all__ = []
