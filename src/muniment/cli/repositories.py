"""Commands about repositories: made, guarded by a resource, removed with what they hold."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from sqlalchemy.engine import Connection

from muniment import app, guards, initialise
from muniment.cli import belongings, terminal
from muniment.data_folder import DataFolder
from muniment.directory import administration
from muniment.directory.resources import Resource
from muniment.exit_codes import Exit, Failure
from muniment.repository import removal, repositories
from muniment.repository.objects import objects, usage
from muniment.repository.permissions import bearers

repository = typer.Typer(no_args_is_help=True, help="Repositories.")

repository.command("give")(belongings.give_command)

COMMANDS = {"repository": repository}

_AT_A_TIME = 500

RepositoryName = Annotated[str, typer.Argument(metavar="NAME")]


@repository.command("add")
def add_repository(
    context: typer.Context,
    name: RepositoryName,
    resource: Annotated[str, typer.Option(help="Name of the resource that guards it; made if there is none.")] = "",
    resource_id: Annotated[
        str, typer.Option(help="Identifier of the resource; of another directory where that runs apart.")
    ] = "",
) -> None:
    """Make a repository and print the identifier of the resource that guards it."""
    data: DataFolder = context.obj
    chosen = resource_id or _guard(data, resource or initialise.resource_name(name)).id
    with _both(data, ours=data.together or not resource_id) as (directory, cx):
        guards.add_repository(directory, cx, name, chosen, data.now)
    terminal.line(chosen)


@repository.command("guard")
def guard_repository(
    context: typer.Context,
    name: RepositoryName,
    resource: Annotated[
        str, typer.Option(help="Name of the resource that is to guard it; made if there is none.")
    ] = "",
    resource_id: Annotated[
        str, typer.Option(help="Identifier of the resource; of another directory where that runs apart.")
    ] = "",
) -> None:
    """Let another resource guard a repository: tokens for it open the repository at once, and no others."""
    data: DataFolder = context.obj
    if bool(resource) == bool(resource_id):
        raise Failure("Name the resource with --resource, or one of another directory with --resource-id.", Exit.USAGE)
    chosen = resource_id or _guard(data, resource).id
    with _both(data, ours=data.together or not resource_id) as (directory, cx):
        guards.guard(directory, cx, name, chosen)
    terminal.line(chosen)


@repository.command("remove")
def remove_repository(
    context: typer.Context,
    name: RepositoryName,
    with_everything: Annotated[
        bool, typer.Option("--with-everything", help="Also when it holds objects: they go, with their content.")
    ] = False,
) -> None:
    """Remove a repository with its index, types and ACLs while no server runs; its resource stays.

    Killed in the middle, it can be given again.
    """
    data: DataFolder = context.obj
    store = app.content(data.installation)
    data.must_exist()
    with data.held(), data.database("repository") as database:
        with database.begin() as cx:
            one = repositories.find(cx, name)
            found = removal.close(cx, one, with_everything=with_everything)
        terminal.line(f"Going: {removal.describe(found)}.")
        removed = 0
        with terminal.counting(f"Removing {name}", None) as progress:
            while True:
                with database.begin() as cx:
                    keys = removal.remove_objects(cx, one, _AT_A_TIME)
                if not keys:
                    break
                for key in keys:
                    if key is not None:
                        store.remove(key)
                removed += len(keys)
                progress.reach(removed)
        # Before the row: whoever is stopped in between still finds the repository, and begins again.
        app.engine(data.installation).index(one.id).remove()
        with database.begin() as cx:
            removal.finish(cx, one)
    terminal.line(f"Removed: {name}. The resource that guarded it stays: 'muniment resource remove' removes it.")


@repository.command("list")
def list_repositories(context: typer.Context) -> None:
    """List the repositories with the resources that guard them."""
    data: DataFolder = context.obj
    with data.database("repository") as database, database.read() as cx:
        rows = [(one.name, one.resource_id) for one in repositories.every(cx)]
    terminal.table(("Repository", "Resource"), rows)


@repository.command("usage")
def show_usage(context: typer.Context) -> int:
    """List how many objects and bytes each owner keeps; exit code 1 when the counts are not what there is."""
    data: DataFolder = context.obj
    with data.database("repository") as database, database.read() as cx:
        counted, there = usage.every(cx), objects.amounts_by_owner(cx)
        owners = {key: key for key in (*counted, *there)}
        owners |= bearers.names_of_keys(cx, owners)
    terminal.table(
        ("Owner", "Objects", "Bytes"),
        [(owners[key], str(amount.objects), str(amount.bytes)) for key, amount in sorted(counted.items())],
    )
    wrong = [key for key in owners if counted.get(key, usage.NOTHING) != there.get(key, usage.NOTHING)]
    for key in sorted(wrong):
        terminal.line(f"NOT SOUND: {owners[key]} owns {there.get(key, usage.NOTHING)}")
    return Exit.FAILED if wrong else Exit.OK


@contextmanager
def _both(data: DataFolder, *, ours: bool) -> Iterator[tuple[Connection | None, Connection]]:
    """Open a write transaction on both halves, the directory's first; on the repository alone unless it is ``ours``."""
    with data.database("repository") as database:
        if not ours:
            with database.begin() as cx:
                yield None, cx
            return
        with data.database("directory") as known, known.begin() as directory, database.begin() as cx:
            yield directory, cx


def _guard(data: DataFolder, name: str) -> Resource:
    if "directory" not in data.settings.halves:
        raise Failure("Name the resource of the callers' directory with --resource-id.", Exit.USAGE)
    with data.database("directory") as database, database.begin() as cx:
        return administration.ensure_resource(cx, data.settings.directory.names, name, data.now)
