"""Who changed what: an event for each decision that changes something, and the history of rights.

Both are written in the transaction of the change. Each half has its own two tables, because one PostgreSQL database may
hold both halves. Who acts is said once around a decision, not by a parameter of each (docs/decisions/0112).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import BigId, PreparedStatement, required, required_columns
from muniment.ground.clock import Instant
from muniment.ground.naming import make_storable
from muniment.ground.refusals import Refusal

P = ParamSpec("P")
T = TypeVar("T")

_LONGEST_VALUE, _MOST_VALUES = 500, 1000


class NobodyActs(RuntimeError):
    """A decision was to be recorded outside of ``acting``: a mistake of whoever called it."""


class Actor(NamedTuple):
    """``who`` as they are called on the wire, ``place`` whence they ask, ``via`` who acts in their name."""

    who: str
    place: str
    who_uuid: str | None = None
    client: str | None = None
    via: str = ""


SYSTEM = Actor("system", "system")
"""What nobody asked for."""


class Target(NamedTuple):
    """What is changed: under its neutral name, with its identity."""

    kind: str
    name: str
    uuid: str | None = None


class Right(NamedTuple):
    """``subject`` and ``object`` are identities, which no other bearer of a name ever has."""

    kind: str
    subject: str
    object: str
    before: str
    after: str


Rights: TypeAlias = Sequence["Right | sa.Select[Any]"]
"""A query (``select_rights``) is run at once: before the statement that ends what it finds."""

Values: TypeAlias = Mapping[str, object]


def select_rights(*columns: str | sa.ColumnElement[str]) -> sa.Select[Any]:
    """Make a query for rights; a string is a value, not a column."""
    elements: list[sa.ColumnElement[str]] = [sa.literal(each) if isinstance(each, str) else each for each in columns]
    labels: list[sa.Label[Any]] = [each.label(name) for each, name in zip(elements, Right._fields, strict=True)]
    return sa.select(*labels)


class _Acting(NamedTuple):
    actor: Callable[[], Actor]
    clock: Callable[[], Instant]


_acting: ContextVar[_Acting | None] = ContextVar("muniment.audit.acting", default=None)


@contextmanager
def acting(actor: Actor | Callable[[], Actor], clock: Callable[[], Instant]) -> Iterator[None]:
    """What the block decides, ``actor`` decides. A function is called for each event."""
    ask: Callable[[], Actor] = (lambda: actor) if isinstance(actor, Actor) else actor
    token = _acting.set(_Acting(ask, clock))
    try:
        yield
    finally:
        _acting.reset(token)


def unnamed(decision: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Take a decision that itself must say who acts, whoever acts around it."""
    token = _acting.set(None)
    try:
        return decision(*args, **kwargs)
    finally:
        _acting.reset(token)


def event_columns(client: sa.types.TypeEngine[str] | None = None) -> tuple[sa.Column[Any], ...]:
    """``before`` and ``after`` are JSON objects of what has changed, without secrets. Ids are in the order of time.
    ``client`` is the type of a client's name.
    """
    return (
        sa.Column("id", BigId, primary_key=True),
        required("at", sa.BigInteger),
        required("who", sa.String(255)),
        sa.Column("who_uuid", sa.String(36)),
        sa.Column("client", client or sa.String(120)),
        required("place", sa.String(60)),
        required("via", sa.String(255)),
        required("action", sa.String(40)),
        required("target_kind", sa.String(20)),
        required("target", sa.String(400)),
        sa.Column("target_uuid", sa.String(36)),
        *required_columns(sa.Text, "before", "after"),
        required("result", sa.String(20)),
    )


def history_columns() -> tuple[sa.Column[Any], ...]:
    """``event_id`` is that of the event that changed the right; the event may have been purged."""
    return (
        sa.Column("id", BigId, primary_key=True),
        required("at", sa.BigInteger),
        required("event_id", sa.BigInteger),
        required("kind", sa.String(20)),
        required("subject", sa.String(400), index=True),
        required("object", sa.String(400), index=True),
        *required_columns(sa.Text, "before", "after"),
    )


