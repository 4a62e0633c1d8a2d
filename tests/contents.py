"""What lies in a folder of content: the bytes of each content that was neither removed nor erased."""

import struct
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.repository.store.objects.contents import content_references
from muniment.repository.store.objects.contents.stored_contents import stored_contents

_HEADER = struct.Struct(">4sI32s")


def contents(folder: Path) -> list[bytes]:
    """Every content that is kept, in files and in packs; what is unfinished is left out."""
    apart = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".lock")
    in_files = [path.read_bytes() for path in apart if path.parent.name not in ("incoming", "packs")]
    return in_files + [content for content, _ in pack(folder)]


def counted_uses(cx: Connection) -> dict[str, int]:
    """How many uses of each content are counted, by its key."""
    rows = cx.execute(sa.select(stored_contents.c.key, stored_contents.c.uses))
    return {row.key: row.uses for row in rows}


def counted_rows(cx: Connection) -> dict[str, int]:
    """How many rows name each content, by its key."""
    counts: dict[str, int] = {}
    for column in (table.c.content_key for table in content_references.TABLES):
        query = sa.select(column, sa.func.count()).where(column.is_not(None)).group_by(column)
        for key, number in cx.execute(query):
            counts[key] = counts.get(key, 0) + number
    return counts


def pack(folder: Path) -> Iterator[tuple[bytes, Path]]:
    """Every content in a pack, with its pack."""
    for pack in sorted((folder / "packs").glob("*")):
        data, offset = pack.read_bytes(), 0
        while offset + _HEADER.size <= len(data):
            magic, size, _ = _HEADER.unpack_from(data, offset)
            assert magic in (b"MPK1", b"MPK0"), f"{pack} has no header at {offset}"
            offset += _HEADER.size
            if magic == b"MPK1":
                yield data[offset : offset + size], pack
            offset += size


def spoil(folder: Path, content: bytes, *, at: int = 0) -> None:
    """Turn one byte of a content around, in its file or in its pack."""
    place, offset = _find(folder, content)
    _overwrite(place, offset + at, bytes([content[at] ^ 1]))


def lose(folder: Path, content: bytes) -> None:
    """Remove a content's file, or overwrite it and its header in its pack."""
    place, offset = _find(folder, content)
    if place.parent.name == "packs":
        _overwrite(place, offset - _HEADER.size, bytes(_HEADER.size + len(content)))
    else:
        place.unlink()


def _find(folder: Path, content: bytes) -> tuple[Path, int]:
    places = sorted(path for path in folder.rglob("*") if path.is_file())
    return next((path, path.read_bytes().index(content)) for path in places if content in path.read_bytes())


def _overwrite(place: Path, offset: int, data: bytes) -> None:
    with place.open("r+b") as file:
        file.seek(offset)
        file.write(data)
