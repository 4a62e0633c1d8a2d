"""Commands about what is held: repositories, types, ACLs, and the index that finds it all."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from muniment import app
from muniment.cli import initial, said
from muniment.cli.opened import Opened
from muniment.cli.outcome import Exit, Failure
from muniment.db import Database
from muniment.repository import (
    acl_entries,
    acl_names,
    acls,
    agent,
    changes,
    object_types,
    objects,
    removal,
    repositories,
    text,
)
from muniment.repository.acls import AclSummary
from muniment.repository.content import ContentStore
from muniment.repository.object_types import ObjectType
from muniment.repository.objects import StoredObject
from muniment.repository.principals import Permission
from muniment.repository.properties import PropertyDefinition, PropertyKind
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
def list_types(context: typer.Context, named: Named = initial.REPOSITORY) -> None:
    """List the types, each with the properties it adds to its parent's."""
    opened: Opened = context.obj
    with opened.database("repository") as database, database.read() as cx:
        catalogue = object_types.catalogue(cx, repositories.named(cx, named).id)
        rows = [
            (kind.name, kind.parent or "", ", ".join(_written(definition) for definition in kind.properties))
            for kind in catalogue.types()
        ]
    said.table(("Type", "Parent", "Properties"), rows)


@type_.command("add")
def add_type(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    parent: Annotated[str, typer.Option(help="The type it refines.")] = "document",
    named: Named = initial.REPOSITORY,
) -> None:
    """Make a type."""
    opened: Opened = context.obj
    with opened.database("repository") as database, database.begin() as cx:
        object_types.add_type(cx, repositories.named(cx, named).id, ObjectType(name, parent), opened.now)


@type_.command("property")
def add_property(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TYPE")],
    property_name: Annotated[str, typer.Argument(metavar="PROPERTY")],
    kind: Annotated[str, typer.Argument(metavar="KIND", help="string, integer, double, boolean, date or id.")],
    repeating: Annotated[bool, typer.Option("--repeating", help="It has several values.")] = False,
    named: Named = initial.REPOSITORY,
) -> None:
    """Add a property to a type; it is searchable at once."""
    opened: Opened = context.obj
    if kind not in get_args(PropertyKind):
        raise Failure(f"There is no kind {kind!r}: use {', '.join(get_args(PropertyKind))}.", Exit.USAGE)
    definition = PropertyDefinition(property_name, cast("PropertyKind", kind), repeating)
    with opened.database("repository") as database, database.begin() as cx:
        object_types.add_property(cx, repositories.named(cx, named).id, name, definition, opened.now)


@type_.command("load")
def load_types(
    context: typer.Context, file: Annotated[Path, typer.Argument(metavar="FILE")], named: Named = initial.REPOSITORY
) -> None:
    """Add what a types file (TOML) says and the repository does not have yet."""
    opened: Opened = context.obj
    content = file.read_bytes()
    with opened.database("repository") as database, database.begin() as cx:
        added = object_types.load_types_file(cx, repositories.named(cx, named).id, content, opened.now)
    for what in added or ["nothing new"]:
        said.line(what)


@acl.command("list")
def list_acls(context: typer.Context, named: Named = initial.REPOSITORY) -> None:
    """List the ACLs, each as --acl takes it, and by its id."""
    opened: Opened = context.obj
    principals, rows = initial.administrator(opened), list[tuple[str, str, str, str]]()
    with opened.database("repository") as database, database.read() as cx:
        of, after = repositories.named(cx, named).id, ("", "")
        while page := acls.page(cx, of, principals, _AT_A_TIME, after=after):
            entries = acl_entries.by_name(cx, acl_entries.of(cx, [one.id for one in page]))
            rows += [(called(one), one.shown_id, one.owner, _spelled(entries.get(one.id, {}))) for one in page]
            after = page[-1].name, page[-1].shown_id
    said.table(("ACL", "Id", "Owner", "Entries"), rows)


@acl.command("add")
def add_acl(context: typer.Context, name: NewAclName, entries: Entries, named: Named = initial.REPOSITORY) -> None:
    """Make an ACL, which everybody whom it permits something may call by its name alone."""
    opened: Opened = context.obj
    principals = initial.administrator(opened)
    with opened.database("repository") as database, database.begin() as cx:
        of = repositories.named(cx, named).id
        acls.add(cx, of, name, principals, _entries(entries), opened.now)


@acl.command("change")
def change_acl(context: typer.Context, name: AclName, entries: Entries, named: Named = initial.REPOSITORY) -> None:
    """Replace an ACL's entries; the very next request obeys."""
    opened: Opened = context.obj
    principals = initial.administrator(opened)
    with opened.database("repository") as database, database.begin() as cx:
        found = acls.named(cx, repositories.named(cx, named).id, name, principals)
        acls.change(cx, found, principals, _entries(entries), opened.now)


