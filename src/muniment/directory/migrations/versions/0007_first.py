"""Make the directory's tables, the marks of its changes with their triggers, and its first key."""

import secrets
from functools import partial

import sqlalchemy as sa
from alembic import op

revision = "directory_0007"
down_revision = None

_BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_required = partial(sa.Column, nullable=False)

_NOT_SHOWN = {"attempted", "tries", "places"}
"""Columns that every sign-in writes. They do not affect tokens."""

_WATCHED = ("entries", "memberships", "user_attributes", "resources", "access_roles", "access_role_members")

_DECIDES = {
    "grants": "id, user_id, client_id, resource_id, refresh_expires, revoked",
    "access_tokens": "digest, id, grant_id, expires",
}
"""An answer about an access token depends on these columns."""

_WAS_GOOD = {
    "grants": "OLD.revoked IS NULL AND OLD.refresh_expires > {now}",
    "access_tokens": "OLD.expires > {now}",
}
"""When the deletion of a row may end a token; for ``access_tokens``, ``_GRANT_IS_GOOD`` must hold, too. The purge ends
none: it deletes only what ended an hour ago or earlier.
"""

_GRANT_IS_GOOD = "EXISTS (SELECT 1 FROM grants WHERE grants.id = OLD.grant_id AND grants.revoked IS NULL)"

_RENEW_ONCE = f"""
CREATE FUNCTION renew_endings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'access_tokens' AND TG_OP = 'DELETE' THEN
        IF NOT {_GRANT_IS_GOOD} THEN
            RETURN NULL;
        END IF;
    END IF;
    IF current_setting('muniment.endings', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
        UPDATE endings SET mark = gen_random_uuid();
        PERFORM set_config('muniment.endings', pg_current_xact_id()::text, true);
    END IF;
    RETURN NULL;
END $$
"""  # noqa: S608 - all of it is ours


