"""Add the marks under which processes remember types and ACLs, and the triggers that renew them."""

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

_WATCHED = {"acls": ("acls", "acl_entries"), "types": ("object_types", "type_properties")}


def upgrade() -> None:
    """Make the table with a row for each mark. Add triggers for every write to the tables that a mark covers."""
    marks = op.create_table(
        "marks",
        sa.Column("name", sa.String(10), nullable=False),
        sa.Column("mark", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_marks"),
    )
    op.bulk_insert(marks, [{"name": name, "mark": str(uuid.uuid4())} for name in _WATCHED])
    sqlite = op.get_bind().dialect.name == "sqlite"
    if not sqlite:
        op.execute(
            "CREATE FUNCTION renew_mark() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN UPDATE marks SET mark = gen_random_uuid() WHERE name = TG_ARGV[0]; RETURN NULL; END $$"
        )
    for name, tables in _WATCHED.items():
        how = f"FOR EACH STATEMENT EXECUTE FUNCTION renew_mark('{name}')"
        if sqlite:
            how = f"BEGIN UPDATE marks SET mark = lower(hex(randomblob(16))) WHERE name = '{name}'; END"  # noqa: S608
        for table in tables:
            for write in ("INSERT", "UPDATE", "DELETE") if sqlite else ("INSERT", "UPDATE", "DELETE", "TRUNCATE"):
                op.execute(f"CREATE TRIGGER mark_{table}_{write.lower()} AFTER {write} ON {table} {how}")
