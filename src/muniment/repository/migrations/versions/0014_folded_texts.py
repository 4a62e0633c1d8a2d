"""The folded form of a text that a database cannot fold is stored, so that lists compare all texts alike."""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

_objects = sa.table(
    "objects",
    sa.column("seq", sa.BigInteger),
    sa.column("name", sa.String),
    sa.column("owner", sa.String),
    sa.column("creator", sa.String),
    sa.column("modifier", sa.String),
    sa.column("media_type", sa.Text),
    sa.column("properties", sa.Text),
    sa.column("folded", sa.Text),
)
_TEXTS = {
    "object_name": "name",
    "owner_name": "owner",
    "r_creator_name": "creator",
    "r_modifier": "modifier",
    "a_content_type": "media_type",
}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLAIN = re.compile(r"[\x20-\x7e]{0,1000}")


def upgrade() -> None:
    """Add the column. Fill it for each object with a text that a database cannot fold itself."""
    op.add_column("objects", sa.Column("folded", sa.Text(), nullable=True))
    connection, last = op.get_bind(), 0
    columns = [_objects.c[name] for name in ("seq", "properties", *_TEXTS.values())]
    while rows := connection.execute(
        sa.select(*columns).where(_objects.c.seq > last).order_by(_objects.c.seq).limit(500)
    ).all():
        last = rows[-1].seq
        forms = [{"of": row.seq, "forms": _forms(row)} for row in rows]
        if wanted := [form for form in forms if form["forms"]]:
            update = _objects.update().where(_objects.c.seq == sa.bindparam("of"))
            connection.execute(update.values(folded=sa.bindparam("forms")), wanted)


def _forms(row: "sa.Row[tuple[object, ...]]") -> str | None:
    texts: Mapping[str, Sequence[object]] = json.loads(row.properties) | {
        name: [getattr(row, column)] for name, column in _TEXTS.items()
    }
    forms = {
        name: [_fold(str(value)) for value in values]
        for name, values in texts.items()
        if any(isinstance(value, str) and not _PLAIN.fullmatch(value) for value in values)
    }
    return json.dumps(forms, ensure_ascii=False, separators=(",", ":")) if forms else None


def _fold(text: str) -> str:
    """Fold a text to the form by which this release compared texts."""
    text = text[:4000]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        text = text.encode("utf-8", "replace").decode()
    return _CONTROL.sub(" ", text.casefold()[:1000])
