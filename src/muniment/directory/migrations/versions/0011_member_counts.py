"""Let the directory hold how many members each group and role has: a list of groups counts none of them."""

import sqlalchemy as sa
from alembic import op

revision = "directory_0011"
down_revision = "directory_0010"

_BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

_SQLITE = {
    "INSERT": "INSERT OR IGNORE INTO member_counts (group_id, members) VALUES (NEW.group_id, 0); "
    "UPDATE member_counts SET members = members + 1 WHERE group_id = NEW.group_id",
    "DELETE": "UPDATE member_counts SET members = members - 1 WHERE group_id = OLD.group_id",
}

_FUNCTION = """
CREATE FUNCTION count_members() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO member_counts (group_id, members) SELECT group_id, count(*) FROM written GROUP BY group_id
        ON CONFLICT (group_id) DO UPDATE SET members = member_counts.members + excluded.members;
    ELSIF TG_OP = 'DELETE' THEN
        UPDATE member_counts SET members = members - gone.number
        FROM (SELECT group_id, count(*) AS number FROM written GROUP BY group_id) AS gone
        WHERE member_counts.group_id = gone.group_id;
    ELSE
        DELETE FROM member_counts;
    END IF;
    RETURN NULL;
END $$
"""


def upgrade() -> None:
    op.create_table(
        "member_counts",
        sa.Column("group_id", _BIG_ID, sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("members", sa.BigInteger, nullable=False),
    )
    op.execute(
        "INSERT INTO member_counts (group_id, members) SELECT group_id, count(*) FROM memberships GROUP BY group_id"
    )
    if op.get_bind().dialect.name == "sqlite":
        for event, how in _SQLITE.items():
            op.execute(f"CREATE TRIGGER members_counted_{event.lower()} AFTER {event} ON memberships BEGIN {how}; END")
        return
    op.execute(_FUNCTION)
    # PostgreSQL runs triggers in the order of their names: whoever locks a count has locked the generation before.
    for event, rows in (("INSERT", "NEW"), ("DELETE", "OLD"), ("TRUNCATE", "")):
        written = f"REFERENCING {rows} TABLE AS written" if rows else ""
        op.execute(
            f"CREATE TRIGGER members_counted_{event.lower()} AFTER {event} ON memberships {written} "
            "FOR EACH STATEMENT EXECUTE FUNCTION count_members()"
        )