class Decision:
    """One that consists of several, and leaves one event, which ``is_stored`` once that says everything."""

    def __init__(self, action: str, target: Target | None) -> None:
        self.action, self.target = action, target
        self.scope: _Acting | None = None
        self.at: Instant = 0
        self.event_id: int | None = None
        self.is_stored = True
        self.before: dict[str, object] = {}
        self.after: dict[str, object] = {}

    @property
    def has_written(self) -> bool:
        """Whether anything has been recorded."""
        return self.scope is not None

    def add(self, scope: _Acting, now: Instant, action: str, target: Target, before: Values, after: Values) -> None:
        if self.scope is None:
            self.scope, self.at = scope, now
        if self.target is None:
            self.action, self.target = action, target
        elif target != self.target:
            label = f"{target.kind} {target.name}"
            before, after = {label: before} if before else {}, {label: after} if after else {}
        _merge(self.before, before, newer=False)
        _merge(self.after, after, newer=True)
        self.is_stored = False


class Trail:
    """Writes the two tables of one half."""

    def __init__(self, events: sa.Table, history: sa.Table) -> None:
        self._events, self._history = events, history
        self._deciding: ContextVar[Decision | None] = ContextVar(f"muniment.{events.name}", default=None)
        self._add_whole = PreparedStatement(sa.insert(events).values(_parameters(events)))
        self._add_event = PreparedStatement(sa.insert(events).values(_parameters(events)).returning(events.c.id))
        self._add_right = PreparedStatement(sa.insert(history).values(_parameters(history)))
        texts = {name: sa.bindparam(f"new_{name}", type_=sa.Text) for name in ("before", "after")}
        of_event = events.c.id == sa.bindparam("event", type_=sa.BigInteger)
        self._complete = PreparedStatement(sa.update(events).where(of_event).values(texts))
        event = sa.insert(events).values(_parameters(events)).returning(events.c.id).cte("event")
        line = _parameters(history, "line_") | {"event_id": event.c.id}
        add_line = sa.insert(history).from_select([*line], sa.select(*line.values())).cte("line")
        self._add_with_right = PreparedStatement(sa.select(event.c.id).add_cte(add_line))
        """PostgreSQL's alone: elsewhere an insert is no part of another statement."""

    def record(
        self,
        cx: Connection,
        action: str,
        target: Target,
        before: Values | None = None,
        after: Values | None = None,
        *,
        rights: Rights = (),
    ) -> None:
        """Write an event, and what it changes of rights, before what a query of ``rights`` reads is gone.

        ``before`` and ``after`` hold what has changed: never a secret, but ``set`` or ``none`` instead. Within
        ``decision``, its event gets this, too. Raises NobodyActs.
        """
        scope = _acting.get()
        if scope is None:
            raise NobodyActs(f"Nobody was named who decides this: {action}.")
        now, whole = scope.clock(), self._deciding.get()
        is_part = whole is not None
        whole = whole or Decision(action, target)
        whole.add(scope, now, action, target, before or {}, after or {})
        if is_part and not rights:
            return
        lines = [{"at": now, **right._asdict()} for right in rights if isinstance(right, Right)]
        if whole.event_id is None:
            joint = cx.dialect.name == "postgresql" and len(lines) == 1
            self._store(cx, scope, whole, lines.pop() if joint else None)
        line_of = {"at": now, "event_id": whole.event_id}
        if lines:
            self._add_right.run_for_each(cx, [line_of | line for line in lines])
        for chosen in (right.subquery() for right in rights if not isinstance(right, Right)):
            line = sa.select(
                *(sa.literal(value, sa.BigInteger).label(name) for name, value in line_of.items()), *chosen.c
            )
            cx.execute(sa.insert(self._history).from_select([*line_of, *Right._fields], line))

    @contextmanager
    def decision(self, cx: Connection, action: str = "", target: Target | None = None) -> Iterator[Decision]:
        """What the block records is one event, or none if it records nothing. Within another, it is part of that.

        The event is stored at the end of the block, or with the first right. Without a ``target``, it is called after
        the first that the block records, or the first ``decision`` in it.
        """
        around = self._deciding.get()
        if around is not None:
            if around.target is None and target is not None:
                around.action, around.target = action, target
            yield around
            return
        whole = Decision(action, target)
        token = self._deciding.set(whole)
        try:
            yield whole
        except Refusal as refusal:
            if refusal.keeps_writes:
                self._finish(cx, whole)
            raise
        finally:
            self._deciding.reset(token)
        self._finish(cx, whole)

    def purge(self, cx: Connection, before: Instant, most: int) -> int:
        """Of each table, look at so many of the first rows, and delete those that are older; return how many were
        deleted of the fuller one.
        """
        counts = []
        for table in (self._events, self._history):
            first = cx.execute(sa.select(table.c.id, table.c.at).order_by(table.c.id).limit(most))
            old = [row.id for row in first if row.at < before]
            if old:
                cx.execute(table.delete().where(table.c.id.in_(old)))
            counts.append(len(old))
        return max(counts)

    def _finish(self, cx: Connection, whole: Decision) -> None:
        if whole.is_stored or whole.scope is None:
            return
        if whole.event_id is None:
            self._add_whole.run(cx, **self._row(whole.scope, whole))
        else:
            before, after = _text(whole.before), _text(whole.after)
            self._complete.run(cx, event=whole.event_id, new_before=before, new_after=after)

    def _store(self, cx: Connection, scope: _Acting, whole: Decision, right: Values | None) -> None:
        """With one right, if there is one: then the database is PostgreSQL."""
        add = self._add_event if right is None else self._add_with_right
        line = {f"line_{name}": value for name, value in (right or {}).items()}
        ((event_id,),) = add.all(cx, **self._row(scope, whole), **line)
        whole.event_id, whole.is_stored = int(event_id), True

    def _row(self, scope: _Acting, whole: Decision) -> dict[str, Any]:
        target, actor, columns = whole.target, scope.actor(), self._events.c
        assert target is not None  # noqa: S101 - what is recorded has one
        return {
            "at": whole.at,
            "who": _cut(actor.who, columns.who),
            "who_uuid": actor.who_uuid if len(actor.who_uuid or "") <= _length(columns.who_uuid) else None,
            "client": actor.client and _cut(actor.client, columns.client),
            "place": _cut(actor.place, columns.place),
            "via": _cut(actor.via, columns.via),
            "action": whole.action,
            "target_kind": target.kind,
            "target": _cut(target.name, columns.target),
            "target_uuid": target.uuid,
            "before": _text(whole.before),
            "after": _text(whole.after),
            "result": "done",
        }


