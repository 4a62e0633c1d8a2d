"""A file in which no text was found has a state of its own. Every content has a date.

The content of an imported file gets the modification time of the file, if the import recorded it for these bytes. Any
other content is dated to the last change of its object.
"""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"

_FROM_FILES = """
UPDATE objects SET content_date = imports.modified / 1000000 * 1000 FROM imports
WHERE imports.object_id = coalesce(objects.chronicle_id, objects.id)
AND imports.repository_id = objects.repository_id AND imports.digest = {digest}
"""
_DIGESTS = {"postgresql": "encode(objects.content_sha256, 'hex')", "sqlite": "lower(hex(objects.content_sha256))"}


def upgrade() -> None:
    """Rename the state, add the column, and fill it."""
    op.execute("UPDATE texts SET state = 'no-text' WHERE state = 'empty'")
    op.add_column("objects", sa.Column("content_date", sa.BigInteger(), nullable=True))
    op.execute("UPDATE objects SET content_date = modified - modified % 1000 WHERE content_key IS NOT NULL")
    op.execute(_FROM_FILES.format(digest=_DIGESTS[op.get_bind().dialect.name]))
