"""Commands about ACLs, which say who may do what with the objects that have them."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated

import typer
from sqlalchemy.engine import Connection

from muniment.cli import terminal
from muniment.cli.running import Group, Rows
from muniment.ground.naming import fold_name
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit, Failure
from muniment.repository.bulk import removal
from muniment.repository.store.filters.cursors import every_page
from muniment.repository.store.objects.decisions import assigned_acls
from muniment.repository.store.permissions import acl_lists, acl_names, acls
from muniment.repository.store.permissions.principals import OWNER, WORLD, Permission, Principals
from muniment.repository.store.repositories import Repository

acl_commands = Group(help="ACLs: who may do how much with the objects that carry them.")

_AT_A_TIME = 500

AclName = Annotated[str, typer.Argument(metavar="ACL", help="Its name, its id, or owner/name as 'acl list' shows it.")]
NewAclName = Annotated[str, typer.Argument(metavar="ACL")]
Entries = Annotated[
    list[str],
    typer.Argument(
        metavar="ACCESSOR=PERMISSION...",
        help="name@partition, owner or world, and NONE, BROWSE, READ, RELATE, VERSION, WRITE or DELETE.",
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse an accessor whom the directory does not know, instead of a warning.")
]


@acl_commands.reads("list", "ACL", "Id", "Owner", "Entries")
def list_acls(cx: Connection, repository: Repository, principals: Principals) -> Rows:
    """List the ACLs, each with the name that --acl takes, its id, its owner and its entries."""
    for page in every_page(partial(acl_lists.acl_page, cx, repository.id, principals), _AT_A_TIME):
        entries = acl_lists.entries(cx, page, principals)
        for summary, *_ in page:
            described = sorted(entries.get(summary.id, {}).items())
            texts = [f"{accessor}={permission.name}" for accessor, permission in described]
            yield callable_name(summary), summary.shown_id, summary.owner, texts


@acl_commands.writes("add")
def add_acl(
    data: DataFolder,
    cx: Connection,
    repository: Repository,
    principals: Principals,
    name: NewAclName,
    entries: Entries,
    strict: Strict = False,
) -> None:
    """Make an ACL. Everybody to whom the ACL permits something may call the ACL by its name alone."""
    acls.add(cx, repository.id, name, principals, _read_entries(data, entries, strict=strict), data.now)


@acl_commands.writes("change")
def change_acl(
    data: DataFolder,
    cx: Connection,
    repository: Repository,
    principals: Principals,
    name: AclName,
    entries: Entries,
    strict: Strict = False,
) -> None:
    """Replace an ACL's entries; they hold from the next request on."""
    permissions = _read_entries(data, entries, strict=strict)
    acls.change(cx, acls.find(cx, repository.id, name, principals), principals, permissions, data.now)


@acl_commands.writes("assign")
def assign_acl(
    data: DataFolder,
    cx: Connection,
    repository: Repository,
    principals: Principals,
    name: AclName,
    object_ids: Annotated[list[str], typer.Argument(metavar="OBJECT_ID...")],
) -> None:
    """Put an ACL on objects."""
    for object_id in object_ids:
        assigned_acls.assign(cx, repository, principals, object_id, name, data.now)


@acl_commands.writes("remove")
def remove_acl(cx: Connection, repository: Repository, principals: Principals, name: AclName) -> None:
    """Delete an ACL that no object carries, and no folder has as its default."""
    removal.remove_acl(cx, acls.find(cx, repository.id, name, principals), principals)


def callable_name(summary: acls.AclSummary) -> str:
    name = summary.name if summary.common else acl_names.write(summary.owner, summary.name)
    return name if acl_names.read(name) else summary.shown_id


def _read_entries(data: DataFolder, texts: list[str], *, strict: bool) -> Mapping[str, Permission]:
    """With ``strict``, raise Failure for them."""
    entries: dict[str, Permission] = {}
    for text in texts:
        accessor, equals, permission = text.rpartition("=")
        if not equals or permission.upper() not in Permission.__members__:
            raise Failure(
                f"{text!r}: write an entry as name@partition=READ, with one of {', '.join(Permission.__members__)}.",
                Exit.USAGE,
            )
        entries[accessor] = Permission[permission.upper()]
    if not data.together:
        return entries
    names = {fold_name(accessor): accessor for accessor in entries if fold_name(accessor) not in (OWNER, WORLD)}
    identities = data.identify(list(names))
    unknown = [accessor for name, accessor in names.items() if name not in identities and "@" in name]
    if unknown and strict:
        raise Failure(f"The directory knows no user and no group {', '.join(map(repr, unknown))}.", Exit.REFUSED)
    for accessor in unknown:
        terminal.errors.print(
            f"Warning: the directory knows no user and no group {accessor!r}. The entry is for the first one who gets "
            "this name."
        )
    return entries