def _parameters(table: sa.Table, prefix: str = "") -> dict[str, sa.ColumnElement[Any]]:
    columns = (column for column in table.c if not column.primary_key)
    return {column.name: sa.bindparam(prefix + column.name, type_=column.type) for column in columns}


def _cut(text: str, column: sa.Column[Any]) -> str:
    return make_storable(text)[: _length(column)]


def _length(column: sa.Column[Any]) -> int:
    length: int = column.type.length  # type: ignore[attr-defined] # it is a column of text
    return length


def _text(values: Values) -> str:
    return msgspec.json.encode(_plain(values)).decode()


def _plain(value: object) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Mapping):
        some = list(value.items())[:_MOST_VALUES]
        return {make_storable(str(key)[:_LONGEST_VALUE]): _plain(each) for key, each in some}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value[:_MOST_VALUES]]
    return make_storable(str(value)[:_LONGEST_VALUE])


def _merge(whole: dict[str, object], part: Values, *, newer: bool) -> None:
    """With ``newer``, a value of ``part`` replaces the one that is there."""
    for key, value in part.items():
        inner = whole.get(key)
        if isinstance(inner, dict) and isinstance(value, Mapping):
            _merge(inner, value, newer=newer)
        elif newer or key not in whole:
            whole[key] = dict(value) if isinstance(value, Mapping) else value
