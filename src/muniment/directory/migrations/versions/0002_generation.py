"""Add the directory's generation, and the triggers that renew it."""

import sqlalchemy as sa
from alembic import op

revision = "directory_0002"
down_revision = "directory_0001"
branch_labels = None
depends_on = None

_NOT_SHOWN = {"failures", "paused_until", "attempted"}
"""Columns of entries that every sign-in writes. They do not affect tokens."""

_WATCHED = ("entries", "memberships", "user_attributes", "resources", "access_roles", "access_role_members")


def upgrade() -> None:
    """Make the table with its one row. Make a trigger for each kind of write to each table on which access depends."""
    op.create_table(
        "generation",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("mark", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_generation"),
    )
    op.execute("INSERT INTO generation (id, mark) VALUES (1, 'first')")
    connection = op.get_bind()
    sqlite = connection.dialect.name == "sqlite"
    if sqlite:
        how = "BEGIN UPDATE generation SET mark = lower(hex(randomblob(16))); END"
    else:
        op.execute(
            "CREATE FUNCTION renew_generation() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN UPDATE generation SET mark = gen_random_uuid(); RETURN NULL; END $$"
        )
        how = "FOR EACH STATEMENT EXECUTE FUNCTION renew_generation()"
    for table in _WATCHED:
        columns = [column["name"] for column in sa.inspect(connection).get_columns(table)]
        seen = ", ".join(column for column in columns if table != "entries" or column not in _NOT_SHOWN)
        writes = {"insert": "INSERT", "update": f"UPDATE OF {seen}", "delete": "DELETE"}
        if not sqlite:
            writes["truncate"] = "TRUNCATE"
        for name, write in writes.items():
            op.execute(f"CREATE TRIGGER generation_{table}_{name} AFTER {write} ON {table} {how}")
