"""An object may lie in several folders: its row keeps the first link, and further links get rows of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    """Make the table of further links, and the column of an object's row that names its further folders."""
    op.add_column("objects", sa.Column("further_folders", sa.Text(), nullable=True))
    op.create_table(
        "folder_links",
        sa.Column("object_id", sa.String(16), nullable=False),
        sa.Column("folder_id", sa.String(16), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("former", sa.SmallInteger(), nullable=False),
        sa.ForeignKeyConstraint(["object_id"], ["objects.id"], name="fk_folder_links_object_id_objects"),
        sa.ForeignKeyConstraint(["folder_id"], ["objects.id"], name="fk_folder_links_folder_id_objects"),
        sa.PrimaryKeyConstraint("object_id", "folder_id", name="pk_folder_links"),
    )
    op.create_index("ix_folder_links_folder", "folder_links", ["folder_id", "former", "name", "seq"])
