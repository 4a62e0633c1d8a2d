"""What does a file say about itself? That becomes the value of those properties for which its object has none."""

from collections.abc import Mapping, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.clock import Instant
from muniment.repository.change_log import changes
from muniment.repository.objects.properties import stored_values
from muniment.repository.objects.table import fold_texts, objects, read_row


def keep(cx: Connection, object_id: str, content_key: str, found: Mapping[str, Sequence[str]], now: Instant) -> None:
    """Give an object the values that its file holds, by the names of properties, and note the change.

    Nothing changes if the object has another content by now. The revision and the date of modification stay as they
    are: nobody changed the object.
    """
    query = sa.select(objects).where(objects.c.id == object_id, objects.c.content_key == content_key).with_for_update()
    row = cx.execute(query).first()
    if row is None:
        return
    stored = read_row(row)
    new = {name: list(values) for name, values in found.items() if not stored.properties.get(name)}
    if not new:
        return
    completed = msgspec.structs.replace(stored, properties={**stored.properties, **new})
    columns = {"properties": stored_values.encode(completed.properties), "folded": fold_texts(completed)}
    cx.execute(objects.update().where(objects.c.seq == stored.seq).values(**columns))
    changes.note(cx, stored.repository_id, stored.id, "properties", now)
