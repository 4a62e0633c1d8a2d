"""Commands that make repositories, choose the resources that guard them, and remove them with what they hold."""

from importlib import import_module
from typing import Annotated

import typer
from sqlalchemy.engine import Connection

from muniment.cli import terminal
from muniment.cli.repository import exports, guarding, ownership
from muniment.cli.repository.guarding import GuardId, GuardName, RepositoryName
from muniment.cli.running import Group, Rows
from muniment.database.connections import Database
from muniment.installation import backends, initialise
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit, Failure
from muniment.integration import guards
from muniment.repository.bulk import removal
from muniment.repository.store import repositories
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.contents import usage
from muniment.repository.store.permissions import name_keys

repository_commands = Group(help="Repositories.")

repository_commands.acts("give")(ownership.give_command)
repository_commands.acts("export")(exports.export_command)
repository_commands.acts("import")(exports.import_command)

_AT_A_TIME = 500
_FURTHER_TABLES = (
    "audit",
    "store.change_log.followers",
    "bulk.importing.record",
    "search.agent.indexing",
    "search.agent.reports",
    "store.leases",
    "search.meaning.embeddings",
    "search.answering.kept.kept_searches",
)

Language = Annotated[
    str, typer.Option(help="Language of its texts, such as German; the installation's (repository.language) if empty.")
]


def select_repositories(database: Database, name: str) -> list[repositories.Repository]:
    with database.read() as cx:
        return [repositories.find(cx, name)] if name else repositories.all_repositories(cx)


@repository_commands.acts("add")
def add_repository(
    data: DataFolder,
    name: RepositoryName,
    resource: GuardName = "",
    resource_id: GuardId = "",
    language: Language = "",
) -> None:
    """Make a repository and print the identifier of the resource that guards it.

    A name has at most 120 characters. It may hold spaces, but not begin or end with one.
    """
    guarding.check_guard(resource, resource_id)
    language = guarding.known_language(data, language)
    with data.read("repository") as cx:  # before the resource is made
        repositories.check_name(name)
        repositories.check_free(cx, name)
    guard_id = resource_id or guarding.resource_of(data, resource or initialise.resource_name(name)).id
    with guarding.both(data, resource_id) as (directory, cx):
        new_repository = guards.add_repository(directory, cx, name, guard_id, data.now, language)
    terminal.line(new_repository.resource_id)


@repository_commands.acts("guard")
def guard_repository(
    data: DataFolder,
    name: RepositoryName,
    resource: GuardName = "",
    resource_id: GuardId = "",
) -> None:
    """Let another resource guard a repository: only users whom that resource lets in may enter from now on."""
    if bool(resource) == bool(resource_id):
        raise Failure("Name the resource with --resource, or one of another directory with --resource-id.", Exit.USAGE)
    guard_id = resource_id or guarding.resource_of(data, resource).id
    with guarding.both(data, resource_id) as (directory, cx):
        guard_id = guards.guard(directory, cx, name, guard_id)
    terminal.line(guard_id)


@repository_commands.writes("language")
def set_language(
    data: DataFolder,
    cx: Connection,
    name: RepositoryName,
    language: Annotated[
        str, typer.Argument(metavar="[LANGUAGE]", help="Such as German. Without it: the installation's.")
    ] = "",
) -> str:
    """Set the language of a repository's texts. The index agent makes a new index, and searches go on meanwhile."""
    language = guarding.known_language(data, language)
    repositories.set_language(cx, repositories.find(cx, name), language)
    return f"{name}: {language or data.settings.repository.language}"


@repository_commands.acts("remove")
def remove_repository(
    data: DataFolder,
    name: RepositoryName,
    with_everything: Annotated[
        bool, typer.Option("--with-everything", help="Also if it holds objects: they are removed with their content.")
    ] = False,
) -> None:
    """Remove a repository with its index, types and ACLs while no server runs; its resource stays.

    If the command is killed half-way, run it again.
    """
    declare_tables()
    with data.database("repository") as database, data.lock():
        store = backends.content(data.installation)
        with database.begin() as cx:
            target = repositories.find(cx, name)
            contents = removal.close(cx, target, with_everything=with_everything)
        terminal.line(f"Removing: {removal.describe(contents)}.")
        count = 0
        with terminal.Counting(f"Removing {name}", None) as progress:
            while True:
                with database.begin() as cx:
                    gone = removal.remove_objects(cx, target, _AT_A_TIME)
                if not gone.number:
                    break
                for key in gone.freed:
                    store.remove(key)
                count += gone.number
                progress.reach(count)
        # The index goes before the row: if the command stops in between, the next run still finds the repository.
        backends.engine(data.installation).index(target).remove()
        with database.begin() as cx:
            removal.finish(cx, target)
    terminal.line(f"Removed: {name}. The resource that guarded it stays: 'muniment resource remove' removes it.")


def declare_tables() -> None:
    """A removal finds only the tables that loaded modules declare."""
    for module in _FURTHER_TABLES:
        import_module(f"muniment.repository.{module}")


@repository_commands.reads("list", "Repository", "Resource", "Language")
def list_repositories(data: DataFolder, cx: Connection) -> Rows:
    """List the repositories with the resources that guard them."""
    own = data.settings.repository.language
    return [(row.name, row.resource_id, row.language or own) for row in repositories.all_repositories(cx)]


@repository_commands.acts("usage", recorded=False)
def show_usage(data: DataFolder, as_json: terminal.AsJson = False, header: terminal.WithHeader = None) -> int:
    """List how many objects and bytes each owner keeps. The exit code is 1 if recorded counts are wrong."""
    with data.read("repository") as cx:
        recorded_amounts, actual = usage.usage_by_owner(cx), inventory.amounts_by_owner(cx)
        owners = {key: key for key in (*recorded_amounts, *actual)}
        owners |= name_keys.names_of_keys(cx, owners)
    terminal.table(
        ("Owner", "Objects", "Bytes"),
        [(owners[key], amount.objects, amount.bytes) for key, amount in sorted(recorded_amounts.items())],
        as_json=as_json,
        header=header,
    )
    wrong = [key for key in owners if recorded_amounts.get(key, usage.NOTHING) != actual.get(key, usage.NOTHING)]
    for key in sorted(wrong):
        terminal.errors.print(terminal.harmless(f"NOT SOUND: {owners[key]} owns {actual.get(key, usage.NOTHING)}"))
    return Exit.FAILED if wrong else Exit.OK
