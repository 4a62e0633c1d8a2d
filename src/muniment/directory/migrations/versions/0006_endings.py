"""Add the mark of endings, and the triggers that renew it when a token may have ended."""

import sqlalchemy as sa
from alembic import op

revision = "directory_0006"
down_revision = "directory_0005"
branch_labels = None
depends_on = None

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
    """Make the table with its one row, and the triggers on ``grants`` and ``access_tokens``."""
    op.create_table(
        "endings",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("mark", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_endings"),
    )
    op.execute("INSERT INTO endings (id, mark) VALUES (1, 'first')")
    (_sqlite if op.get_bind().dialect.name == "sqlite" else _postgresql)()


def _sqlite() -> None:
    now = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"
    renew = "BEGIN UPDATE endings SET mark = lower(hex(randomblob(16))); END"
    for table, columns in _DECIDES.items():
        was_good = _WAS_GOOD[table].format(now=now)
        if table == "access_tokens":
            was_good += f" AND {_GRANT_IS_GOOD}"
        op.execute(f"CREATE TRIGGER endings_{table}_update AFTER UPDATE OF {columns} ON {table} {renew}")
        op.execute(f"CREATE TRIGGER endings_{table}_delete AFTER DELETE ON {table} WHEN {was_good} {renew}")


def _postgresql() -> None:
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
