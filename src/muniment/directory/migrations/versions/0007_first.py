"""Make the directory's tables, the marks of its changes with their triggers, and its first key."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "directory_0007"
down_revision = None

_BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

_NOT_SHOWN = {"attempted", "tries", "places"}
"""Columns of entries that every sign-in writes. They do not affect tokens."""

_WATCHED = ("entries", "memberships", "user_attributes", "resources", "access_roles", "access_role_members")
"""The tables on which access depends."""

_DECIDES = {
    "grants": "id, user_id, client_id, resource_id, refresh_expires, revoked",
    "access_tokens": "digest, id, grant_id, expires",
}
"""The columns on which an answer about an access token depends."""

_WAS_GOOD = {
    "grants": "OLD.revoked IS NULL AND OLD.refresh_expires > {now}",
    "access_tokens": "OLD.expires > {now}",
}
"""The conditions under which the deletion of a row may end a token. For a row of ``access_tokens``, ``_GRANT_IS_GOOD``
must be true, too. The purge deletes only what ended an hour ago or earlier, so it ends no token."""

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
    """Make the tables with their first rows, and the triggers that renew the marks."""
    op.create_table(
        "entries",
        sa.Column("id", _BIG_ID, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("partition_id", _BIG_ID),
        sa.Column("parent_id", _BIG_ID),
        sa.Column("built_in", sa.String(20)),
        sa.Column("space", sa.String(30), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("name_key", sa.String(400), nullable=False),
        sa.Column("units", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("password_hash", sa.String(255)),
        sa.Column("disabled", sa.Boolean, nullable=False),
        sa.Column("locked", sa.Boolean, nullable=False),
        sa.Column("password_never_expires", sa.Boolean, nullable=False),
        sa.Column("must_change_password", sa.Boolean, nullable=False),
        sa.Column("cannot_change_password", sa.Boolean, nullable=False),
        sa.Column("attempted", sa.BigInteger, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("modified", sa.BigInteger, nullable=False),
        sa.Column("tries", sa.Text, nullable=False, server_default="{}"),
        sa.Column("places", sa.Text, nullable=False, server_default="{}"),
        sa.PrimaryKeyConstraint("id", name="pk_entries"),
        sa.UniqueConstraint("uuid", name="uq_entries_uuid"),
        sa.UniqueConstraint("space", "name_key", name="uq_entries_space_name_key"),
        sa.ForeignKeyConstraint(["partition_id"], ["entries.id"], name="fk_entries_partition_id"),
        sa.ForeignKeyConstraint(["parent_id"], ["entries.id"], name="fk_entries_parent_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_entries_listing", "entries", ["partition_id", "kind", "name_key"])
    op.create_index("ix_entries_parent_id", "entries", ["parent_id"])
    op.create_table(
        "memberships",
        sa.Column("group_id", _BIG_ID, nullable=False),
        sa.Column("member_id", _BIG_ID, nullable=False),
        sa.PrimaryKeyConstraint("group_id", "member_id", name="pk_memberships"),
        sa.ForeignKeyConstraint(["group_id"], ["entries.id"], name="fk_memberships_group_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["member_id"], ["entries.id"], name="fk_memberships_member_id", ondelete="CASCADE"),
    )
    op.create_index("ix_memberships_member_id", "memberships", ["member_id"])
    op.create_table(
        "user_attributes",
        sa.Column("entry_id", _BIG_ID, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("entry_id", "name", name="pk_user_attributes"),
        sa.ForeignKeyConstraint(["entry_id"], ["entries.id"], name="fk_user_attributes_entry_id", ondelete="CASCADE"),
    )
    op.create_table(
        "system_attributes",
        sa.Column("name_key", sa.String(600), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("modified", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name_key", name="pk_system_attributes"),
    )
    keys = op.create_table(
        "keys",
        sa.Column("purpose", sa.String(20), nullable=False),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("purpose", name="pk_keys"),
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
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("name_key", sa.String(400), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("built_in", sa.String(20)),
        sa.Column("activated", sa.BigInteger),
        sa.Column("secret_digest", sa.LargeBinary),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_resources"),
        sa.UniqueConstraint("name_key", name="uq_resources_name_key"),
    )
    op.create_table(
        "access_roles",
        sa.Column("id", _BIG_ID, nullable=False),
        sa.Column("resource_id", sa.String(36), nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_access_roles"),
        sa.UniqueConstraint("resource_id", name="uq_access_roles_resource_id"),
        sa.ForeignKeyConstraint(
            ["resource_id"], ["resources.id"], name="fk_access_roles_resource_id", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "access_role_members",
        sa.Column("role_id", _BIG_ID, nullable=False),
        sa.Column("entry_id", _BIG_ID, nullable=False),
        sa.PrimaryKeyConstraint("role_id", "entry_id", name="pk_access_role_members"),
        sa.ForeignKeyConstraint(
            ["role_id"], ["access_roles.id"], name="fk_access_role_members_role_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["entry_id"], ["entries.id"], name="fk_access_role_members_entry_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_access_role_members_entry_id", "access_role_members", ["entry_id"])


def _tokens() -> None:
    op.create_table(
        "grants",
        sa.Column("id", _BIG_ID, nullable=False),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.Column("client_id", sa.BigInteger, nullable=False),
        sa.Column("resource_id", sa.String(36), nullable=False),
        sa.Column("refresh_digest", sa.LargeBinary, nullable=False),
        sa.Column("refresh_expires", sa.BigInteger, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("revoked", sa.BigInteger),
        sa.Column("live_bound", sa.Integer),
        sa.PrimaryKeyConstraint("id", name="pk_grants"),
        sa.UniqueConstraint("refresh_digest", name="uq_grants_refresh_digest"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_grants_user_id", "grants", ["user_id"])
    op.create_index("ix_grants_refresh_expires", "grants", ["refresh_expires"])
    op.create_index("ix_grants_revoked", "grants", ["revoked"])
    op.create_index("ix_grants_client_id", "grants", ["client_id"])
    op.create_table(
        "access_tokens",
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("grant_id", _BIG_ID, nullable=False),
        sa.Column("issued", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_access_tokens"),
        sa.ForeignKeyConstraint(["grant_id"], ["grants.id"], name="fk_access_tokens_grant_id", ondelete="CASCADE"),
    )
    op.create_index("ix_access_tokens_of_grant", "access_tokens", ["grant_id", "expires"])
    op.create_index("ix_access_tokens_expires", "access_tokens", ["expires", "digest"])
    op.create_table(
        "tickets",
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("user_id", _BIG_ID, nullable=False),
        sa.Column("resource_id", sa.String(36), nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_tickets"),
        sa.ForeignKeyConstraint(["user_id"], ["entries.id"], name="fk_tickets_user_id", ondelete="CASCADE"),
    )
    op.create_index("ix_tickets_user_id", "tickets", ["user_id"])
    op.create_index("ix_tickets_expires", "tickets", ["expires"])


def _marks() -> None:
    for table in ("generation", "endings"):
        marks = op.create_table(
            table,
            sa.Column("id", sa.Integer, nullable=False),
            sa.Column("mark", sa.String(36), nullable=False),
            sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
        )
        op.bulk_insert(marks, [{"id": 1, "mark": "first"}])


def _renew_generation(*, sqlite: bool) -> None:
    """Renew the generation with every kind of write to a watched table."""
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
