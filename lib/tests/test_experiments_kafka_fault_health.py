"""What the lines of clients and watchers say about an episode: what it waits for, and what is unread."""

from types import SimpleNamespace

from wanbench.measure.experiments.kafka_fault_health import Health


def test_everything_is_read_only_if_the_members_have_it_between_them():
    printed = {0: [{"positions": {}}], 1: [{"positions": {"0": 5, "1": 4}}]}
    members = [SimpleNamespace(role="consumer", number=n, new_lines=lambda n=n: printed[n]) for n in printed]
    health, ends = Health(members, [[1], [2], [3]]), {"0": 5, "1": 5, "2": 0}
    assert health.unread(ends) == [0, 1]
    health.look()
    assert health.unread(ends) == [1]
    printed[0] = [{"positions": {"1": 5}}]
    health.look()
    assert health.unread(ends) == []


class Saying:
    """A program of an episode that has printed some lines."""

    def __init__(self, role, number, *lines):
        self.role, self.number, self._lines = role, number, [*lines]

    def __str__(self):
        return f"{self.role} {self.number} on eu/0"

    def says(self, *lines):
        self._lines += lines

    def new_lines(self):
        lines, self._lines = self._lines, []
        return lines

    def unix_s(self, at):
        return float(at)


def test_what_an_episode_still_waits_for_is_named():
    seen = {"at_s": 1.0, "topics": [{"partitions": [{"isr": [1], "leader": 1}, {"isr": [2, 1], "leader": 2}]}]}
    programs = [Saying("producer", 0), Saying("consumer", 0, ["assigned", 1, [0]]), Saying("watch", 0, seen)]
    health = Health(programs, [[1, 2], [2, 1]])
    health.look()
    assert health.awaited() == [
        "producer 0 on eu/0 has not begun to send",
        "not each of 2 partitions is assigned to one consumer: consumer 0 on eu/0 [0]",
        "not every watcher sees all replicas in sync: watch 0 on eu/0 [[1], [2, 1]]",
    ]
    in_sync = {"at_s": 2.0, "topics": [{"partitions": [{"isr": [1, 2], "leader": 1}, {"isr": [2, 1], "leader": 2}]}]}
    for program, line in zip(programs, [{"start_ns": 1}, ["assigned", 2, [1]], in_sync], strict=True):
        program.says(line)
    health.look()
    assert health.awaited() == []
