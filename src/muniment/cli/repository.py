"""Commands about types, ACLs, the index and the content of a repository."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from muniment import app, clock, initialise
from muniment.cli import terminal
from muniment.data_folder import DataFolder
from muniment.db import Database
from muniment.exit_codes import Exit, Failure
from muniment.repository import removal, repositories
from muniment.repository.change_log import changes
from muniment.repository.content.contract import ContentStore
from muniment.repository.extraction import queue
from muniment.repository.index_agent import agent
from muniment.repository.objects import object_types, objects
from muniment.repository.objects.object_types import ObjectType
from muniment.repository.objects.objects import StoredObject
from muniment.repository.objects.properties import PropertyDefinition, PropertyKind
from muniment.repository.permissions import acl_entries, acl_names, acls
from muniment.repository.permissions.acls import AclSummary
from muniment.repository.permissions.principals import Permission
from muniment.repository.refusals import IndexUnavailable

type_ = typer.Typer(no_args_is_help=True, help="Object types and their properties.")
acl = typer.Typer(no_args_is_help=True, help="ACLs: who may do how much with the objects that carry them.")
index = typer.Typer(no_args_is_help=True, help="The index of a repository.")

content = typer.Typer(no_args_is_help=True, help="The bytes of documents.")

COMMANDS = {"type": type_, "acl": acl, "index": index, "content": content}

_AT_A_TIME = 500

RepositoryOption = Annotated[str, typer.Option("--repository", "-r", help="Name of the repository.")]
AclName = Annotated[str, typer.Argument(metavar="ACL", help="Its name, its id, or owner/name as 'acl list' shows it.")]
NewAclName = Annotated[str, typer.Argument(metavar="ACL")]
Entries = Annotated[
    list[str],
    typer.Argument(
        metavar="ACCESSOR=PERMISSION...",
        help="name@partition, owner or world, and NONE, BROWSE, READ, RELATE, VERSION, WRITE or DELETE.",
    ),
]


@type_.command("list")
def list_types(context: typer.Context, repository_name: RepositoryOption = initialise.REPOSITORY) -> None:
    """List the types, each with the properties it adds to its parent's."""
    data: DataFolder = context.obj
    with data.database("repository") as database, database.read() as cx:
        catalogue = object_types.catalogue(cx, repositories.find(cx, repository_name).id)
        rows = [
            (kind.name, kind.parent or "", ", ".join(_describe_property(definition) for definition in kind.properties))
            for kind in catalogue.types()
        ]
    terminal.table(("Type", "Parent", "Properties"), rows)


@type_.command("add")
def add_type(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    parent: Annotated[str, typer.Option(help="The type it refines.")] = "document",
    repository_name: RepositoryOption = initialise.REPOSITORY,
) -> None:
    """Make a type."""
    data: DataFolder = context.obj
    with data.database("repository") as database, database.begin() as cx:
        object_types.add_type(cx, repositories.find(cx, repository_name).id, ObjectType(name, parent), data.now)


@type_.command("property")
def add_property(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TYPE")],
    property_name: Annotated[str, typer.Argument(metavar="PROPERTY")],
    kind: Annotated[str, typer.Argument(metavar="KIND", help="string, integer, double, boolean, date or id.")],
    repeating: Annotated[bool, typer.Option("--repeating", help="It has several values.")] = False,
    repository_name: RepositoryOption = initialise.REPOSITORY,
) -> None:
    """Add a property to a type; it is searchable at once."""
    data: DataFolder = context.obj
    if kind not in get_args(PropertyKind):
        raise Failure(f"There is no kind {kind!r}: use {', '.join(get_args(PropertyKind))}.", Exit.USAGE)
    definition = PropertyDefinition(property_name, cast("PropertyKind", kind), repeating)
    with data.database("repository") as database, database.begin() as cx:
        object_types.add_property(cx, repositories.find(cx, repository_name).id, name, definition, data.now)


@type_.command("load")
def load_types(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE")],
    repository_name: RepositoryOption = initialise.REPOSITORY,
) -> None:
    """Add the types and properties of a types file (TOML) that the repository does not have yet."""
    data: DataFolder = context.obj
    content = file.read_bytes()
    with data.database("repository") as database, database.begin() as cx:
        additions = object_types.load_types_file(cx, repositories.find(cx, repository_name).id, content, data.now)
    for what in additions or ["nothing new"]:
        terminal.line(what)


