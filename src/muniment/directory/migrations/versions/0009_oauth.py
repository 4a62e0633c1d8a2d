"""Let grants hold scopes and how they were made, clients how they may ask, and resources which tokens they take."""

from functools import partial

import sqlalchemy as sa
from alembic import op

revision = "directory_0009"
down_revision = "directory_0008"

_required = partial(sa.Column, nullable=False)

_WATCHED = ("oauth_clients", "resources")
"""Their triggers name each column, so they are made anew, as is that of grants."""

_DECIDES = "id, user_id, client_id, resource_id, refresh_expires, revoked, scopes, made, actor_id"
"""An answer about an access token depends on these columns of grants."""

_TRIGGER_OF_ENTRIES = sa.text(
    "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'generation_entries_update'"
)
"""It names the column that gets longer, so it is made anew, as it was."""


def upgrade() -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    for table in _WATCHED:
        op.execute(f"DROP TRIGGER generation_{table}_update" + ("" if sqlite else f" ON {table}"))
    _grants(sqlite=sqlite)
    _oauth_clients()
    _resources()
    _keys_and_assertions()
    if not sqlite:
        # A client's name may be a URL. SQLite does not enforce a length.
        trigger = op.get_bind().scalar(_TRIGGER_OF_ENTRIES)
        op.execute("DROP TRIGGER generation_entries_update ON entries")
        op.execute("ALTER TABLE entries ALTER COLUMN name TYPE VARCHAR(255)")
        op.execute(trigger)
        op.execute("ALTER TABLE audit_events ALTER COLUMN client TYPE VARCHAR(255)")
    how = (
        "BEGIN UPDATE generation SET mark = lower(hex(randomblob(16))); END"
        if sqlite
        else "FOR EACH STATEMENT EXECUTE FUNCTION renew_generation()"
    )
    for table in _WATCHED:
        seen = ", ".join(column["name"] for column in sa.inspect(op.get_bind()).get_columns(table))
        op.execute(f"CREATE TRIGGER generation_{table}_update AFTER UPDATE OF {seen} ON {table} {how}")


def _grants(*, sqlite: bool) -> None:
    name = "endings_grants_update"
    op.execute(f"DROP TRIGGER {name}" + ("" if sqlite else " ON grants"))
    op.add_column("grants", _required("scopes", sa.Text, server_default=""))
    op.add_column("grants", _required("made", sa.String(20), server_default="password"))
    op.add_column("grants", sa.Column("authenticated", sa.BigInteger))
    op.add_column("grants", sa.Column("actor_id", sa.BigInteger))
    op.add_column("access_tokens", sa.Column("scopes", sa.Text))
    for source in ("source_id", "actor_source_id"):
        op.add_column("grants", sa.Column(source, sa.BigInteger))
        op.create_index(f"ix_grants_{source}", "grants", [source])
    how = (
        "BEGIN UPDATE endings SET mark = lower(hex(randomblob(16))); END"
        if sqlite
        else "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION renew_endings()"
    )
    kind = "TRIGGER" if sqlite else "CONSTRAINT TRIGGER"
    op.execute(f"CREATE {kind} {name} AFTER UPDATE OF {_DECIDES} ON grants {how}")


def _oauth_clients() -> None:
    for name, default in (
        ("denied_grants", '["device_code"]'),
        ("jwks", ""),
        ("pkce", "required"),
        ("authentication", "secret"),
    ):
        op.add_column("oauth_clients", _required(name, sa.Text, server_default=default))
    op.add_column("oauth_clients", _required("default_resource", sa.String(36), server_default=""))
    for name in ("may_administer", "takes_endpoint_audience"):
        op.add_column("oauth_clients", _required(name, sa.Boolean, server_default=sa.false()))
    op.add_column("oauth_clients", sa.Column("rotates", sa.Boolean))


def _resources() -> None:
    op.add_column("resources", sa.Column("address", sa.String(1000)))
    op.create_index("ix_resources_address", "resources", ["address"], unique=True)
    op.add_column("resources", _required("token_format", sa.String(10), server_default="opaque"))
    op.add_column("resources", sa.Column("token_seconds", sa.Integer))


def _keys_and_assertions() -> None:
    op.create_table(
        "signing_keys",
        sa.Column("kid", sa.String(64), primary_key=True),
        _required("algorithm", sa.String(10)),
        _required("public", sa.Text),
        sa.Column("private", sa.LargeBinary),
        *(_required(name, sa.BigInteger) for name in ("created", "signs_from")),
        sa.Column("retired", sa.BigInteger),
    )
    op.create_table(
        "assertions",
        sa.Column("client_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("digest", sa.LargeBinary, primary_key=True),
        _required("expires", sa.BigInteger),
    )
    op.create_index("ix_assertions_expires", "assertions", ["expires"])
