"""The command that imports a folder, and waits until searches find what it imported."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from muniment import app, initialise
from muniment.cli import terminal
from muniment.cli.importing import Import, ImportReport
from muniment.data_folder import DataFolder
from muniment.db import Database
from muniment.exit_codes import Exit, Failure
from muniment.repository import repositories
from muniment.repository.change_log import changes
from muniment.repository.extraction import queue
from muniment.repository.refusals import IndexUnavailable
from muniment.repository.repositories import Repository

_QUIET_SECONDS = 60.0


def import_command(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER")],
    repository_name: Annotated[
        str, typer.Option("--repository", "-r", help="Name of the repository.")
    ] = initialise.REPOSITORY,
    cabinet: Annotated[str, typer.Option(help="Name of the cabinet; otherwise the folder's.")] = "",
    acl: Annotated[
        str, typer.Option(help="ACL of the new cabinet and, through it, of all in it: name, id or owner/name.")
    ] = "private",
    owner: Annotated[str, typer.Option(metavar="NAME@PARTITION", help="Owner of the new objects.")] = "",
    type_name: Annotated[str, typer.Option("--type", help="Object type of the documents.")] = "document",
    threads: Annotated[int, typer.Option(min=1, max=64, help="Files at one time.")] = 4,
    limit: Annotated[int | None, typer.Option(min=1, help="Import no more files than this.")] = None,
    checksums: Annotated[
        bool, typer.Option("--checksums", help="Also read files whose size and time have not changed.")
    ] = False,
    wait_for: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until all is searchable.")] = True,
) -> int:
    """Import a folder: the folder as a cabinet, its folders as folders, its files as documents.

    Run again, it goes on where it stopped and replaces what has changed. It works while the server runs.
    """
    data: DataFolder = context.obj
    if not folder.is_dir():
        raise Failure(f"{folder} is no folder.", Exit.USAGE)
    principals = data.acting_as(owner) if owner else initialise.administrator(data)
    with data.database("repository") as database:
        with database.read() as cx:
            repository = repositories.find(cx, repository_name)
        began = time.monotonic()
        work = Import(
            data,
            database,
            repository,
            folder,
            principals=principals,
            cabinet=cabinet,
            acl=acl,
            type_name=type_name,
            limit=limit,
            checksums=checksums,
        )
        with terminal.counting("Importing", None) as bar:
            report = work.run(threads, bar.advance)
        _print_report(report, time.monotonic() - began)
        if wait_for:
            with terminal.counting("Making searchable", None) as bar:
                searchable = until_searchable(data, database, repository, bar.reach)
            print_texts(database, report)
            if not searchable:
                return Exit.NOT_READY
    return Exit.FAILED if report.failed else Exit.OK


def until_searchable(
    data: DataFolder, database: Database, repository: Repository, progress: Callable[[int, int], None]
) -> bool:
    """Wait until every file's text is extracted and the index has followed the whole log; False when nothing moves."""
    reader = app.reader(data.installation, repository)
    last_state: object = None
    moved_at = time.monotonic()
    try:
        while time.monotonic() - moved_at < _QUIET_SECONDS:
            try:
                position = reader.snapshot().position
            except IndexUnavailable:
                position = changes.START
            with database.read() as cx:
                counts, latest = queue.counts(cx, repository.id), changes.latest(cx, repository.id)
            total = sum(counts.values())
            progress(total - counts["waiting"], total)
            if not counts["waiting"] and position >= latest:
                return True
            if (position, counts["waiting"]) != last_state:
                last_state, moved_at = (position, counts["waiting"]), time.monotonic()
            time.sleep(0.1)
    finally:
        reader.close()
    terminal.errors.print(
        "Nothing is being indexed: start 'muniment serve' or 'muniment agent'. Everything imported is stored.",
        markup=False,
    )
    return False


def print_texts(database: Database, report: ImportReport) -> None:
    """Print how many of the files have text, and why the others have none."""
    states: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    with database.read() as cx:
        for status in queue.statuses(cx, report.object_ids).values():
            states[status.state] += 1
            if status.state in {"failed", "unsupported"}:
                reasons[f"{status.state}: {status.reason}"] += 1
    terminal.line(
        f"Text: {states['done']} read, {states['empty']} without any, {states['unsupported']} unsupported, "
        f"{states['failed']} failed, {states['waiting']} waiting"
    )
    for reason, count in reasons.most_common(10):
        terminal.line(f"  {count} {reason}")


def _print_report(report: ImportReport, seconds: float) -> None:
    terminal.line(
        f"{report.created} imported, {report.replaced} replaced, {report.unchanged} unchanged, "
        f"{len(report.failed)} failed, {report.links} links not followed, in {seconds:.1f} s"
    )
    for path, reason in report.failed[:20]:
        terminal.line(terminal.harmless(f"  {path}: {reason}"))
    if len(report.failed) > 20:
        terminal.line(f"  and {len(report.failed) - 20} more")
