"""Who changed what in the repositories, and which rights were there when?"""

import sqlalchemy as sa

from muniment.database.audit import Right, Rights, Target, Trail, event_columns, history_columns
from muniment.database.connections import repository_tables

_events = sa.Table("repository_audit_events", repository_tables, *event_columns(), sqlite_autoincrement=True)
_history = sa.Table("repository_rights_history", repository_tables, *history_columns(), sqlite_autoincrement=True)

_trail = Trail(_events, _history)
record, decision, purge = _trail.record, _trail.decision, _trail.purge

__all__ = ["Right", "Rights", "Target", "decision", "purge", "record"]
