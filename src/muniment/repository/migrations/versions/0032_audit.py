"""Keep what was changed by whom, and the history of rights."""

from functools import partial

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"

_BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_required = partial(sa.Column, nullable=False)


def upgrade() -> None:
    op.create_table(
        "repository_audit_events",
        sa.Column("id", _BIG_ID, primary_key=True),
        _required("at", sa.BigInteger),
        _required("who", sa.String(255)),
        sa.Column("who_uuid", sa.String(36)),
        sa.Column("client", sa.String(120)),
        _required("place", sa.String(60)),
        _required("via", sa.String(255)),
        _required("action", sa.String(40)),
        _required("target_kind", sa.String(20)),
        _required("target", sa.String(400)),
        sa.Column("target_uuid", sa.String(36)),
        *(_required(name, sa.Text) for name in ("before", "after")),
        _required("result", sa.String(20)),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "repository_rights_history",
        sa.Column("id", _BIG_ID, primary_key=True),
        _required("at", sa.BigInteger),
        _required("event_id", sa.BigInteger),
        _required("kind", sa.String(20)),
        _required("subject", sa.String(400)),
        _required("object", sa.String(400)),
        *(_required(name, sa.Text) for name in ("before", "after")),
        sqlite_autoincrement=True,
    )
    for column in ("subject", "object"):
        op.create_index(f"ix_repository_rights_history_{column}", "repository_rights_history", [column])
