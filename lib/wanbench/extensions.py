"""Extension points: objects that other installed packages add to wanbench through entry points."""

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any


class extensions(Mapping[str, Any]):
    """
    Map names to objects: wanbench's own, and those that installed packages add. Each is imported when first used.

    Parameters
    ----------
    group : str
        Group of the entry points, such as "wanbench.labs".
    builtin : mapping
        wanbench's own objects by name, or "module:object" to import them from. Packages cannot replace these.

    Examples
    --------
    >>> formats = extensions("wanbench.no-such-group", {"json": "json:loads", "bytes": len})
    >>> sorted(formats), formats["json"]("[1, 2]"), formats["bytes"](b"ab")
    (['bytes', 'json'], [1, 2], 2)
    """

    def __init__(self, group: str, builtin: Mapping[str, Any]):
        self._objects = {name: at for name, at in builtin.items() if not isinstance(at, str)}
        own = {name: EntryPoint(name, at, group) if isinstance(at, str) else at for name, at in builtin.items()}
        self._entries = {entry.name: entry for entry in entry_points(group=group)} | own

    def __getitem__(self, name: str) -> Any:
        return self._objects[name] if name in self._objects else self._entries[name].load()

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
