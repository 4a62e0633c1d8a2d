"""Commands about what is held: repositories, types, ACLs, and the index that finds it all."""

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

Named = Annotated[str, typer.Option("--repository", "-r", help="Name of the repository.")]
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
def list_types(context: typer.Context, named: Named = initialise.REPOSITORY) -> None:
    """List the types, each with the properties it adds to its parent's."""
    data: DataFolder = context.obj
    with data.database("repository") as database, database.read() as cx:
        catalogue = object_types.catalogue(cx, repositories.find(cx, named).id)
        rows = [
            (kind.name, kind.parent or "", ", ".join(_written(definition) for definition in kind.properties))
            for kind in catalogue.types()
        ]
    terminal.table(("Type", "Parent", "Properties"), rows)


@type_.command("add")
def add_type(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    parent: Annotated[str, typer.Option(help="The type it refines.")] = "document",
    named: Named = initialise.REPOSITORY,
) -> None:
    """Make a type."""
    data: DataFolder = context.obj
    with data.database("repository") as database, database.begin() as cx:
        object_types.add_type(cx, repositories.find(cx, named).id, ObjectType(name, parent), data.now)


@type_.command("property")
def add_property(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TYPE")],
    property_name: Annotated[str, typer.Argument(metavar="PROPERTY")],
    kind: Annotated[str, typer.Argument(metavar="KIND", help="string, integer, double, boolean, date or id.")],
    repeating: Annotated[bool, typer.Option("--repeating", help="It has several values.")] = False,
    named: Named = initialise.REPOSITORY,
) -> None:
    """Add a property to a type; it is searchable at once."""
    data: DataFolder = context.obj
    if kind not in get_args(PropertyKind):
        raise Failure(f"There is no kind {kind!r}: use {', '.join(get_args(PropertyKind))}.", Exit.USAGE)
    definition = PropertyDefinition(property_name, cast("PropertyKind", kind), repeating)
    with data.database("repository") as database, database.begin() as cx:
        object_types.add_property(cx, repositories.find(cx, named).id, name, definition, data.now)


@type_.command("load")
def load_types(
    context: typer.Context, file: Annotated[Path, typer.Argument(metavar="FILE")], named: Named = initialise.REPOSITORY
) -> None:
    """Add what a types file (TOML) says and the repository does not have yet."""
    data: DataFolder = context.obj
    content = file.read_bytes()
    with data.database("repository") as database, database.begin() as cx:
        added = object_types.load_types_file(cx, repositories.find(cx, named).id, content, data.now)
    for what in added or ["nothing new"]:
        terminal.line(what)


@acl.command("list")
def list_acls(context: typer.Context, named: Named = initialise.REPOSITORY) -> None:
    """List the ACLs, each as --acl takes it, and by its id."""
    data: DataFolder = context.obj
    principals, rows = initialise.administrator(data), list[tuple[str, str, str, str]]()
    with data.database("repository") as database, database.read() as cx:
        of, after = repositories.find(cx, named).id, ("", "")
        while page := acls.page(cx, of, principals, _AT_A_TIME, after=after):
            entries = acl_entries.by_name(cx, acl_entries.of(cx, [one.id for one in page]))
            rows += [(called(one), one.shown_id, one.owner, _spelled(entries.get(one.id, {}))) for one in page]
            after = page[-1].name, page[-1].shown_id
    terminal.table(("ACL", "Id", "Owner", "Entries"), rows)


@acl.command("add")
def add_acl(context: typer.Context, name: NewAclName, entries: Entries, named: Named = initialise.REPOSITORY) -> None:
    """Make an ACL, which everybody whom it permits something may call by its name alone."""
    data: DataFolder = context.obj
    principals = initialise.administrator(data)
    with data.database("repository") as database, database.begin() as cx:
        of = repositories.find(cx, named).id
        acls.add(cx, of, name, principals, _entries(entries), data.now)


@acl.command("change")
def change_acl(context: typer.Context, name: AclName, entries: Entries, named: Named = initialise.REPOSITORY) -> None:
    """Replace an ACL's entries; the very next request obeys."""
    data: DataFolder = context.obj
    principals = initialise.administrator(data)
    with data.database("repository") as database, database.begin() as cx:
        found = acls.find(cx, repositories.find(cx, named).id, name, principals)
        acls.change(cx, found, principals, _entries(entries), data.now)


@acl.command("assign")
def assign_acl(
    context: typer.Context,
    name: AclName,
    object_ids: Annotated[list[str], typer.Argument(metavar="OBJECT_ID...")],
    named: Named = initialise.REPOSITORY,
) -> None:
    """Put an ACL on objects."""
    data: DataFolder = context.obj
    principals = initialise.administrator(data)
    with data.database("repository") as database, database.begin() as cx:
        of = repositories.find(cx, named)
        for object_id in object_ids:
            objects.assign_acl(cx, of, principals, object_id, name, data.now)


@acl.command("remove")
def remove_acl(context: typer.Context, name: AclName, named: Named = initialise.REPOSITORY) -> None:
    """Delete an ACL that no object carries."""
    data: DataFolder = context.obj
    principals = initialise.administrator(data)
    with data.database("repository") as database, database.begin() as cx:
        found = acls.find(cx, repositories.find(cx, named).id, name, principals)
        removal.remove_acl(cx, found, principals)