def upgrade() -> None:
    op.create_table(
        "entries",
        sa.Column("id", _BIG_ID, primary_key=True),
        _required("uuid", sa.String(36), unique=True),
        _required("kind", sa.String(10)),
        sa.Column("partition_id", _BIG_ID, sa.ForeignKey("entries.id")),
        sa.Column("parent_id", _BIG_ID, sa.ForeignKey("entries.id"), index=True),
        sa.Column("built_in", sa.String(20)),
        _required("space", sa.String(30)),
        _required("name", sa.String(120)),
        _required("name_key", sa.String(400)),
        _required("units", sa.Text),
        _required("description", sa.Text),
        sa.Column("password_hash", sa.String(255)),
        _required("disabled", sa.Boolean),
        _required("locked", sa.Boolean),
        _required("password_never_expires", sa.Boolean),
        _required("must_change_password", sa.Boolean),
        _required("cannot_change_password", sa.Boolean),
        _required("attempted", sa.BigInteger),
        _required("created", sa.BigInteger),
        _required("modified", sa.BigInteger),
        _required("tries", sa.Text, server_default="{}"),
        _required("places", sa.Text, server_default="{}"),
        sa.UniqueConstraint("space", "name_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_entries_listing", "entries", ["partition_id", "kind", "name_key"])
    op.create_table(
        "memberships",
        sa.Column("group_id", _BIG_ID, sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("member_id", _BIG_ID, sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True, index=True),
    )
    op.create_table(
        "user_attributes",
        sa.Column("entry_id", _BIG_ID, sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("name", sa.String(64), primary_key=True),
        _required("content", sa.Text),
    )
    op.create_table(
        "system_attributes",
        sa.Column("name_key", sa.String(600), primary_key=True),
        _required("name", sa.String(200)),
        _required("value", sa.Text),
        _required("modified", sa.BigInteger),
    )
    keys = op.create_table(
        "keys",
        sa.Column("purpose", sa.String(20), primary_key=True),
        _required("key", sa.LargeBinary),
    )
    # The first use of this key is in a sign-in's snapshot, which cannot write.
    op.bulk_insert(keys, [{"purpose": "places", "key": secrets.token_bytes(32)}])
    _resources()
    _tokens()
    _marks()
    sqlite = op.get_bind().dialect.name == "sqlite"
    _renew_generation(sqlite=sqlite)
    (_renew_endings_sqlite if sqlite else _renew_endings_postgresql)()


def _resources() -> None:
    op.create_table(
        "resources",
        sa.Column("id", sa.String(36), primary_key=True),
        _required("name", sa.String(120)),
        _required("name_key", sa.String(400), unique=True),
        _required("description", sa.Text),
        sa.Column("built_in", sa.String(20)),
        sa.Column("activated", sa.BigInteger),
        sa.Column("secret_digest", sa.LargeBinary),
        _required("created", sa.BigInteger),
    )
    op.create_table(
        "access_roles",
        sa.Column("id", _BIG_ID, primary_key=True),
        _required("resource_id", sa.String(36), sa.ForeignKey("resources.id", ondelete="CASCADE"), unique=True),
        _required("created", sa.BigInteger),
    )
    op.create_table(
        "access_role_members",
        sa.Column("role_id", _BIG_ID, sa.ForeignKey("access_roles.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("entry_id", _BIG_ID, sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True, index=True),
    )


def _tokens() -> None:
    op.create_table(
        "grants",
        sa.Column("id", _BIG_ID, primary_key=True),
        _required("user_id", sa.BigInteger, index=True),
        _required("client_id", sa.BigInteger, index=True),
        _required("resource_id", sa.String(36)),
        _required("refresh_digest", sa.LargeBinary, unique=True),
        _required("refresh_expires", sa.BigInteger, index=True),
        _required("created", sa.BigInteger),
        sa.Column("revoked", sa.BigInteger, index=True),
        sa.Column("live_bound", sa.Integer),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "access_tokens",
        sa.Column("digest", sa.LargeBinary, primary_key=True),
        _required("id", sa.String(36)),
        _required("grant_id", _BIG_ID, sa.ForeignKey("grants.id", ondelete="CASCADE")),
        _required("issued", sa.BigInteger),
        _required("expires", sa.BigInteger),
    )
    op.create_index("ix_access_tokens_of_grant", "access_tokens", ["grant_id", "expires"])
    op.create_index("ix_access_tokens_expires", "access_tokens", ["expires", "digest"])
    op.create_table(
        "tickets",
        sa.Column("digest", sa.LargeBinary, primary_key=True),
        _required("user_id", _BIG_ID, sa.ForeignKey("entries.id", ondelete="CASCADE"), index=True),
        _required("resource_id", sa.String(36)),
        _required("created", sa.BigInteger),
        _required("expires", sa.BigInteger, index=True),
    )


def _marks() -> None:
    for table in ("generation", "endings"):
        marks = op.create_table(
            table,
            _required("id", sa.Integer),
            _required("mark", sa.String(36)),
            sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
        )
        op.bulk_insert(marks, [{"id": 1, "mark": "first"}])


def _renew_generation(*, sqlite: bool) -> None:
    if sqlite:
        how = "BEGIN UPDATE generation SET mark = lower(hex(randomblob(16))); END"
    else:
        op.execute(
            "CREATE FUNCTION renew_generation() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN UPDATE generation SET mark = gen_random_uuid(); RETURN NULL; END $$"
        )
        how = "FOR EACH STATEMENT EXECUTE FUNCTION renew_generation()"
    for table in _WATCHED:
        columns = [column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)]
        seen = ", ".join(column for column in columns if table != "entries" or column not in _NOT_SHOWN)
        writes = {"insert": "INSERT", "update": f"UPDATE OF {seen}", "delete": "DELETE"}
        if not sqlite:
            writes["truncate"] = "TRUNCATE"
        for name, write in writes.items():
            op.execute(f"CREATE TRIGGER generation_{table}_{name} AFTER {write} ON {table} {how}")


def _renew_endings_sqlite() -> None:
    now = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"
    renew = "BEGIN UPDATE endings SET mark = lower(hex(randomblob(16))); END"
    for table, columns in _DECIDES.items():
        was_good = _WAS_GOOD[table].format(now=now)
        if table == "access_tokens":
            was_good += f" AND {_GRANT_IS_GOOD}"
        op.execute(f"CREATE TRIGGER endings_{table}_update AFTER UPDATE OF {columns} ON {table} {renew}")
        op.execute(f"CREATE TRIGGER endings_{table}_delete AFTER DELETE ON {table} WHEN {was_good} {renew}")


def _renew_endings_postgresql() -> None:
    # The triggers run at the commit, when the transaction takes no more locks. If they ran earlier, two transactions
    # that end tokens could wait for each other. Each transaction renews the mark once.
    op.execute(_RENEW_ONCE)
    deferred = "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
    for table, columns in _DECIDES.items():
        was_good = _WAS_GOOD[table].format(now="extract(epoch FROM clock_timestamp()) * 1000000")
        for event, condition in ((f"UPDATE OF {columns}", ""), ("DELETE", f"WHEN ({was_good})")):
            name = f"endings_{table}_{event.partition(' ')[0].lower()}"
            op.execute(
                f"CREATE CONSTRAINT TRIGGER {name} AFTER {event} ON {table} {deferred} {condition} "
                "EXECUTE FUNCTION renew_endings()"
            )
        op.execute(
            f"CREATE TRIGGER endings_{table}_truncate AFTER TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION renew_endings()"
        )
