"""Which file of an export holds a content's bytes? It is named by their digest, as ``content/ab/cd/abcd...``, once they
were found to have it. Equal bytes are in one file.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from muniment.ground import disk
from muniment.repository.bulk.exports.lines import open_regular
from muniment.repository.refusals import BadExport, ContentDamaged
from muniment.repository.store.content.contract import PIECE, StoredContent

FOLDER = "content"
LIST = "contents.sha256"
"""It lists all contents as sha256sum does, in the order of their digests."""


def path_of(sha256: str) -> str:
    return f"{FOLDER}/{sha256[:2]}/{sha256[2:4]}/{sha256}"


def begin(folder: Path) -> None:
    shutil.rmtree(_incoming(folder), ignore_errors=True)
    _incoming(folder).mkdir(mode=0o700, parents=True)


def end(folder: Path) -> None:
    shutil.rmtree(_incoming(folder))


def write(folder: Path, content: StoredContent, read: Callable[[StoredContent], Iterable[bytes]]) -> bool:
    """Write a content unless its file has the right bytes; return False if the store's are damaged.

    The caller syncs the disk after all contents.

    Raises OSError, NotStored.
    """
    digest = content.sha256.hex()
    target, part = folder / path_of(digest), _incoming(folder) / digest
    if _is_right(target, content):
        return True
    own_digest = hashlib.sha256()
    try:
        with disk.create(part) as file:
            for piece in read(content):
                own_digest.update(piece)
                file.write(piece)
    except ContentDamaged:
        part.unlink()
        return False
    if own_digest.digest() != content.sha256:
        part.unlink()
        return False
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part.replace(target)
    return True


def prune(folder: Path, digests: Iterator[str]) -> int:
    """Remove content files of an earlier export that this one does not need; return how many.

    ``digests`` are in ascending order.
    """
    count, wanted = 0, next(digests, None)
    for first in _sorted(folder / FOLDER):
        for second in _sorted(first) if first.name != _incoming(folder).name else ():
            for file in _sorted(second):
                while wanted is not None and wanted < file.name:
                    wanted = next(digests, None)
                if file.name != wanted:
                    file.unlink()
                    count += 1
    return count


def has_content(folder: Path, sha256: str, size: int) -> bool:
    """The file's bytes are not read."""
    try:
        return (folder / path_of(sha256)).lstat().st_size == size
    except OSError:
        return False


def read(folder: Path, sha256: str, size: int) -> Iterator[bytes]:
    """Raises BadExport before the last piece for another digest or size."""
    name, digest, left = path_of(sha256), hashlib.sha256(), size
    with open_regular(folder / name) as file:
        if os.fstat(file.fileno()).st_size != size:
            raise BadExport(f"{name} is damaged: it does not have the size that the line says.")
        while piece := file.read(min(PIECE, left)):
            digest.update(piece)
            left -= len(piece)
            if left == 0 and digest.hexdigest() != sha256:
                raise BadExport(f"{name} is damaged: its bytes have another digest.")
            yield piece
    if left or digest.hexdigest() != sha256:
        raise BadExport(f"{name} is damaged: its bytes have another digest.")


def _is_right(file: Path, content: StoredContent) -> bool:
    try:
        for _piece in read(file.parents[3], content.sha256.hex(), content.size):
            pass
    except BadExport:
        return False
    return True


def _incoming(folder: Path) -> Path:
    return folder / FOLDER / "incoming"


def _sorted(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
