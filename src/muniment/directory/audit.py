"""Who changed what in the directory, and which rights were there when?"""

import sqlalchemy as sa

from muniment.database.audit import Right, Rights, Target, Trail, event_columns, history_columns
from muniment.database.connections import directory_tables

CLIENT_NAME = sa.String(120).with_variant(sa.String(255), "postgresql")
"""A client's name may be a URL. SQLite does not enforce a length, so its schema keeps the former one."""

_events = sa.Table("audit_events", directory_tables, *event_columns(CLIENT_NAME), sqlite_autoincrement=True)
_history = sa.Table("rights_history", directory_tables, *history_columns(), sqlite_autoincrement=True)

_trail = Trail(_events, _history)
record, decision, purge = _trail.record, _trail.decision, _trail.purge

__all__ = ["CLIENT_NAME", "Right", "Rights", "Target", "decision", "purge", "record"]
