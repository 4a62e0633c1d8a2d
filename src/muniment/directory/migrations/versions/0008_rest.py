"""Let the directory hold what its administration by REST reads and writes.

Values of attributes become rows, with an index of what they begin with.
"""

import unicodedata
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec
import sqlalchemy as sa
from alembic import op

revision = "directory_0008"
down_revision = "directory_0007"

_BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_required = partial(sa.Column, nullable=False)

_PORTION = 2000

_NEW_TABLES_WATCHED = ("attribute_values", "oauth_clients")
_CHANGED_TABLES_WATCHED = ("entries", "resources", "access_roles")

_NOT_SHOWN = {"attempted", "tries", "places", "external_id", "revision", "password_changed", "signed_in"}
"""Columns of entries that every sign-in writes, or that do not affect tokens."""


def upgrade() -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    for table in _CHANGED_TABLES_WATCHED:
        op.execute(f"DROP TRIGGER generation_{table}_update" + ("" if sqlite else f" ON {table}"))
    _entries(sqlite=sqlite)
    _attribute_values()
    _custom_attributes_and_changes()
    _resources(sqlite=sqlite)
    _oauth_clients()
    _tickets()
    op.create_table(
        "configurations",
        sa.Column("name", sa.String(40), primary_key=True),
        _required("content", sa.Text),
        _required("modified", sa.BigInteger),
    )
    op.add_column("system_attributes", _required("friendly_name", sa.Text, server_default=""))
    _audit()
    _administrators()
    _renew_generation(sqlite=sqlite)


def _administrators() -> None:
    """Being let in at the administration gives no rights from here on: whoever had them by it is in the group now."""
    op.execute(
        "INSERT INTO memberships (group_id, member_id) "
        "SELECT administrators.id, member.id FROM entries AS administrators, access_role_members AS let_in "
        "JOIN access_roles ON access_roles.id = let_in.role_id "
        "JOIN resources ON resources.id = access_roles.resource_id AND resources.built_in = 'administration' "
        "JOIN entries AS member ON member.id = let_in.entry_id AND member.kind IN ('user', 'group') "
        "WHERE administrators.built_in = 'administrators' AND member.id <> administrators.id "
        "ON CONFLICT DO NOTHING"
    )


