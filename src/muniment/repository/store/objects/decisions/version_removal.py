"""Delete versions of a tree: one version, the unused ones, or all.

Source: docs/interface.md, ours 17 (`del-version`).
"""

from typing import Literal

from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.repository.refusals import InUse, NotPermitted
from muniment.repository.store.objects import inventory, objects, table, version_tree
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.repositories import Repository

Scope = Literal["selected", "unused", "all"]
"""A version is unused if it has no symbolic label and is not checked out."""


def delete(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    scope: Scope,
    now: Instant,
    most: int,
    *,
    expected: int | None = None,
    kind: str = "object",
    keep_days: int = 0,
) -> list[table.StoredObject]:
    """After the commit, the caller removes the ``freed`` contents; none are freed while versions stay in the
    wastebasket for ``keep_days``.

    The caller needs Delete on each deleted version, even unseen ones; so a refusal names no version.

    Raises UnknownObject, NotPermitted, VersionConflict, CheckedOut, and InUse for a folder that is not empty, or for
    more than ``most`` versions.
    """
    stored, _ = objects.read(cx, repository, object_id, principals, kind)
    if scope == "selected" or stored.version.chronicle_id is None:
        if scope == "unused":
            return []
        return [
            objects.delete(
                cx, repository, principals, object_id, now, expected=expected, kind=kind, keep_days=keep_days
            )
        ]
    version_tree.serialize(cx, stored.chronicle_id)
    objects.lock_to_use(cx, repository, principals, object_id, kind, expected)
    tree = version_tree.members(cx, [stored.chronicle_id])
    ids = [each.id for each in tree if scope == "all" or len(each.labels) == 1]
    versions = sorted(inventory.rows(cx, repository.id, ids).values(), key=lambda each: each.seq)
    if scope == "unused":
        versions = [each for each in versions if each.version.lock is None]
    if objects.lowest_permission(cx, versions, principals) < Permission.DELETE:
        raise NotPermitted("You may not delete these versions: it takes the permission Delete on each of them.")
    for each in versions:
        objects.refuse_others(each, principals)
    if len(versions) > most:
        raise InUse(f"These are more versions than one request may delete: {most}.")
    return objects.remove(cx, versions, principals, now, keep_days) if versions else []
