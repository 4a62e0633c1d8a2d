"""Make the directory's first schema."""

import sqlalchemy as sa
from alembic import op

revision = "directory_0001"
down_revision = None
branch_labels = None
depends_on = None

_BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "entries",
        sa.Column("id", _BIG_ID, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("partition_id", _BIG_ID),
        sa.Column("parent_id", _BIG_ID),
        sa.Column("built_in", sa.String(20)),
        sa.Column("space", sa.String(30), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("name_key", sa.String(400), nullable=False),
        sa.Column("units", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("password_hash", sa.String(255)),
        sa.Column("disabled", sa.Boolean, nullable=False),
        sa.Column("locked", sa.Boolean, nullable=False),
        sa.Column("password_never_expires", sa.Boolean, nullable=False),
        sa.Column("must_change_password", sa.Boolean, nullable=False),
        sa.Column("cannot_change_password", sa.Boolean, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("paused_until", sa.BigInteger, nullable=False),
        sa.Column("attempted", sa.BigInteger, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("modified", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_entries"),
        sa.UniqueConstraint("uuid", name="uq_entries_uuid"),
        sa.UniqueConstraint("space", "name_key", name="uq_entries_space_name_key"),
        sa.ForeignKeyConstraint(["partition_id"], ["entries.id"], name="fk_entries_partition_id"),
        sa.ForeignKeyConstraint(["parent_id"], ["entries.id"], name="fk_entries_parent_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_entries_listing", "entries", ["partition_id", "kind", "name_key"])
    op.create_index("ix_entries_parent_id", "entries", ["parent_id"])
    op.create_table(
        "memberships",
        sa.Column("group_id", _BIG_ID, nullable=False),
        sa.Column("member_id", _BIG_ID, nullable=False),
        sa.PrimaryKeyConstraint("group_id", "member_id", name="pk_memberships"),
        sa.ForeignKeyConstraint(["group_id"], ["entries.id"], name="fk_memberships_group_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["member_id"], ["entries.id"], name="fk_memberships_member_id", ondelete="CASCADE"),
    )
    op.create_index("ix_memberships_member_id", "memberships", ["member_id"])
    op.create_table(
        "user_attributes",
        sa.Column("entry_id", _BIG_ID, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("entry_id", "name", name="pk_user_attributes"),
        sa.ForeignKeyConstraint(["entry_id"], ["entries.id"], name="fk_user_attributes_entry_id", ondelete="CASCADE"),
    )
    op.create_table(
        "system_attributes",
        sa.Column("name_key", sa.String(600), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("modified", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name_key", name="pk_system_attributes"),
    )
    op.create_table(
        "keys",
        sa.Column("purpose", sa.String(20), nullable=False),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("purpose", name="pk_keys"),
    )
    _resources()
    _tokens()


def _resources() -> None:
    op.create_table(
        "resources",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("name_key", sa.String(400), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("built_in", sa.String(20)),
        sa.Column("activated", sa.BigInteger),
        sa.Column("secret_digest", sa.LargeBinary),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_resources"),
        sa.UniqueConstraint("name_key", name="uq_resources_name_key"),
    )
    op.create_table(
        "access_roles",
        sa.Column("id", _BIG_ID, nullable=False),
        sa.Column("resource_id", sa.String(36), nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_access_roles"),
        sa.UniqueConstraint("resource_id", name="uq_access_roles_resource_id"),
        sa.ForeignKeyConstraint(
            ["resource_id"], ["resources.id"], name="fk_access_roles_resource_id", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "access_role_members",
        sa.Column("role_id", _BIG_ID, nullable=False),
        sa.Column("entry_id", _BIG_ID, nullable=False),
        sa.PrimaryKeyConstraint("role_id", "entry_id", name="pk_access_role_members"),
        sa.ForeignKeyConstraint(
            ["role_id"], ["access_roles.id"], name="fk_access_role_members_role_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["entry_id"], ["entries.id"], name="fk_access_role_members_entry_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_access_role_members_entry_id", "access_role_members", ["entry_id"])


def _tokens() -> None:
    op.create_table(
        "grants",
        sa.Column("id", _BIG_ID, nullable=False),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.Column("client_id", sa.BigInteger, nullable=False),
        sa.Column("resource_id", sa.String(36), nullable=False),
        sa.Column("refresh_digest", sa.LargeBinary, nullable=False),
        sa.Column("refresh_expires", sa.BigInteger, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("revoked", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_grants"),
        sa.UniqueConstraint("refresh_digest", name="uq_grants_refresh_digest"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_grants_user_id", "grants", ["user_id"])
    op.create_index("ix_grants_refresh_expires", "grants", ["refresh_expires"])
    op.create_table(
        "access_tokens",
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("grant_id", _BIG_ID, nullable=False),
        sa.Column("issued", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_access_tokens"),
        sa.ForeignKeyConstraint(["grant_id"], ["grants.id"], name="fk_access_tokens_grant_id", ondelete="CASCADE"),
    )
    op.create_index("ix_access_tokens_grant_id", "access_tokens", ["grant_id"])
    op.create_table(
        "tickets",
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("user_id", _BIG_ID, nullable=False),
        sa.Column("resource_id", sa.String(36), nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_tickets"),
        sa.ForeignKeyConstraint(["user_id"], ["entries.id"], name="fk_tickets_user_id", ondelete="CASCADE"),
    )
    op.create_index("ix_tickets_user_id", "tickets", ["user_id"])
    op.create_index("ix_tickets_expires", "tickets", ["expires"])