@acl.command("list")
def list_acls(context: typer.Context, repository_name: RepositoryOption = initialise.REPOSITORY) -> None:
    """List the ACLs, each as --acl takes it, and by its id."""
    data: DataFolder = context.obj
    principals, rows = initialise.administrator(data), list[tuple[str, str, str, str]]()
    with data.database("repository") as database, database.read() as cx:
        repository_id, after = repositories.find(cx, repository_name).id, ("", "")
        while page := acls.page(cx, repository_id, principals, _AT_A_TIME, after=after):
            entries = acl_entries.by_name(cx, acl_entries.of(cx, [summary.id for summary in page]))
            rows += [
                (
                    callable_name(summary),
                    summary.shown_id,
                    summary.owner,
                    _describe_entries(entries.get(summary.id, {})),
                )
                for summary in page
            ]
            after = page[-1].name, page[-1].shown_id
    terminal.table(("ACL", "Id", "Owner", "Entries"), rows)


@acl.command("add")
def add_acl(
    context: typer.Context,
    name: NewAclName,
    entries: Entries,
    repository_name: RepositoryOption = initialise.REPOSITORY,
) -> None:
    """Make an ACL. Everybody to whom it permits something may call it by its name alone."""
    data: DataFolder = context.obj
    principals = initialise.administrator(data)
    with data.database("repository") as database, database.begin() as cx:
        repository_id = repositories.find(cx, repository_name).id
        acls.add(cx, repository_id, name, principals, _read_entries(entries), data.now)


@acl.command("change")
def change_acl(
    context: typer.Context, name: AclName, entries: Entries, repository_name: RepositoryOption = initialise.REPOSITORY
) -> None:
    """Replace an ACL's entries; they hold from the next request on."""
    data: DataFolder = context.obj
    principals = initialise.administrator(data)
    with data.database("repository") as database, database.begin() as cx:
        stored_acl = acls.find(cx, repositories.find(cx, repository_name).id, name, principals)
        acls.change(cx, stored_acl, principals, _read_entries(entries), data.now)


@acl.command("assign")
def assign_acl(
    context: typer.Context,
    name: AclName,
    object_ids: Annotated[list[str], typer.Argument(metavar="OBJECT_ID...")],
    repository_name: RepositoryOption = initialise.REPOSITORY,
) -> None:
    """Put an ACL on objects."""
    data: DataFolder = context.obj
    principals = initialise.administrator(data)
    with data.database("repository") as database, database.begin() as cx:
        stored_in = repositories.find(cx, repository_name)
        for object_id in object_ids:
            objects.assign_acl(cx, stored_in, principals, object_id, name, data.now)


@acl.command("remove")
def remove_acl(
    context: typer.Context, name: AclName, repository_name: RepositoryOption = initialise.REPOSITORY
) -> None:
    """Delete an ACL that no object carries."""
    data: DataFolder = context.obj
    principals = initialise.administrator(data)
    with data.database("repository") as database, database.begin() as cx:
        stored_acl = acls.find(cx, repositories.find(cx, repository_name).id, name, principals)
        removal.remove_acl(cx, stored_acl, principals)


@index.command("status")
def index_status(context: typer.Context) -> None:
    """Show for each repository how far its index is, and how many files still wait for text extraction."""
    data: DataFolder = context.obj
    rows = []
    with data.database("repository") as database, database.read() as cx:
        for repository in repositories.every(cx):
            latest = changes.latest(cx, repository.id)
            reader = app.reader(data.installation, repository)
            try:
                position = reader.snapshot().position
                state = "current" if position >= latest else "behind"
                rows.append(
                    (repository.name, state, str(position), str(latest), *_files(queue.counts(cx, repository.id)))
                )
            except IndexUnavailable:
                rows.append(
                    (repository.name, "no index yet", "", str(latest), *_files(queue.counts(cx, repository.id)))
                )
            finally:
                reader.close()
    terminal.table(("Repository", "Index", "Position", "Last change", "Waiting", "Failed", "Unsupported"), rows)


