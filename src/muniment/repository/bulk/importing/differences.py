"""What differs between a folder and the record of its imports: which files are gone or moved?

The record has only a hash of each path: a moved file is found again by size and digest.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from muniment.repository.bulk.importing import record
from muniment.repository.bulk.importing.file_tree import FolderContents, printable
from muniment.repository.bulk.importing.record import ImportRecord
from muniment.repository.store.objects.table import StoredObject


class FormerFile(NamedTuple):
    """``key`` is that of the path under which it was imported."""

    key: str
    record: ImportRecord
    stored: StoredObject


class Differences(msgspec.Struct):
    """What has changed since the last import.

    ``moved`` has new paths; ``files`` and ``folders`` are gone, a folder after those that lay in it. ``files_before``
    were imported and still have objects.
    """

    moved: dict[str, FormerFile] = {}
    files: list[FormerFile] = []
    folders: list[FormerFile] = []
    files_before: int = 0


def compare(
    listing: FolderContents,
    records: Mapping[str, ImportRecord],
    alive: Mapping[str, StoredObject],
    digest: Callable[[str], str],
) -> Differences:
    """A path that was a folder and is a file now, or the reverse, is new.

    ``records`` go by the keys of paths, ``alive`` by chronicle id. ``digest`` returns an empty text for a file that
    cannot be read.
    """
    former = [
        FormerFile(key, import_record, alive[import_record.object_id])
        for key, import_record in records.items()
        if import_record.object_id in alive
    ]
    files, folders = (
        {each.key: each for each in former if (each.record.size < 0) == wanted} for wanted in (False, True)
    )
    differences = Differences(files_before=len(files))
    _match_files(differences, _missing(files, listing.files), listing, files, digest)
    _match_folders(differences, _missing(folders, listing.folders), listing, folders, alive)
    return differences


def _missing(former: Mapping[str, FormerFile], paths: Iterable[str]) -> list[FormerFile]:
    present = {record.key(path) for path in paths}
    return [each for key, each in former.items() if key not in present]


def _match_files(
    differences: Differences,
    missing: list[FormerFile],
    listing: FolderContents,
    files: Mapping[str, FormerFile],
    digest: Callable[[str], str],
) -> None:
    by_content: defaultdict[tuple[int, str], list[FormerFile]] = defaultdict(list)
    for each in missing:
        by_content[each.record.size, each.record.digest].append(each)
    sizes = {size for size, _ in by_content}
    for path, size in listing.files.items():
        if size not in sizes or record.key(path) in files:
            continue
        candidates = by_content[size, digest(path)]
        name = printable(os.path.basename(path))
        # If several had this content, the one with this name moved. Empty files are all alike, so the name decides.
        choice = next((each for each in candidates if each.stored.name == name), None)
        if choice is None and candidates and size:
            choice = candidates[0]
        if choice is not None:
            candidates.remove(choice)
            differences.moved[path] = choice
    differences.files = [each for some in by_content.values() for each in some]


def _match_folders(
    differences: Differences,
    missing: list[FormerFile],
    listing: FolderContents,
    folders: Mapping[str, FormerFile],
    alive: Mapping[str, StoredObject],
) -> None:
    """A new folder with a file of a folder that is gone counts as that one, by the first file if there are several.
    Then their parents are compared likewise.
    """
    folders_left = {each.record.object_id: each for each in missing}
    new = {path for path in listing.folders if record.key(path) not in folders}
    for path, file in list(differences.moved.items()):
        place, origin = os.path.dirname(path), file.stored.folder_id
        while place in new and origin is not None and origin in folders_left:
            differences.moved[place] = folders_left.pop(origin)
            new.remove(place)
            place, origin = os.path.dirname(place), alive[origin].folder_id
    differences.folders = sorted(folders_left.values(), key=lambda each: _depth(each.stored, alive), reverse=True)


def _depth(stored: StoredObject, alive: Mapping[str, StoredObject]) -> int:
    depth, above = 0, stored.folder_id
    while above is not None and above in alive and depth < len(alive):
        depth, above = depth + 1, alive[above].folder_id
    return depth
