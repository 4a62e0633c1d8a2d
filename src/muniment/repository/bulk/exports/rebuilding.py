"""How does an import make a repository from an export, line by line, and open it only when all of it is there?

First it checks all that can be checked without writing. Until the end, the repository has no guard (``progress``). Each
transaction stores some lines and notes the progress: so a killed import can go on, and nobody sees half a repository.

Source: docs/export.md; decision 0082.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from sqlalchemy.engine import Connection

from muniment.database.connections import Database, repository_tables
from muniment.ground.clock import Instant
from muniment.ground.refusals import Refusal
from muniment.repository.bulk.exports import content_files, keeping, lines, manifest, object_lines, progress
from muniment.repository.bulk.exports.destination import ContentArrivals, Destination, Stage
from muniment.repository.bulk.exports.lines import LinePlace
from muniment.repository.bulk.exports.making import Progress
from muniment.repository.bulk.exports.manifest import ExportManifest
from muniment.repository.bulk.exports.naming import BearerKeys
from muniment.repository.bulk.exports.progress import UnfinishedImport
from muniment.repository.bulk.exports.records import FILES, OBJECTS, BearerLine, ExportLine, ObjectLine
from muniment.repository.refusals import BadExport, InUse, VersionConflict
from muniment.repository.store import repositories
from muniment.repository.store.content.contract import ContentStore
from muniment.repository.store.objects.contents import content_references
from muniment.repository.store.objects.decisions import imported_objects
from muniment.repository.store.permissions import acl_rows
from muniment.repository.store.permissions.name_keys import Identify
from muniment.repository.store.repositories import Repository

_TRIES = 5

STAGES: tuple[tuple[str, str, Stage], ...] = (
    ("types", "types.jsonl", keeping.types_of),
    ("relation types", "relation-types.jsonl", keeping.relation_types_of),
    ("ACLs", "acls.jsonl", keeping.acls_of),
    ("objects", OBJECTS, object_lines.objects_of),
    ("folders", OBJECTS, object_lines.folders_of),
    ("relations", "relations.jsonl", keeping.relations_of),
    ("comments", "comments.jsonl", keeping.comments_of),
    ("saved searches", "saved-searches.jsonl", keeping.saved_searches_of),
)

_FINISHED = "finished"
_STAGE_NAMES = (*(name for name, _, _ in STAGES), _FINISHED)

_HOLDING = ("objects", "wastebasket", "object_types", "relation_types", "saved_searches")


class CheckedExport(NamedTuple):
    """Its manifest describes its files, its lines can be read, its contents are there. ``digest`` is that of the
    manifest.
    """

    folder: Path
    manifest: ExportManifest
    digest: str
    bearers: tuple[BearerLine, ...]


def inspect(folder: Path, show: Progress) -> CheckedExport:
    """Raises BadExport, OSError."""
    described, digest = manifest.read(folder)
    bearer_lines = list[BearerLine]()
    for name in FILES:
        if name not in described.files:
            raise BadExport(f"{manifest.NAME} does not describe {name}.")
        summary = described.files[name]
        for number, text in lines.numbered(folder / name, summary):
            line = lines.read(name, number, text)
            if isinstance(line, ObjectLine):
                _look_for_contents(folder, number, line)
            elif isinstance(line, BearerLine):
                bearer_lines.append(line)
            if number % lines.PORTION == 0:
                show(f"{name} checked", number, summary.lines)
    return CheckedExport(folder, described, digest, tuple(bearer_lines))


def _look_for_contents(folder: Path, number: int, line: ObjectLine) -> None:
    for content in line.contents:
        if not content_files.has_content(folder, content.sha256, content.size):
            path = content_files.path_of(content.sha256)
            raise lines.bad_line(
                OBJECTS, number, f"the file {path} is missing, or does not have the size {content.size}"
            )


def begin(cx: Connection, repository: Repository, export: CheckedExport, resource_id: str) -> None:
    """Close an empty repository for an import, or go on with its own.

    ``resource_id`` is to guard it afterwards; an import that was begun keeps its own if this is empty.

    Raises InUse if the repository holds anything, another export was begun, or one of the first exported objects is in
    this installation.
    """
    repositories.lock(cx, repository)
    present = progress.unfinished_import_of(cx, repository)
    if present is None:
        _check_empty(cx, repository)
        _check_absent(cx, export)
        acl_rows.remove_every(cx, repository.id)
        repositories.guard(cx, repository, "")
        progress.begin(cx, repository, UnfinishedImport(export.digest, resource_id, _STAGE_NAMES[0], LinePlace()))
    elif present.export != export.digest:
        raise InUse(
            f"The import of another export into {repository.name!r} is not finished: go on with that one, or first "
            "remove the repository with 'repository remove --with-everything'."
        )
    elif resource_id:
        progress.advance(cx, repository, present, present._replace(resource_id=resource_id))


def _check_absent(cx: Connection, export: CheckedExport) -> None:
    """Raise InUse if one of the first objects is in this installation; each is checked again when stored."""
    first = next(lines.portions(export.folder / OBJECTS, LinePlace()), ([], LinePlace()))[0]
    taken = imported_objects.taken(cx, [line.id for line in first if isinstance(line, ObjectLine)])
    if taken:
        raise InUse(
            f"This installation has the object {taken[0]!r} of the export already. Objects keep their ids, so two "
            "repositories of one installation cannot hold the same export: first remove the one that was exported."
        )


def _check_empty(cx: Connection, repository: Repository) -> None:
    for name in _HOLDING:
        table = repository_tables.tables[name]
        if cx.execute(table.select().where(table.c.repository_id == repository.id).limit(1)).first():
            what = name.replace("_", " ")
            raise InUse(f"The repository {repository.name!r} is not empty: it holds {what}. Name another one.")
    if acl_rows.has_own(cx, repository.id):
        raise InUse(f"The repository {repository.name!r} is not empty: it holds ACLs. Name another one.")


def run(
    database: Database,
    store: ContentStore,
    repository: Repository,
    export: CheckedExport,
    identify: Identify,
    clock: Callable[[], Instant],
    show: Progress,
) -> None:
    """If the process is killed, the next call goes on. Raises BadExport for a line that cannot be stored, InUse,
    VersionConflict, NotStored, OSError, Busy; then what was stored stays, and nobody can enter.
    """
    to = Destination(repository, BearerKeys(export.bearers, identify), ContentArrivals(store, export.folder))
    with database.read() as cx:
        state = progress.unfinished_import_of(cx, repository)
    if state is None:
        raise InUse(f"No import into {repository.name!r} was begun.")
    for name, file, stage in STAGES[_STAGE_NAMES.index(state.stage) :]:
        total = export.manifest.files[file].lines
        for some, place in lines.portions(export.folder / file, state.place):
            state = _keep(database, to, stage, some, state, state._replace(place=place), clock)
            show(name, place.line, total)
        following = state._replace(stage=_STAGE_NAMES[_STAGE_NAMES.index(name) + 1], place=LinePlace())
        with database.begin() as cx:
            progress.advance(cx, repository, state, following)
        state = following


def _keep(
    database: Database,
    to: Destination,
    stage: Stage,
    some: Sequence[ExportLine],
    state: UnfinishedImport,
    following: UnfinishedImport,
    clock: Callable[[], Instant],
) -> UnfinishedImport:
    for attempt in range(1, _TRIES + 1):
        uploaded = to.contents.upload(some)
        try:
            with database.begin() as cx:
                progress.advance(cx, to.repository, state, following)
                named = stage(cx, to, some, state.place.line, clock()) or ()
        except Refusal as refusal:  # so nothing was committed
            to.contents.remove(uploaded)
            if not isinstance(refusal, VersionConflict) or attempt == _TRIES:
                raise
            to.contents.forget()
            to.bearers.forget()
            continue
        content_references.drop_spares(database, to.contents.store, uploaded, named)
        to.contents.remember(named)
        return following
    raise AssertionError  # the last attempt returns or raises


def finish(cx: Connection, repository: Repository) -> str:
    """Return the resource that is to guard the repository.

    Raises InUse if lines are missing, BadExport if the versions of an object do not fit together.
    """
    state = progress.unfinished_import_of(cx, repository)
    if state is None or state.stage != _FINISHED:
        raise InUse(f"The import into {repository.name!r} is not finished.")
    if chronicle_id := imported_objects.broken_tree(cx, repository.id):
        raise BadExport(f"{OBJECTS}: the versions of {chronicle_id} do not have exactly one current version.")
    progress.end(cx, repository)
    return state.resource_id