@index.command("check")
def index_check(context: typer.Context, repository_name: RepositoryOption = "") -> int:
    """Compare the index with the repository, object by object; exit code 1 when they differ."""
    data: DataFolder = context.obj
    sound = True
    with data.database("repository") as database:
        with database.read() as cx:
            selection = [repositories.find(cx, repository_name)] if repository_name else repositories.every(cx)
        for repository in selection:
            reader = app.reader(data.installation, repository)
            try:
                report = agent.check(database, repository, reader.snapshot())
            finally:
                reader.close()
            sound = sound and report.sound
            verdict = "sound" if report.sound else "NOT SOUND"
            terminal.line(
                f"{repository.name}: {verdict} at position {report.position}: {report.objects} objects, "
                f"{report.documents} documents, {report.missing} missing, {report.extra} extra, {report.stale} stale, "
                f"{report.doubled} doubled, {report.waiting} waiting, {report.unindexed} not indexable"
            )
            for fault, ids in report.samples.items():
                if ids:
                    terminal.line(f"  {fault}: {' '.join(ids)}")
            if not report.sound:
                terminal.line(f"  Mend it with: muniment --data {data.path} index rebuild -r {repository.name}")
    return Exit.OK if sound else Exit.FAILED


@index.command("rebuild")
def index_rebuild(context: typer.Context, repository_name: RepositoryOption = initialise.REPOSITORY) -> None:
    """Build the index again from the database while searches go on, then switch to the new one."""
    data: DataFolder = context.obj
    with data.database("repository") as database:
        with database.read() as cx:
            repository = repositories.find(cx, repository_name)
        with terminal.counting("Rebuilding", None) as progress:
            position = agent.rebuild(
                database,
                repository,
                app.engine(data.installation),
                clock.now,
                progress.reach,
            )
    terminal.line(f"{repository.name}: rebuilt, true to position {position}")


@content.command("check")
def content_check(context: typer.Context, repository_name: RepositoryOption = "") -> int:
    """Read every content and compare it with what was stored; exit code 1 when one is missing or altered."""
    data: DataFolder = context.obj
    store, sound = app.content(data.installation), True
    with data.database("repository") as database:
        with database.read() as cx:
            selection = [repositories.find(cx, repository_name)] if repository_name else repositories.every(cx)
        for repository in selection:
            whole_count, damaged = 0, list[str]()
            with terminal.counting(f"Reading {repository.name}", None) as progress:
                for object_id, good in _verify_all(database, store, repository.id):
                    whole_count += good
                    damaged += [] if good else [object_id]
                    progress.reach(whole_count + len(damaged))
            sound = sound and not damaged
            terminal.line(
                f"{repository.name}: {'NOT SOUND' if damaged else 'sound'}: {whole_count} whole, "
                f"{len(damaged)} missing or altered"
            )
            for object_id in damaged:
                terminal.line(f"  {object_id}: bring its file back from a backup, or replace its content")
    return Exit.OK if sound else Exit.FAILED


def _verify_all(database: Database, store: ContentStore, repository_id: int) -> Iterator[tuple[str, bool]]:
    """Read every content; yield its object's id, and whether the content is still what was stored."""
    last_seq: int | None = 0
    while last_seq is not None:
        with database.read() as cx:
            page = objects.every(cx, repository_id, last_seq, _AT_A_TIME)
        for stored in page:
            if stored.content is not None:
                good = store.verify(stored.content.key, stored.content.sha256)
                if good or _still_has_content(database, repository_id, stored):
                    yield stored.id, good
        last_seq = page[-1].seq if page else None


def _still_has_content(database: Database, repository_id: int, stored: StoredObject) -> bool:
    """Say whether an object still has this content: meanwhile it may have been replaced, or the object deleted."""
    with database.read() as cx:
        page = objects.every(cx, repository_id, stored.seq - 1, 1)
        return bool(page) and page[0].id == stored.id and page[0].content == stored.content


def _describe_property(definition: PropertyDefinition) -> str:
    return f"{definition.name} {definition.kind}{'[]' if definition.repeating else ''}"


def callable_name(summary: AclSummary) -> str:
    """Write the name by which an administrator may call an ACL."""
    name = summary.name if summary.common else acl_names.write(summary.owner, summary.name)
    return name if acl_names.read(name) else summary.shown_id


def _describe_entries(entries: Mapping[str, Permission]) -> str:
    return ", ".join(f"{accessor}={permission.name}" for accessor, permission in sorted(entries.items()))


def _read_entries(texts: list[str]) -> dict[str, Permission]:
    entries: dict[str, Permission] = {}
    for text in texts:
        accessor, equals, permission = text.rpartition("=")
        if not equals or permission.upper() not in Permission.__members__:
            raise Failure(f"{text!r}: write an entry as name@partition=READ.", Exit.USAGE)
        entries[accessor] = Permission[permission.upper()]
    return entries


def _files(counts: dict[queue.State, int]) -> tuple[int, int, int]:
    return counts["waiting"], counts["failed"], counts["unsupported"]
