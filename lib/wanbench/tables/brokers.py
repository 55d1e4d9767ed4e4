"""Tables of what was done to brokers on purpose, and of what a detector noticed of them."""

from __future__ import annotations

from .context import CONTEXT
from .declare import column, declare

declare(
    "broker_actions",
    "one action on a broker, asked for beside a load",
    *CONTEXT,
    column("number", "count", "", "its number in the order of asking, from 1", minimum=1),
    column("node_id", "count?", "", "the broker; null: all"),
    column(
        "kind",
        "text",
        "",
        "what was done",
        allowed=("restart", "kill", "slow", "link", "demote", "restore", "skew", "rebalance"),
    ),
    column("rolling", "flag", "", "every broker had its turn"),
    column("for_s", "number?", "s", "how long it was to last; null: its kind does not last"),
    column(
        "detail",
        "text",
        "",
        "JSON: of slow, share and by which way; of link, region and changes; of demote, restore, skew and rebalance, "
        "partitions ordered, led by the first, missing, and unmovable for want of a second replica",
    ),
    column("asked_at_s", "number", "Unix s", "its time by the schedule"),
    column("began_at_s", "number?", "Unix s", "the command was given; null: never"),
    column(
        "in_force_at_s",
        "number?",
        "Unix s",
        "the broker had ended, or was slow, or its links were changed; null: of another kind, or never",
    ),
    column(
        "done_at_s",
        "number?",
        "Unix s",
        "the broker answered again, was at full speed again, its links as before, or leaders moved; null: never",
    ),
    column(
        "healthy_at_s",
        "number?",
        "Unix s",
        "after that all brokers were there and no partition of any topic under-replicated; null: not seen",
    ),
    column("leaders_moved", "count?", "partitions", "led by another broker afterwards than before"),
    column("error", "text?", "", "why it was not done, or not healthy in time; null: nothing failed"),
)
