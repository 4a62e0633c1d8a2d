"""Cabinets, and what one user has deleted or owned, are listed without what else lies in no folder or was deleted."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    cabinets = sa.text("folder_id IS NULL AND id >= '0c' AND id < '0d'")
    columns = ["repository_id", "former", "name", "seq"]
    op.create_index("ix_objects_cabinets", "objects", columns, sqlite_where=cabinets, postgresql_where=cabinets)
    for column in ("owner_key", "deleter_key"):
        op.create_index(f"ix_wastebasket_{column}", "wastebasket", [column])
