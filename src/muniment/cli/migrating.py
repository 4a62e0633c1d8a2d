"""Who made the ACLs of a migrated folder? Names that administrators gave go on for everybody."""

from muniment.cli import initial
from muniment.cli.opened import Opened
from muniment.db import Database
from muniment.directory import entries, memberships, names
from muniment.directory.entries import Entry
from muniment.directory.refusals import BadName, UnknownEntry, UnknownPartition
from muniment.repository import acls, repositories
from muniment.repository.acls import AclSummary


def settle_acls(opened: Opened) -> list[tuple[str, AclSummary]]:
    """Give, each with its repository, the ACLs whose bare names mean them to their owners alone from now on.

    Those are told once, after a migration. Where the directory is elsewhere, an administrator is known by the settings
    alone: members of a group are not.
    """
    if "repository" not in opened.settings.halves:
        return []
    with opened.database("repository") as database:
        with database.read() as cx:
            if not acls.unsettled(cx):
                return []
        administrators = _administrators(opened)
        with database.begin() as cx:
            return [
                (one.name, acl) for one in repositories.every(cx) for acl in acls.settle(cx, one.id, administrators)
            ]


def _administrators(opened: Opened) -> set[str]:
    named = opened.settings.directory.names
    found = {names.user_id(initial.ADMINISTRATOR, named.administration_partition)}
    found |= set(opened.settings.repository.administrators)
    if not opened.together:
        return found
    database = Database(opened.installation.database_url("directory"))
    try:
        with database.read() as cx:
            waiting, seen = list[Entry](), set[int]()
            for one in opened.settings.repository.administrators:
                try:
                    waiting.append(entries.find_group(cx, named, one))
                except (UnknownEntry, UnknownPartition, BadName):
                    continue
            while waiting:
                group = waiting.pop()
                seen.add(group.id)
                for member in memberships.members(cx, group):
                    if member.kind == "user":
                        found.add(entries.shown_id(named, member))
                    elif member.id not in seen:
                        waiting.append(member)
    finally:
        database.close()
    return found