@index.command("status")
def index_status(context: typer.Context) -> None:
    """Say for each repository how far its index is, and how many files still wait for their text."""
    data: DataFolder = context.obj
    rows = []
    with data.database("repository") as database, database.read() as cx:
        for one in repositories.every(cx):
            latest = changes.latest(cx, one.id)
            reader = app.reader(data.installation, one)
            try:
                position = reader.snapshot().position
                state = "current" if position >= latest else "behind"
                rows.append((one.name, state, str(position), str(latest), *_files(queue.counts(cx, one.id))))
            except IndexUnavailable:
                rows.append((one.name, "no index yet", "", str(latest), *_files(queue.counts(cx, one.id))))
            finally:
                reader.close()
    terminal.table(("Repository", "Index", "Position", "Last change", "Waiting", "Failed", "Unsupported"), rows)


@index.command("check")
def index_check(context: typer.Context, named: Named = "") -> int:
    """Compare the index with the repository, object by object; exit code 1 when they differ."""
    data: DataFolder = context.obj
    sound = True
    with data.database("repository") as database:
        with database.read() as cx:
            chosen = [repositories.find(cx, named)] if named else repositories.every(cx)
        for one in chosen:
            reader = app.reader(data.installation, one)
            try:
                report = agent.check(database, one, reader.snapshot())
            finally:
                reader.close()
            sound = sound and report.sound
            verdict = "sound" if report.sound else "NOT SOUND"
            terminal.line(
                f"{one.name}: {verdict} at position {report.position}: {report.objects} objects, "
                f"{report.documents} documents, {report.missing} missing, {report.extra} extra, {report.stale} stale, "
                f"{report.doubled} doubled, {report.waiting} waiting, {report.unindexed} not indexable"
            )
            for fault, ids in report.samples.items():
                if ids:
                    terminal.line(f"  {fault}: {' '.join(ids)}")
            if not report.sound:
                terminal.line(f"  Mend it with: muniment --data {data.path} index rebuild -r {one.name}")
    return Exit.OK if sound else Exit.FAILED


@index.command("rebuild")
def index_rebuild(context: typer.Context, named: Named = initialise.REPOSITORY) -> None:
    """Make the index anew from the database while searches go on, then switch to it."""
    data: DataFolder = context.obj
    with data.database("repository") as database:
        with database.read() as cx:
            one = repositories.find(cx, named)
        with terminal.counting("Rebuilding", None) as progress:
            position = agent.rebuild(
                database,
                one,
                app.engine(data.installation),
                clock.now,
                progress.reach,
            )
    terminal.line(f"{one.name}: rebuilt, true to position {position}")


@content.command("check")
def content_check(context: typer.Context, named: Named = "") -> int:
    """Read every content and compare it with what was kept; exit code 1 when one is missing or altered."""
    data: DataFolder = context.obj
    store, sound = app.content(data.installation), True
    with data.database("repository") as database:
        with database.read() as cx:
            chosen = [repositories.find(cx, named)] if named else repositories.every(cx)
        for one in chosen:
            whole, damaged = 0, list[str]()
            with terminal.counting(f"Reading {one.name}", None) as progress:
                for object_id, good in _verified(database, store, one.id):
                    whole += good
                    damaged += [] if good else [object_id]
                    progress.reach(whole + len(damaged))
            sound = sound and not damaged
            terminal.line(
                f"{one.name}: {'NOT SOUND' if damaged else 'sound'}: {whole} whole, {len(damaged)} missing or altered"
            )
            for object_id in damaged:
                terminal.line(f"  {object_id}: bring its file back from a backup, or replace its content")
    return Exit.OK if sound else Exit.FAILED


def _verified(database: Database, store: ContentStore, repository_id: int) -> Iterator[tuple[str, bool]]:
    """Read every content: the id of its object, and whether it is what was kept."""
    last: int | None = 0
    while last is not None:
        with database.read() as cx:
            page = objects.every(cx, repository_id, last, _AT_A_TIME)
        for each in page:
            if each.content is not None:
                good = store.verify(each.content.key, each.content.sha256)
                if good or _still(database, repository_id, each):
                    yield each.id, good
        last = page[-1].seq if page else None


def _still(database: Database, repository_id: int, stored: StoredObject) -> bool:
    """Whether an object still has the content that was looked for: meanwhile it may have been replaced, or deleted."""
    with database.read() as cx:
        found = objects.every(cx, repository_id, stored.seq - 1, 1)
        return bool(found) and found[0].id == stored.id and found[0].content == stored.content


def _written(definition: PropertyDefinition) -> str:
    return f"{definition.name} {definition.kind}{'[]' if definition.repeating else ''}"


def called(one: AclSummary) -> str:
    """Spell an ACL of a list as an administrator may call it."""
    name = one.name if one.common else acl_names.write(one.owner, one.name)
    return name if acl_names.read(name) else one.shown_id


def _spelled(entries: Mapping[str, Permission]) -> str:
    return ", ".join(f"{accessor}={permission.name}" for accessor, permission in sorted(entries.items()))


def _entries(written: list[str]) -> dict[str, Permission]:
    found: dict[str, Permission] = {}
    for one in written:
        accessor, equals, permission = one.rpartition("=")
        if not equals or permission.upper() not in Permission.__members__:
            raise Failure(f"{one!r}: write an entry as name@partition=READ.", Exit.USAGE)
        found[accessor] = Permission[permission.upper()]
    return found


def _files(counts: dict[queue.State, int]) -> tuple[int, int, int]:
    return counts["waiting"], counts["failed"], counts["unsupported"]