@acl.command("assign")
def assign_acl(
    context: typer.Context,
    name: AclName,
    object_ids: Annotated[list[str], typer.Argument(metavar="OBJECT_ID...")],
    named: Named = initial.REPOSITORY,
) -> None:
    """Put an ACL on objects."""
    opened: Opened = context.obj
    principals = initial.administrator(opened)
    with opened.database("repository") as database, database.begin() as cx:
        of = repositories.named(cx, named)
        for object_id in object_ids:
            objects.assign_acl(cx, of, principals, object_id, name, opened.now)


@acl.command("remove")
def remove_acl(context: typer.Context, name: AclName, named: Named = initial.REPOSITORY) -> None:
    """Delete an ACL that no object carries."""
    opened: Opened = context.obj
    principals = initial.administrator(opened)
    with opened.database("repository") as database, database.begin() as cx:
        found = acls.named(cx, repositories.named(cx, named).id, name, principals)
        removal.remove_acl(cx, found, principals)


@index.command("status")
def index_status(context: typer.Context) -> None:
    """Say for each repository how far its index is, and how many files still wait for their text."""
    opened: Opened = context.obj
    rows = []
    with opened.database("repository") as database, database.read() as cx:
        for one in repositories.every(cx):
            latest = changes.latest(cx, one.id)
            reader = app.reader(opened.installation, one)
            try:
                position = reader.snapshot().position
                state = "current" if position >= latest else "behind"
                rows.append((one.name, state, str(position), str(latest), *_files(text.counts(cx, one.id))))
            except IndexUnavailable:
                rows.append((one.name, "no index yet", "", str(latest), *_files(text.counts(cx, one.id))))
            finally:
                reader.close()
    said.table(("Repository", "Index", "Position", "Last change", "Waiting", "Failed", "Unsupported"), rows)


@index.command("check")
def index_check(context: typer.Context, named: Named = "") -> int:
    """Compare the index with the repository, object by object; exit code 1 when they differ."""
    opened: Opened = context.obj
    sound = True
    with opened.database("repository") as database:
        with database.read() as cx:
            chosen = [repositories.named(cx, named)] if named else repositories.every(cx)
        for one in chosen:
            reader = app.reader(opened.installation, one)
            try:
                report = agent.check(database, one, reader.snapshot())
            finally:
                reader.close()
            sound = sound and report.sound
            verdict = "sound" if report.sound else "NOT SOUND"
            said.line(
                f"{one.name}: {verdict} at position {report.position}: {report.objects} objects, "
                f"{report.documents} documents, {report.missing} missing, {report.extra} extra, {report.stale} stale, "
                f"{report.doubled} doubled, {report.waiting} waiting, {report.unindexed} not indexable"
            )
            for fault, ids in report.samples.items():
                if ids:
                    said.line(f"  {fault}: {' '.join(ids)}")
            if not report.sound:
                said.line(f"  Mend it with: muniment --data {opened.data} index rebuild -r {one.name}")
    return Exit.OK if sound else Exit.FAILED


@index.command("rebuild")
def index_rebuild(context: typer.Context, named: Named = initial.REPOSITORY) -> None:
    """Make the index anew from the database while searches go on, then switch to it."""
    opened: Opened = context.obj
    with opened.database("repository") as database:
        with database.read() as cx:
            one = repositories.named(cx, named)
        with said.counting("Rebuilding", None) as progress:
            position = agent.rebuild(
                database, one, opened.installation.indexes, app.writer(opened.settings), app.now, progress.reach
            )
    said.line(f"{one.name}: rebuilt, true to position {position}")


@content.command("check")
def content_check(context: typer.Context, named: Named = "") -> int:
    """Read every content and compare it with what was kept; exit code 1 when one is missing or altered."""
    opened: Opened = context.obj
    store, sound = ContentStore(opened.installation.content), True
    with opened.database("repository") as database:
        with database.read() as cx:
            chosen = [repositories.named(cx, named)] if named else repositories.every(cx)
        for one in chosen:
            whole, damaged = 0, list[str]()
            with said.counting(f"Reading {one.name}", None) as progress:
                for object_id, good in _verified(database, store, one.id):
                    whole += good
                    damaged += [] if good else [object_id]
                    progress.reach(whole + len(damaged))
            sound = sound and not damaged
            said.line(
                f"{one.name}: {'NOT SOUND' if damaged else 'sound'}: {whole} whole, {len(damaged)} missing or altered"
            )
            for object_id in damaged:
                said.line(f"  {object_id}: bring its file back from a backup, or replace its content")
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
    text = one.name if one.common else acl_names.write(one.owner, one.name)
    return text if acl_names.read(text) else one.shown_id


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


def _files(counts: dict[text.State, int]) -> tuple[int, int, int]:
    return counts["waiting"], counts["failed"], counts["unsupported"]
