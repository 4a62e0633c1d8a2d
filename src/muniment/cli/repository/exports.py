"""The command that exports a repository into a folder, and the command that makes a repository from an export."""

from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from muniment.cli import terminal
from muniment.cli.repository import guarding
from muniment.database.connections import Database, portions
from muniment.ground import clock
from muniment.installation import backends, initialise
from muniment.installation.backups import making as backing_up
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit
from muniment.integration import guards
from muniment.repository.bulk.exports import making, naming, rebuilding
from muniment.repository.bulk.exports import progress as unfinished_imports
from muniment.repository.refusals import UnknownRepository
from muniment.repository.store import repositories

_MOST_NAMED = 20
_NAMES_AT_A_TIME = 500

Folder = Annotated[Path, typer.Argument(metavar="FOLDER")]


def export_command(data: DataFolder, name: guarding.RepositoryName, folder: Folder) -> int:
    """Write a repository into a folder, as JSON Lines and the bytes of contents. A server may run meanwhile.

    After an interruption, give the same command again. Contents that the folder holds already are not
    written again.
    """
    folder = folder.absolute()
    with data.database("repository") as database, terminal.Bars() as bars:
        with database.read() as cx:
            repository = repositories.find(cx, name)
        result = making.make(
            database,
            backends.content(data.installation),
            repository,
            folder,
            metadata.version("muniment"),
            data.now,
            partial(backing_up.bring_to_disk, folder),
            bars.reach,
        )
    if result.manifest is None:
        damaged = terminal.number_of(len(result.damaged_ids), "object")
        terminal.line(f"{folder} is no whole export: {damaged} with damaged content.")
        for object_id in result.damaged_ids[:_MOST_NAMED]:
            terminal.line(f"  {object_id}: replace its content, then give this command again")
        return Exit.FAILED
    terminal.line(
        f"{folder}: {name} with {terminal.number_of(result.manifest.files['objects.jsonl'].lines, 'object')} and "
        f"{terminal.number_of(result.manifest.contents, 'content')}"
    )
    return Exit.OK


def import_command(
    data: DataFolder,
    name: guarding.RepositoryName,
    folder: Folder,
    resource: guarding.GuardName = "",
    resource_id: guarding.GuardId = "",
) -> int:
    """Make a repository from an export, or fill an empty repository. A server may run meanwhile.

    Nobody can enter the repository until everything is imported. An import that was interrupted goes on
    with the same command.
    """
    guarding.check_guard(resource, resource_id)
    with terminal.Bars() as bars:
        export = rebuilding.inspect(folder.absolute(), bars.reach)
        with data.database("repository") as database:
            repository = _begin(data, database, name, export, resource, resource_id)
            store = backends.content(data.installation)
            rebuilding.run(database, store, repository, export, data.identify, clock.now, bars.reach)
    with guarding.both(data, resource_id) as (directory, cx):
        guard_id = guards.guard(directory, cx, name, rebuilding.finish(cx, repository))
    objects = terminal.number_of(export.manifest.files["objects.jsonl"].lines, "object")
    contents = terminal.number_of(export.manifest.contents, "content")
    terminal.line(f"{name}: {objects} and {contents}, guarded by {guard_id}")
    terminal.line("The index agent makes them searchable: 'muniment index status' shows how far it is.")
    _print_unknown_names(data, export)
    return Exit.OK


def _begin(
    data: DataFolder, database: Database, name: str, export: rebuilding.CheckedExport, resource: str, resource_id: str
) -> repositories.Repository:
    """Nobody can enter the repository until the import is finished."""
    present: repositories.Repository | None = None
    with database.read() as cx:
        try:
            present = repositories.find(cx, name)
        except UnknownRepository:
            repositories.check_name(name)  # before the resource is made
            language = guarding.known_language(data, export.manifest.language)
        else:
            language = present.language
        is_begun = present is not None and unfinished_imports.is_begun(cx, present)
    guard_id = resource_id or (guarding.resource_of(data, resource).id if resource else "")
    if not guard_id and not is_begun:
        guard_id = present.resource_id if present is not None else ""
        guard_id = guard_id or guarding.resource_of(data, initialise.resource_name(name)).id
    with guarding.both(data, resource_id) as (directory, cx):
        if present is None:
            present = guards.add_repository(directory, cx, name, guard_id, data.now, language)
        rebuilding.begin(cx, present, export, guard_id)
    return present


def _print_unknown_names(data: DataFolder, export: rebuilding.CheckedExport) -> None:
    if not data.together:
        return
    names = [line.name for line in export.bearers if not line.former]
    unknown = list[str]()
    for some in portions(names, _NAMES_AT_A_TIME):
        unknown += naming.unknown(some, data.identify)
    if unknown:
        terminal.line(
            f"The directory does not know {len(unknown)} users and groups of the export. What they own or may do waits "
            "for the first one who gets the name:"
        )
    for name in unknown[:_MOST_NAMED]:
        terminal.line(terminal.harmless(f"  {name}"))
    if len(unknown) > _MOST_NAMED:
        terminal.line(f"  and {len(unknown) - _MOST_NAMED} more")
