"""Commands about the index of a repository, and about the bytes of its documents."""

from collections.abc import Iterator

import typer

from muniment import app, clock, initialise
from muniment.cli import terminal
from muniment.cli.repository.repositories import RepositoryOption
from muniment.cli.terminal import AsJson, WithHeader
from muniment.data_folder import DataFolder
from muniment.db import Database
from muniment.exit_codes import Exit
from muniment.repository import repositories
from muniment.repository.change_log import changes
from muniment.repository.content.contract import ContentStore, StoredContent
from muniment.repository.extraction import queue
from muniment.repository.index_agent import agent
from muniment.repository.objects import objects
from muniment.repository.objects.table import StoredObject
from muniment.repository.refusals import IndexUnavailable

index = typer.Typer(no_args_is_help=True, help="The index of a repository.")
content = typer.Typer(no_args_is_help=True, help="The bytes of documents.")

COMMANDS = {"index": index, "content": content}

_AT_A_TIME = 500


@index.command("status")
def index_status(context: typer.Context, as_json: AsJson = False, header: WithHeader = None) -> None:
    """Show for each repository how far its index is, and how many files still wait for text extraction."""
    data: DataFolder = context.obj
    rows = list[tuple[object, ...]]()
    with data.database("repository") as database, database.read() as cx:
        for repository in repositories.every(cx):
            latest, counts = changes.latest(cx, repository.id), queue.counts(cx, repository.id)
            files = counts["waiting"], counts["failed"], counts["unsupported"]
            reader = app.reader(data.installation, repository)
            try:
                position = reader.snapshot().position
                state = "current" if position >= latest else "behind"
                rows.append((repository.name, state, str(position), str(latest), *files))
            except IndexUnavailable:
                rows.append((repository.name, "no index yet", None, str(latest), *files))
            finally:
                reader.close()
    heads = ("Repository", "Index", "Position", "Last change", "Waiting", "Failed", "Unsupported")
    terminal.table(heads, rows, as_json=as_json, header=header)


@index.command("check")
def index_check(context: typer.Context, repository_name: RepositoryOption = "") -> int:
    """Compare the index with the repository, object by object; exit code 1 when they differ."""
    data: DataFolder = context.obj
    sound = True
    with data.database("repository") as database:
        with database.read() as cx:
            selection = [repositories.find(cx, repository_name)] if repository_name else repositories.every(cx)
        for repository in selection:
            reader = app.reader(data.installation, repository)
            try:
                report = agent.check(database, repository, reader.snapshot())
            finally:
                reader.close()
            sound = sound and report.sound
            verdict = "sound" if report.sound else "NOT SOUND"
            terminal.line(
                f"{repository.name}: {verdict} at position {report.position}: {report.objects} objects, "
                f"{report.documents} documents, {report.missing} missing, {report.extra} extra, {report.stale} stale, "
                f"{report.doubled} doubled, {report.waiting} waiting, {report.unindexed} not indexable"
            )
            for fault, ids in report.samples.items():
                if ids:
                    terminal.line(f"  {fault}: {' '.join(ids)}")
            if not report.sound:
                terminal.line(f"  Mend it with: muniment --data {data.path} index rebuild -r {repository.name}")
    return Exit.OK if sound else Exit.FAILED


@index.command("rebuild")
def index_rebuild(context: typer.Context, repository_name: RepositoryOption = initialise.REPOSITORY) -> None:
    """Build the index again from the database while searches go on, then switch to the new one."""
    data: DataFolder = context.obj
    with data.database("repository") as database:
        with database.read() as cx:
            repository = repositories.find(cx, repository_name)
        with terminal.counting("Rebuilding", None) as progress:
            position = agent.rebuild(
                database,
                repository,
                app.engine(data.installation),
                clock.now,
                progress.reach,
            )
    terminal.line(f"{repository.name}: rebuilt, true to position {position}")


@content.command("check")
def content_check(context: typer.Context, repository_name: RepositoryOption = "") -> int:
    """Read every content and compare it with what was stored; exit code 1 when one is missing or altered."""
    data: DataFolder = context.obj
    store, sound = app.content(data.installation), True
    with data.database("repository") as database:
        with database.read() as cx:
            selection = [repositories.find(cx, repository_name)] if repository_name else repositories.every(cx)
        for repository in selection:
            whole_count, damaged = 0, list[str]()
            with terminal.counting(f"Reading {repository.name}", None) as progress:
                for object_id, good in _verify_all(database, store, repository.id):
                    whole_count += good
                    damaged += [] if good else [object_id]
                    progress.reach(whole_count + len(damaged))
            sound = sound and not damaged
            terminal.line(
                f"{repository.name}: {'NOT SOUND' if damaged else 'sound'}: {whole_count} whole, "
                f"{len(damaged)} missing or altered"
            )
            for object_id in damaged:
                terminal.line(f"  {object_id}: replace its content, or bring its file (not a pack) back from a backup")
    return Exit.OK if sound else Exit.FAILED


def _verify_all(database: Database, store: ContentStore, repository_id: int) -> Iterator[tuple[str, bool]]:
    """Read every content; yield its object's id, and whether the content is still what was stored."""
    last_seq: int | None = 0
    while last_seq is not None:
        with database.read() as cx:
            page = objects.every(cx, repository_id, last_seq, _AT_A_TIME)
        for stored in page:
            content, good = stored.content, False
            while content is not None:
                good = store.verify(content.key, content.sha256)
                current = content if good else _current_content(database, repository_id, stored)
                if current == content:
                    yield stored.id, good
                    break
                content = current
        last_seq = page[-1].seq if page else None


def _current_content(database: Database, repository_id: int, stored: StoredObject) -> StoredContent | None:
    """Return the content that an object has now: it may have been replaced or moved, or the object deleted."""
    with database.read() as cx:
        page = objects.every(cx, repository_id, stored.seq - 1, 1)
        return page[0].content if page and page[0].id == stored.id else None
