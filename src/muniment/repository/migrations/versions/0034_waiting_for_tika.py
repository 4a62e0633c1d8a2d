"""What waits for the Tika server is found without reading all texts."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    of_tika = sa.text("reason = 'It waits for the Tika server, which is away.' AND lease IS NULL")
    op.create_index("ix_texts_of_tika", "texts", ["object_id"], sqlite_where=of_tika, postgresql_where=of_tika)