def _folded(length: int) -> sa.types.TypeEngine[str]:
    """Text in the order of its code points, so that what begins with a text is one range of an index."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def _entries(*, sqlite: bool) -> None:
    op.add_column("entries", sa.Column("external_id", sa.String(255)))
    op.add_column("entries", _required("revision", sa.Integer, server_default="1"))
    op.add_column("entries", sa.Column("password_changed", sa.BigInteger))
    op.add_column("entries", sa.Column("signed_in", sa.BigInteger))
    if not sqlite:
        op.execute('ALTER TABLE entries ALTER COLUMN name_key TYPE VARCHAR(400) COLLATE "C"')
    op.drop_index("ix_entries_parent_id", "entries")
    op.create_index("ix_entries_inside", "entries", ["parent_id", "kind", "name_key"])
    op.drop_index("ix_memberships_member_id", "memberships")
    op.create_index("ix_memberships_around", "memberships", ["member_id", "group_id"])
    op.create_index("ix_entries_names", "entries", ["kind", "name_key", "id"])
    op.create_index(
        "ix_entries_disabled",
        "entries",
        ["kind", "name_key", "id"],
        sqlite_where=sa.text("disabled = 1"),
        postgresql_where=sa.text("disabled"),
    )
    op.create_index("ix_entries_external_id", "entries", ["partition_id", "external_id"], unique=True)


def _attribute_values() -> None:
    values = op.create_table(
        "attribute_values",
        sa.Column("entry_id", _BIG_ID, sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        _required("value", sa.Text),
        _required("is_number", sa.Boolean),
        _required("folded", _folded(200)),
    )
    connection = op.get_bind()
    for portion in _portions(connection):
        rows = [
            {
                "entry_id": entry_id,
                "name": name,
                "position": position,
                "value": str(value),
                "is_number": isinstance(value, int),
                "folded": _fold(str(value))[:200],
            }
            for entry_id, name, content in portion
            for position, value in enumerate(msgspec.json.decode(content))
        ]
        connection.execute(values.insert(), rows)
    op.drop_table("user_attributes")
    op.create_index("ix_attribute_values_folded", "attribute_values", ["name", "folded", "entry_id"])


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def _portions(connection: sa.Connection) -> Iterator[list[Any]]:
    former = sa.table("user_attributes", sa.column("entry_id"), sa.column("name"), sa.column("content"))
    # By entry, because the order of names depends on the database's collation.
    after = 0
    while True:
        entries = sa.select(former.c.entry_id).where(former.c.entry_id > after).distinct()
        ids = list(connection.scalars(entries.order_by(former.c.entry_id).limit(_PORTION)))
        if not ids:
            return
        within = former.c.entry_id > after, former.c.entry_id <= ids[-1]
        yield list(connection.execute(sa.select(former).where(*within)))
        after = ids[-1]


def _custom_attributes_and_changes() -> None:
    op.create_table(
        "custom_attributes",
        sa.Column("entry_id", _BIG_ID, sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        _required("type", sa.String(64)),
        _required("name", sa.String(120)),
        _required("value", sa.Text),
    )
    op.create_table(
        "entry_changes",
        sa.Column("sequence", _BIG_ID, primary_key=True),
        _required("transaction", sa.BigInteger),
        _required("uuid", sa.String(36)),
        _required("kind", sa.String(10)),
        sa.Column("partition_uuid", sa.String(36)),
        _required("what", sa.String(10)),
        _required("noted", sa.BigInteger),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_entry_changes_order", "entry_changes", ["transaction", "sequence"])


def _resources(*, sqlite: bool) -> None:
    if not sqlite:
        op.execute('ALTER TABLE resources ALTER COLUMN name_key TYPE VARCHAR(400) COLLATE "C"')
    for name, kind, default in (
        ("display_name", sa.String(255), ""),
        ("settings", sa.Text, "{}"),
        ("allow_impersonation", sa.Boolean, sa.false()),
        ("impersonate_list", sa.Text, "[]"),
        ("authentication_enabled", sa.Boolean, sa.true()),
        ("synchronization_enabled", sa.Boolean, sa.false()),
    ):
        op.add_column("resources", _required(name, kind, server_default=default))
    op.add_column("access_roles", _required("description", sa.Text, server_default=""))
    op.add_column("access_roles", _required("attributes", sa.Text, server_default="[]"))


def _oauth_clients() -> None:
    op.create_table(
        "oauth_clients",
        sa.Column("entry_id", _BIG_ID, sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
        *(
            _required(name, sa.Text)
            for name in ("redirect_urls", "allowed_scopes", "default_scopes", "impersonate_list", "auth_scopes")
        ),
        *(sa.Column(name, sa.Integer) for name in ("access_seconds", "refresh_seconds", "code_seconds")),
        *(
            _required(name, sa.Boolean)
            for name in ("allow_refresh_token", "allow_impersonation", "use_session_refresh_seconds")
        ),
        *(_required(name, sa.Text) for name in ("logout_url", "logout_method")),
    )


def _tickets() -> None:
    # Tickets have another form from here on, so nobody can show an old one.
    op.execute("DELETE FROM tickets")
    op.add_column("tickets", _required("made", sa.String(20), server_default="page"))
    op.add_column("tickets", sa.Column("target_id", sa.String(36)))
    op.add_column("tickets", sa.Column("by_user_id", sa.BigInteger))
    op.add_column("tickets", sa.Column("by_client_id", sa.BigInteger))
    op.add_column("tickets", sa.Column("by_resource_id", sa.String(36)))
    op.add_column("tickets", sa.Column("by_ticket", sa.LargeBinary))
    op.drop_index("ix_tickets_user_id", "tickets")
    op.create_index("ix_tickets_of_user", "tickets", ["user_id", "made", "created"])


def _audit() -> None:
    op.create_table(
        "audit_events",
        sa.Column("id", _BIG_ID, primary_key=True),
        _required("at", sa.BigInteger),
        _required("who", sa.String(255)),
        sa.Column("who_uuid", sa.String(36)),
        sa.Column("client", sa.String(120)),
        _required("place", sa.String(60)),
        _required("via", sa.String(255)),
        _required("action", sa.String(40)),
        _required("target_kind", sa.String(20)),
        _required("target", sa.String(400)),
        sa.Column("target_uuid", sa.String(36)),
        *(_required(name, sa.Text) for name in ("before", "after")),
        _required("result", sa.String(20)),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "rights_history",
        sa.Column("id", _BIG_ID, primary_key=True),
        _required("at", sa.BigInteger),
        _required("event_id", sa.BigInteger),
        _required("kind", sa.String(20)),
        _required("subject", sa.String(400)),
        _required("object", sa.String(400)),
        *(_required(name, sa.Text) for name in ("before", "after")),
        sqlite_autoincrement=True,
    )
    for column in ("subject", "object"):
        op.create_index(f"ix_rights_history_{column}", "rights_history", [column])


def _renew_generation(*, sqlite: bool) -> None:
    how = (
        "BEGIN UPDATE generation SET mark = lower(hex(randomblob(16))); END"
        if sqlite
        else "FOR EACH STATEMENT EXECUTE FUNCTION renew_generation()"
    )
    for table in (*_NEW_TABLES_WATCHED, *_CHANGED_TABLES_WATCHED):
        columns = [column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)]
        seen = ", ".join(column for column in columns if table != "entries" or column not in _NOT_SHOWN)
        writes = {"update": f"UPDATE OF {seen}"}
        if table in _NEW_TABLES_WATCHED:
            writes |= {"insert": "INSERT", "delete": "DELETE"} | ({} if sqlite else {"truncate": "TRUNCATE"})
        for name, write in writes.items():
            op.execute(f"CREATE TRIGGER generation_{table}_{name} AFTER {write} ON {table} {how}")
