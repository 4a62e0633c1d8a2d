"""How do lines become objects, which get into their folders afterwards?"""

import re
from collections.abc import Collection, Mapping, Sequence

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.repository.bulk.exports.destination import Destination, about, refuse_dangling
from muniment.repository.bulk.exports.lines import bad_line
from muniment.repository.bulk.exports.naming import meant
from muniment.repository.bulk.exports.records import OBJECTS, ExportLine, FurtherContentLine, ObjectLine
from muniment.repository.refusals import WrongValue
from muniment.repository.store.content.contract import StoredContent
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.contents import further_contents
from muniment.repository.store.objects.contents.further_contents import ContentPlace, ObjectContent
from muniment.repository.store.objects.decisions import imported_objects
from muniment.repository.store.objects.decisions.imported_objects import Arrival
from muniment.repository.store.objects.folders import filing
from muniment.repository.store.objects.listing import object_ids
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.properties.properties import fit, milliseconds
from muniment.repository.store.objects.properties.version import CURRENT, FIRST, Lock, Version
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.objects.types.object_types import Catalogue
from muniment.repository.store.permissions import acl_rows
from muniment.repository.store.permissions.principals import Principals

_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){1,63}")
_NOBODY = Principals("", administrator=True)


def objects_of(
    cx: Connection, to: Destination, some: Sequence[ExportLine], before: int, now: Instant
) -> list[StoredContent]:
    """Leave an object in no folder until all its folders are there (``folders_of``)."""
    object_lines = [line for line in some if isinstance(line, ObjectLine)]
    view = RepositoryView.read(cx, to.repository, _NOBODY)
    ids = [line.id for line in object_lines]
    if len(set(ids)) < len(ids):
        at = next(at for at, object_id in enumerate(ids) if object_id in ids[:at])
        raise bad_line(OBJECTS, before + 1 + at, f"the object {ids[at]!r} is there twice")
    if taken := imported_objects.taken(cx, ids):
        number = before + 1 + ids.index(taken[0])
        raise bad_line(OBJECTS, number, f"this installation has an object {taken[0]!r} already")
    named_acls = {acl for line in object_lines for acl in (line.acl, line.default_acl) if acl is not None}
    acl_keys = acl_rows.keys_of(cx, to.repository.id, named_acls)
    to.bearers.look_up(cx, [meant(line.owner_key, line.owner) for line in object_lines], now)
    locks = [line.lock for line in object_lines if line.lock is not None]
    to.bearers.look_up(cx, [meant(lock.owner_key, lock.owner) for lock in locks], now)
    present = imported_objects.present(cx, to.repository.id, {each for line in object_lines for each in line.folders})
    new = list[Arrival]()
    for number, line in enumerate(object_lines, before + 1):
        for acl in (line.acl, line.default_acl):
            if acl is not None and acl not in acl_keys:
                raise refuse_dangling(OBJECTS, number, "the ACL", acl)
        with about(OBJECTS, number):
            new.append(_arrival(view, to, line, acl_keys, present))
        present.add(line.id)
    with about(OBJECTS, before + 1, before + len(some)):
        return imported_objects.keep_arrivals(cx, view, new, to.contents.shared(object_lines), now)


def folders_of(cx: Connection, to: Destination, some: Sequence[ExportLine], before: int, now: Instant) -> None:
    """Put objects that came before a folder into all their folders.

    A version's antecedent must be there, and no other repository may hold versions of its tree; the first version,
    whose id is the chronicle id, may be missing.
    """
    object_lines = {line.id: line for line in some if isinstance(line, ObjectLine)}
    stored_objects = inventory.rows(cx, to.repository.id, object_lines)
    named = {each for line in object_lines.values() for each in (*line.folders, line.antecedent) if each}
    trees = {line.chronicle for line in object_lines.values() if line.chronicle}
    foreign = imported_objects.foreign_trees(cx, to.repository.id, trees)
    present = imported_objects.present(cx, to.repository.id, named)
    for number, line in enumerate(object_lines.values(), before + 1):
        stored = stored_objects.get(line.id)
        if stored is None:
            raise refuse_dangling(OBJECTS, number, "the object", line.id)
        for each in (*line.folders, line.antecedent):
            if each is not None and each not in present:
                raise refuse_dangling(OBJECTS, number, "the object", each)
        if line.chronicle in foreign:
            raise bad_line(OBJECTS, number, f"the versions of {line.chronicle!r} belong to another repository")
        if stored.folder_ids != line.folders:
            if object_ids.holds_objects(line.id) and line.id in filing.with_all_above(cx, line.folders):
                raise bad_line(OBJECTS, number, "the folder would lie in itself")
            imported_objects.link(cx, stored, line.folders, now)


