"""The repository's first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

big_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables, the referenced ones first. The naming convention of muniment.db names the constraints."""
    _repositories()
    _types_and_acls()
    _objects()
    _beside_objects()


def _repositories() -> None:
    op.create_table(
        "repositories",
        sa.Column("id", big_id, primary_key=True),
        sa.Column("name", sa.String(120), nullable=False, unique=True),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("resource_id", sa.String(36), nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "changes",
        sa.Column("sequence", big_id, primary_key=True),
        sa.Column("transaction", sa.BigInteger, nullable=False),
        _repository(),
        sa.Column("object_id", sa.String(16), nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("noted", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_changes_order", "changes", ["repository_id", "transaction", "sequence"])


def _types_and_acls() -> None:
    op.create_table(
        "object_types",
        sa.Column("id", big_id, primary_key=True),
        _repository(),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("parent", sa.String(64), nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("repository_id", "name"),
    )
    op.create_table(
        "type_properties",
        sa.Column("id", big_id, primary_key=True),
        sa.Column("type_id", big_id, sa.ForeignKey("object_types.id"), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("repeating", sa.Boolean, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("type_id", "name"),
    )
    op.create_table(
        "acls",
        sa.Column("id", big_id, primary_key=True),
        _repository(),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("owner", sa.String(400), nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("modified", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("repository_id", "name"),
    )
    op.create_table(
        "acl_entries",
        sa.Column("acl_id", big_id, sa.ForeignKey("acls.id"), primary_key=True),
        sa.Column("accessor", sa.String(400), primary_key=True),
        sa.Column("permission", sa.SmallInteger, nullable=False),
    )
    op.create_index("ix_acl_entries_accessor", "acl_entries", ["accessor", "permission", "acl_id"])


def _objects() -> None:
    op.create_table(
        "objects",
        sa.Column("seq", big_id, primary_key=True),
        sa.Column("id", sa.String(16), nullable=False, unique=True),
        _repository(),
        sa.Column("type", sa.String(64), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("owner", sa.String(400), nullable=False),
        sa.Column("owner_key", sa.String(400), nullable=False),
        sa.Column("acl_id", big_id, sa.ForeignKey("acls.id"), nullable=False),
        sa.Column("folder_id", sa.String(16), sa.ForeignKey("objects.id"), nullable=True),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("creator", sa.String(400), nullable=False),
        sa.Column("modified", sa.BigInteger, nullable=False),
        sa.Column("modifier", sa.String(400), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("properties", sa.Text, nullable=False),
        sa.Column("media_type", sa.Text, nullable=False),
        sa.Column("content_key", sa.String(32), nullable=True, unique=True),
        sa.Column("content_size", sa.BigInteger, nullable=False),
        sa.Column("content_sha256", sa.LargeBinary, nullable=True),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_objects_acl_id", "objects", ["acl_id"])
    op.create_index("ix_objects_repository", "objects", ["repository_id", "seq"])
    op.create_index("ix_objects_folder", "objects", ["folder_id", "name", "seq"])


def _beside_objects() -> None:
    op.create_table(
        "texts",
        sa.Column("object_id", sa.String(16), primary_key=True),
        _repository(),
        sa.Column("content_key", sa.String(200), nullable=False),
        sa.Column("media_type", sa.Text, nullable=False),
        sa.Column("file_name", sa.Text, nullable=False),
        sa.Column("state", sa.String(11), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("losses", sa.Integer, nullable=False),
        sa.Column("lease", sa.String(36), nullable=True),
        sa.Column("due", sa.BigInteger, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_index("ix_texts_queue", "texts", ["state", "due"])
    op.create_index("ix_texts_states", "texts", ["repository_id", "state"])
    op.create_table(
        "unindexed",
        sa.Column("object_id", sa.String(16), primary_key=True),
        _repository(),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("noted", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "imports",
        sa.Column("repository_id", big_id, sa.ForeignKey("repositories.id"), primary_key=True),
        sa.Column("source", sa.String(64), primary_key=True),
        sa.Column("path", sa.String(64), primary_key=True),
        sa.Column("object_id", sa.String(16), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("modified", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
    )
    op.create_table(
        "links",
        sa.Column("digest", sa.LargeBinary(16), primary_key=True),
        _repository(),
        sa.Column("caller", sa.String(320), nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
        sa.Column("expires", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_links_expires", "links", ["expires"])


def _repository() -> sa.Column[int]:
    return sa.Column("repository_id", big_id, sa.ForeignKey("repositories.id"), nullable=False)
