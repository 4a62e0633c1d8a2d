"""Equal bytes are kept once, and objects have further pages and renditions.

Equal contents of earlier releases are not merged: each keeps its own bytes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Let several objects name one content, count the uses of each, and make the table of further contents."""
    connection = op.get_bind()
    sqlite = connection.dialect.name == "sqlite"
    # To drop the constraint, SQLite makes the table anew. The counter of an object that is gone must not come back.
    last = sa.text("SELECT seq FROM sqlite_sequence WHERE name = 'objects'")
    counter = connection.execute(last).scalar() if sqlite else None
    with op.batch_alter_table("objects", table_kwargs={"sqlite_autoincrement": True}) as objects:
        objects.drop_constraint("uq_objects_content_key", type_="unique")
        objects.create_index("ix_objects_content_key", ["content_key"])
    if counter is not None:
        connection.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = 'objects'"))
        values = {"counter": counter}
        connection.execute(sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES ('objects', :counter)"), values)
    op.create_table(
        "stored_contents",
        sa.Column("key", sa.String(32), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.LargeBinary(), nullable=False),
        sa.Column("uses", sa.BigInteger(), nullable=False),
        sa.Column("offered", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_stored_contents"),
    )
    connection.execute(
        sa.text(
            "INSERT INTO stored_contents (key, size, sha256, uses, offered) "
            "SELECT content_key, content_size, content_sha256, 1, "
            "row_number() OVER (PARTITION BY content_sha256 ORDER BY content_key) = 1 "
            "FROM objects WHERE content_key IS NOT NULL"
        )
    )
    op.create_index(
        "ix_stored_contents_offered",
        "stored_contents",
        ["sha256"],
        unique=True,
        sqlite_where=sa.text("offered"),
        postgresql_where=sa.text("offered"),
    )
    counter_type = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "further_contents",
        sa.Column("id", counter_type, nullable=False),
        sa.Column("object_id", sa.String(16), nullable=False),
        sa.Column("is_primary", sa.Boolean(), nullable=False),
        sa.Column("page", sa.Integer(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("format", sa.String(255), nullable=False),
        sa.Column("modifier", sa.String(64), nullable=False),
        sa.Column("added", sa.BigInteger(), nullable=False),
        sa.Column("content_key", sa.String(32), nullable=False),
        sa.Column("content_size", sa.BigInteger(), nullable=False),
        sa.Column("content_sha256", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["object_id"], ["objects.id"], name="fk_further_contents_object_id_objects"),
        sa.PrimaryKeyConstraint("id", name="pk_further_contents"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_further_contents_place",
        "further_contents",
        ["object_id", "is_primary", "page", "format", "modifier"],
        unique=True,
    )
    op.create_index("ix_further_contents_content_key", "further_contents", ["content_key"])
