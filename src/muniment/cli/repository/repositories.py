"""Commands that make repositories, choose the resources that guard them, and remove them with what they hold."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from sqlalchemy.engine import Connection

from muniment import guards, initialise, stores
from muniment.cli import terminal
from muniment.cli.repository import gifts
from muniment.cli.terminal import AsJson, WithHeader
from muniment.data_folder import DataFolder
from muniment.directory import administration
from muniment.directory.resources import Resource
from muniment.exit_codes import Exit, Failure
from muniment.repository import removal, repositories
from muniment.repository.objects import objects, usage
from muniment.repository.permissions import bearers

repository = typer.Typer(no_args_is_help=True, help="Repositories.")

repository.command("give")(gifts.give_command)

COMMANDS = {"repository": repository}

_AT_A_TIME = 500

RepositoryOption = Annotated[str, typer.Option("--repository", "-r", help="Name of the repository.")]
RepositoryName = Annotated[str, typer.Argument(metavar="NAME")]
GuardName = Annotated[str, typer.Option(help="Name of the resource that guards it; made if missing.")]
GuardId = Annotated[
    str, typer.Option(help="Identifier of the resource; or, where the directory runs apart, one of that directory.")
]

Language = Annotated[
    str, typer.Option(help="Language of its texts, such as German; the installation's (repository.language) if empty.")
]


@repository.command("add")
def add_repository(
    context: typer.Context,
    name: RepositoryName,
    resource: GuardName = "",
    resource_id: GuardId = "",
    language: Language = "",
) -> None:
    """Make a repository and print the identifier of the resource that guards it."""
    data: DataFolder = context.obj
    language = _known_language(data, language)
    guard_id = resource_id or _guard(data, resource or initialise.resource_name(name)).id
    with _both(data, own_directory=data.together or not resource_id) as (directory, cx):
        guards.add_repository(directory, cx, name, guard_id, data.now, language)
    terminal.line(guard_id)


@repository.command("guard")
def guard_repository(
    context: typer.Context,
    name: RepositoryName,
    resource: GuardName = "",
    resource_id: GuardId = "",
) -> None:
    """Let another resource guard a repository: from now on only tokens for that resource open it."""
    data: DataFolder = context.obj
    if bool(resource) == bool(resource_id):
        raise Failure("Name the resource with --resource, or one of another directory with --resource-id.", Exit.USAGE)
    guard_id = resource_id or _guard(data, resource).id
    with _both(data, own_directory=data.together or not resource_id) as (directory, cx):
        guards.guard(directory, cx, name, guard_id)
    terminal.line(guard_id)


@repository.command("language")
def set_language(
    context: typer.Context,
    name: RepositoryName,
    language: Annotated[
        str, typer.Argument(metavar="[LANGUAGE]", help="Such as German. Without it: the installation's.")
    ] = "",
) -> None:
    """Set the language of a repository's texts. The index agent makes a new index, and searches go on meanwhile."""
    data: DataFolder = context.obj
    language = _known_language(data, language)
    with data.database("repository") as database, database.begin() as cx:
        repositories.set_language(cx, repositories.find(cx, name), language)
    terminal.line(f"{name}: {language or data.settings.repository.language}")


@repository.command("remove")
def remove_repository(
    context: typer.Context,
    name: RepositoryName,
    with_everything: Annotated[
        bool, typer.Option("--with-everything", help="Also if it holds objects: they are removed with their content.")
    ] = False,
) -> None:
    """Remove a repository with its index, types and ACLs while no server runs; its resource stays.

    If the command is killed half-way, run it again.
    """
    data: DataFolder = context.obj
    store = stores.content(data.installation)
    data.must_exist()
    with data.lock(), data.database("repository") as database:
        with database.begin() as cx:
            target = repositories.find(cx, name)
            contents = removal.close(cx, target, with_everything=with_everything)
        terminal.line(f"Removing: {removal.describe(contents)}.")
        count = 0
        with terminal.counting(f"Removing {name}", None) as progress:
            while True:
                with database.begin() as cx:
                    keys = removal.remove_objects(cx, target, _AT_A_TIME)
                if not keys:
                    break
                for key in keys:
                    if key is not None:
                        store.remove(key)
                count += len(keys)
                progress.reach(count)
        # The index goes before the row: if the command stops in between, the next run still finds the repository.
        stores.engine(data.installation).index(target).remove()
        with database.begin() as cx:
            removal.finish(cx, target)
    terminal.line(f"Removed: {name}. The resource that guarded it stays: 'muniment resource remove' removes it.")


@repository.command("list")
def list_repositories(context: typer.Context, as_json: AsJson = False, header: WithHeader = None) -> None:
    """List the repositories with the resources that guard them."""
    data: DataFolder = context.obj
    with data.database("repository") as database, database.read() as cx:
        own = data.settings.repository.language
        rows = [(row.name, row.resource_id, row.language or own) for row in repositories.every(cx)]
    terminal.table(("Repository", "Resource", "Language"), rows, as_json=as_json, header=header)


@repository.command("usage")
def show_usage(context: typer.Context, as_json: AsJson = False, header: WithHeader = None) -> int:
    """List how many objects and bytes each owner keeps; exit code 1 when the recorded counts are wrong."""
    data: DataFolder = context.obj
    with data.database("repository") as database, database.read() as cx:
        recorded_amounts, actual = usage.every(cx), objects.amounts_by_owner(cx)
        owners = {key: key for key in (*recorded_amounts, *actual)}
        owners |= bearers.names_of_keys(cx, owners)
    terminal.table(
        ("Owner", "Objects", "Bytes"),
        [(owners[key], amount.objects, amount.bytes) for key, amount in sorted(recorded_amounts.items())],
        as_json=as_json,
        header=header,
    )
    wrong = [key for key in owners if recorded_amounts.get(key, usage.NOTHING) != actual.get(key, usage.NOTHING)]
    for key in sorted(wrong):
        terminal.errors.print(f"NOT SOUND: {owners[key]} owns {actual.get(key, usage.NOTHING)}", markup=False)
    return Exit.FAILED if wrong else Exit.OK


def _known_language(data: DataFolder, text: str) -> str:
    """Return a language as the index engine spells it; empty for an empty text. Raises Failure for an unknown one."""
    languages = {language.casefold(): language for language in stores.engine(data.installation).languages()}
    if text and text.casefold() not in languages:
        raise Failure(f"There are no stems for {text!r}; choose one of {', '.join(languages.values())}.", Exit.USAGE)
    return languages.get(text.casefold(), "")


@contextmanager
def _both(data: DataFolder, *, own_directory: bool) -> Iterator[tuple[Connection | None, Connection]]:
    """Open a write transaction on the repository; with ``own_directory`` first open one on the directory."""
    with data.database("repository") as database:
        if not own_directory:
            with database.begin() as cx:
                yield None, cx
            return
        with data.database("directory") as rights, rights.begin() as directory, database.begin() as cx:
            yield directory, cx


def _guard(data: DataFolder, name: str) -> Resource:
    if "directory" not in data.settings.halves:
        raise Failure("Name the resource of the callers' directory with --resource-id.", Exit.USAGE)
    with data.database("directory") as database, database.begin() as cx:
        return administration.ensure_resource(cx, data.settings.directory.names, name, data.now)