def _arrival(
    view: RepositoryView, to: Destination, line: ObjectLine, acl_keys: Mapping[str, int], present: Collection[str]
) -> Arrival:
    catalogue = view.catalogue
    if not object_ids.fits(line.id, catalogue, line.type):
        raise WrongValue(f"The id {line.id!r} is not that of an object of the type {line.type!r}.")
    holds_objects = object_ids.holds_objects(line.id)
    if not line.name or (holds_objects and line.contents):
        raise WrongValue("An object has a name, and a folder has no content.")
    _check_folders(line)
    _check_properties(line, catalogue)
    contents = to.contents
    stored = StoredObject(
        seq=0,
        id=line.id,
        repository_id=view.repository.id,
        type=line.type,
        name=line.name,
        owner=line.owner,
        owner_key=to.bearers.of(line.owner_key, line.owner),
        acl_id=acl_keys[line.acl],
        folder_id=None,
        created=line.created,
        creator=line.creator,
        modified=line.modified,
        modifier=line.modifier,
        revision=line.revision,
        properties=line.properties,
        media_type=line.media_type,
        content_date=_content_date(line),
        content=contents.of(line.content) if line.content else None,
        version=_version(line, to),
        default_acl_id=acl_keys[line.default_acl] if line.default_acl is not None else None,
    )
    if line.folders and all(folder_id in present for folder_id in line.folders):
        stored = msgspec.structs.replace(stored, folder_id=line.folders[0], further_folders=tuple(line.folders[1:]))
    return Arrival(stored, tuple([_further(line.id, each, contents.of(each)) for each in line.further_contents]))


def _content_date(line: ObjectLine) -> Instant | None:
    """Take the last change for lines of earlier releases, which have no date."""
    if line.content is None or line.content_date is not None:
        return line.content_date
    return milliseconds(line.modified)


def _check_folders(line: ObjectLine) -> None:
    is_cabinet = object_ids.kind_of(line.id) == "cabinet"
    if any(not object_ids.holds_objects(each) or each == line.id for each in line.folders):
        raise WrongValue("It lies in something that is no folder.")
    if len(set(line.folders)) < len(line.folders) or (is_cabinet and line.folders):
        raise WrongValue("It lies in one folder twice, or is a cabinet in a folder.")
    if object_ids.kind_of(line.id) == "folder" and not line.folders:
        raise WrongValue("A folder lies in a cabinet or in another folder.")


def _check_properties(line: ObjectLine, catalogue: Catalogue) -> None:
    definitions = catalogue.properties_of(line.type)
    for name, values in line.properties.items():
        definition = definitions.get(name)
        if definition is None or not definition.writable:
            raise WrongValue(f"The type {line.type!r} has no property {name[:64]!r} that an export could set.")
        if not fit(definition, values):
            longest = f" with at most {definition.length} characters" if definition.kind == "string" else ""
            raise WrongValue(
                f"The values of {name!r} do not fit the property, which is of kind {definition.kind}{longest}."
            )


def _version(line: ObjectLine, to: Destination) -> Version:
    if line.chronicle is None and (line.antecedent or line.labels or line.superseded or line.comment):
        raise WrongValue("It is a version of no tree: 'chronicle' is missing.")
    if line.chronicle is None and line.lock is None:
        return FIRST
    labels = tuple(line.labels) or FIRST.labels
    if object_ids.holds_objects(line.id) or not _NUMBER.fullmatch(labels[0]):
        raise WrongValue("The labels of a version begin with its number, and a folder has no versions.")
    lock = line.lock
    return Version(
        line.chronicle,
        line.antecedent,
        labels,
        CURRENT not in labels,
        line.superseded,
        line.comment,
        Lock(lock.owner, to.bearers.of(lock.owner_key, lock.owner), lock.since) if lock else None,
    )


def _further(object_id: str, line: FurtherContentLine, content: StoredContent) -> ObjectContent:
    if line.primary:
        place = ContentPlace(True, line.page)
    else:
        place = further_contents.rendition(line.media_type, line.page, line.modifier)
    if line.format is not None:
        place = place._replace(format=line.format)
    if place.is_main:
        raise WrongValue("The main content stands under 'content'.")
    return ObjectContent(0, object_id, place, line.media_type, line.added, content)
