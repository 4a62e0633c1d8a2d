"""Commands about deleted objects: list them, restore them, remove them for good."""

from collections.abc import Iterable
from functools import partial
from typing import Annotated

import typer
from sqlalchemy.engine import Connection

from muniment.cli import terminal
from muniment.cli.running import Group, Rows
from muniment.ground.clock import timestamp
from muniment.installation import backends, initialise
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit, Failure
from muniment.repository.store import repositories
from muniment.repository.store.filters.cursors import every_page
from muniment.repository.store.objects import wastebasket as discards
from muniment.repository.store.objects.decisions import restoring
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.permissions.principals import Principals

wastebasket_commands = Group(help="Deleted objects that can still be restored.")

_AT_A_TIME = 500


@wastebasket_commands.reads("list", "Object", "Type", "Name", "Owner", "Bytes", "Deleter", "Deleted", "Expires")
def list_discards(
    data: DataFolder, cx: Connection, repository: repositories.Repository, principals: Principals
) -> Rows:
    """List what was deleted, the last deletion first. What was deleted with a folder is restored with it."""
    for page in every_page(partial(discards.deleted_page, cx, repository, principals, data.now), _AT_A_TIME):
        for each, _ in page:
            stored, times = each.stored, (timestamp(each.deleted), timestamp(each.expires))
            size = stored.content.size if stored.content else None
            yield stored.id, stored.type, stored.name, stored.owner, size, each.deleter, *times


@wastebasket_commands.writes("restore")
def restore_objects(
    data: DataFolder,
    cx: Connection,
    repository: repositories.Repository,
    principals: Principals,
    object_ids: Annotated[list[str], typer.Argument(metavar="OBJECT_ID...")],
    folder_id: Annotated[
        str,
        typer.Option("--in", metavar="FOLDER_ID", help="The folder to restore into; without it, each object's own."),
    ] = "",
) -> str:
    """Restore deleted objects with what was deleted with them, all or none."""
    view = RepositoryView.read(cx, repository, principals, unique_names=data.settings.repository.unique_names)
    for object_id in object_ids:
        restoring.restore(cx, view, object_id, folder_id, data.now)
    them = "it" if len(object_ids) == 1 else "them"
    return f"Restored: {terminal.number_of(len(object_ids), 'object')}, with all that was deleted with {them}."


@wastebasket_commands.acts("purge")
def purge(
    data: DataFolder,
    repository_name: str,
    object_ids: Annotated[list[str] | None, typer.Argument(metavar="[OBJECT_ID...]")] = None,
    every: Annotated[bool, typer.Option("--all", help="All that was deleted.")] = False,
    days: Annotated[
        int | None, typer.Option(min=1, max=3650, help="All that was deleted at least so many days ago.")
    ] = None,
) -> None:
    """Remove deleted objects for good, with their content: named ones (all or none), those of some age, or all."""
    if [bool(object_ids), every, days is not None].count(True) != 1:
        raise Failure("Say what to remove for good: some OBJECT_IDs, --days or --all.", Exit.USAGE)
    principals, store = initialise.administrator(data), backends.content(data.installation)
    number = len(object_ids or ())

    def remove_contents(freed: Iterable[str]) -> None:
        for key in freed:
            store.remove(key)

    with data.database("repository") as database:
        with database.begin() as cx:
            view = RepositoryView.read(cx, repositories.find(cx, repository_name), principals)
            freed = [key for each in object_ids or () for key in restoring.remove(cx, view, each, data.now)]
        remove_contents(freed)
        last = data.now - (days or 0) * discards.DAY
        while not object_ids:
            with database.begin() as cx:
                count, gone = restoring.remove_until(cx, view, last, _AT_A_TIME)
            remove_contents(gone)
            number += count
            if not count:
                break
    terminal.line(f"Removed for good: {terminal.number_of(number, 'object')}.")
