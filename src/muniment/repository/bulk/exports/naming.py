"""Which users and groups does an export name, and which keys do they have in this installation?

Names alone would give a former bearer's objects to whoever has the name now: so an export says which bearer is meant,
and gives identities. An identity known here keeps its key. Of others, a former bearer gets a new key, and the bearer at
the export counts as who has the name here now.
"""

import re
from collections.abc import Collection, Iterable, Iterator

from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from muniment.repository.bulk.exports.records import BearerLine, FormerBearer, NamedBearer
from muniment.repository.refusals import BadExport
from muniment.repository.store.permissions import name_keys
from muniment.repository.store.permissions.name_keys import Bearing, Identify
from muniment.repository.store.permissions.principals import OWNER, WORLD

_KEY = re.compile(r"id:[0-9a-f]{40}")
_ACCESSORS = (OWNER, WORLD, "")


class BearerNames:
    """Turns keys into names, and gathers all users and groups that the export names."""

    def __init__(self) -> None:
        self._named: dict[str, NamedBearer] = {}
        self._lines = dict[tuple[str, int], BearerLine]()

    def look_up(self, cx: Connection, keys: Iterable[str | None]) -> None:
        new = {key for key in keys if key is not None and key not in self._named and key not in _ACCESSORS}
        if not new:
            return
        for key, (name, identity, former) in name_keys.bearings(cx, new).items():
            self._named[key] = FormerBearer(name, former) if former else name
            self._lines[name, former] = BearerLine(name, former, identity)
        self._named |= {key: FormerBearer(key, 0) for key in new if key not in self._named}

    def of(self, key: str) -> NamedBearer:
        return key if key in _ACCESSORS else self._named[key]

    def unlike(self, shown_name: str, key: str) -> NamedBearer | None:
        """Return None if the name equals the folded ``shown_name``."""
        named = self.of(key)
        return None if named == fold_name(shown_name) else named

    def lines(self) -> Iterator[BearerLine]:
        return (self._lines[each] for each in sorted(self._lines))


class BearerKeys:
    """Turns names into keys of this installation; ``lines`` are those of ``bearers.jsonl``."""

    def __init__(self, lines: Iterable[BearerLine], identify: Identify) -> None:
        self._lines = {(line.name, line.former): line for line in lines}
        self._identify = identify
        self._keys: dict[NamedBearer, str] = {each: each for each in _ACCESSORS}

    def look_up(self, cx: Connection, named: Iterable[NamedBearer], now: Instant) -> None:
        """Raises BadExport for no folded name, and for a former bearer whom no line describes."""
        new = sorted({each for each in named if each not in self._keys}, key=str)
        if not new:
            return
        lines = {each: self._line(each) for each in new}
        known = name_keys.bound_keys(cx, {line.identity for line in lines.values() if line.identity})
        keys = {each: known[line.identity] for each, line in lines.items() if line.identity in known}
        present = [line.name for each, line in lines.items() if each not in keys and isinstance(each, str)]
        by_name = name_keys.of_names(cx, present, self._identify, now) if present else {}
        for each, line in lines.items():
            if each not in keys:
                keys[each] = by_name[line.name] if isinstance(each, str) else self._former(cx, line, now)
        self._keys |= keys

    def forget(self) -> None:
        """Forget all keys, which may not have been committed."""
        self._keys = {each: each for each in _ACCESSORS}

    def of(self, named: NamedBearer | None, shown_name: str = "") -> str:
        """Without ``named``, the name is ``shown_name``, folded."""
        return self._keys[fold_name(shown_name) if named is None else named]

    def _line(self, named: NamedBearer) -> BearerLine:
        if isinstance(named, str):
            name = named
            if fold_name(name) != name or "@" not in name:
                raise BadExport(f"{name[:100]!r} is no folded name of a user or group.")
            return self._lines.get((name, 0)) or BearerLine(name)
        if named.former == 0 and _KEY.fullmatch(named.name):
            return BearerLine(named.name)
        line = self._lines.get((named.name, named.former))
        if line is None or not line.identity or not named.former:
            raise BadExport(
                f"No line of bearers.jsonl describes the former bearer {named.former} of {named.name[:100]!r}."
            )
        return line

    def _former(self, cx: Connection, line: BearerLine, now: Instant) -> str:
        if not line.former:
            return line.name  # a key whose name was not known where the export was made
        return name_keys.add_former(cx, Bearing(line.name, line.identity, line.former), now)


def meant(named: NamedBearer | None, shown_name: str) -> NamedBearer:
    return fold_name(shown_name) if named is None else named


def unknown(names: Collection[str], identify: Identify) -> list[str]:
    borne = identify(names)
    return sorted(name for name in names if not borne.get(name))
