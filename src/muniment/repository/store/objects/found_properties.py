"""What does a file say about itself? It fills properties that have no value.

A content always has a date. The date in the file replaces one that nobody gave: the moment when the repository got the
content (docs/decisions/0096).
"""

import contextlib
from collections.abc import Mapping, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant, read_timestamp
from muniment.repository.store.change_log import changes
from muniment.repository.store.extraction.queue import Job
from muniment.repository.store.objects.properties import properties, stored_values
from muniment.repository.store.objects.table import StoredObject, fold_texts, objects, read_row

_EARLIEST = read_timestamp("1900-01-01")
"""An earlier date, as one in the future, comes from a clock that was not set."""


def keep_found_properties(cx: Connection, job: Job, found: Mapping[str, Sequence[str]], now: Instant) -> None:
    """Keep what a file says of itself, and note the change, unless the object has another content by now. Revision and
    modification date stay: nobody changed the object.
    """
    is_same = sa.and_(objects.c.id == job.object_id, objects.c.content_key == job.content_key)
    query = sa.select(objects).where(is_same).with_for_update()
    row = cx.execute(query).first()
    if row is None:
        return
    stored = read_row(row)
    texts = {name: list(values) for name, values in found.items() if name != "a_content_date"}
    new = {name: values for name, values in texts.items() if not stored.properties.get(name)}
    date = _date(found.get("a_content_date", ()), now) if _was_dated_by_nobody(stored, job) else None
    if not new and date is None:
        return
    completed = msgspec.structs.replace(stored, properties={**stored.properties, **new})
    columns = {
        "properties": stored_values.encode(completed.properties),
        "folded": fold_texts(completed),
        "content_date": stored.content_date if date is None else date,
    }
    cx.execute(objects.update().where(objects.c.seq == stored.seq).values(**columns))
    changes.note(cx, stored.repository_id, stored.id, "properties", now)


def _was_dated_by_nobody(stored: StoredObject, job: Job) -> bool:
    # A content may come with its object or later; then other changes, or other readings, may have followed.
    return stored.content_date in {properties.milliseconds(each) for each in (stored.created, stored.modified, job.due)}


def _date(dates: Sequence[str], now: Instant) -> Instant | None:
    for text in dates:
        with contextlib.suppress(ValueError):
            if _EARLIEST <= (date := properties.milliseconds(read_timestamp(text))) <= now:
                return date
    return None
