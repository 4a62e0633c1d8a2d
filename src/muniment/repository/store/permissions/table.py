"""The table of ACLs: one row for each ACL, without its entries."""

from typing import Any

import sqlalchemy as sa

from muniment.database.connections import BigId, repository_column, repository_tables, required, required_columns

_WHERE_COMMON: dict[str, Any] = {"sqlite_where": sa.text("common = 1"), "postgresql_where": sa.text("common")}

# ``owner_name`` is the owner's folded name, which a namesake shares; ``owner_key`` is theirs alone (``bearers``).
# ``common`` marks an ACL that a bare name means for everybody. It is never null.
# Ids are never used again: index entries of a deleted ACL must not pass to a new one.
acls = sa.Table(
    "acls",
    repository_tables,
    sa.Column("id", BigId, primary_key=True),
    repository_column(),
    required("shown_id", sa.String(16)),
    required("name", sa.String(120)),
    *required_columns(sa.String(400), "owner", "owner_name", "owner_key"),
    sa.Column("common", sa.Boolean),
    required("entry_count", sa.Integer),
    *required_columns(sa.BigInteger, "created", "modified"),
    sa.Column("description", sa.Text),
    sa.Index("ix_acls_shown_id", "shown_id", unique=True),
    sa.Index("ix_acls_owner", "repository_id", "owner_key", "name", unique=True),
    sa.Index("ix_acls_owner_name", "repository_id", "owner_name", "name"),
    sa.Index("ix_acls_common", "repository_id", "name", unique=True, **_WHERE_COMMON),
    sa.Index("ix_acls_name", "repository_id", "name", "shown_id"),
    sqlite_autoincrement=True,
)
