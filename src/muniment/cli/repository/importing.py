"""The command that imports a folder, and waits until searches find what it imported."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from muniment.cli import terminal
from muniment.cli.repository import owners, texts
from muniment.database.connections import Database
from muniment.ground import clock
from muniment.installation import backends, initialise
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit, Failure, as_failure
from muniment.repository.bulk.importing import record, watching
from muniment.repository.bulk.importing.mirror import Import
from muniment.repository.bulk.importing.report import ImportReport
from muniment.repository.refusals import IndexUnavailable, UnknownAcl, WrongValue
from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes
from muniment.repository.store.extraction import queue
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions.principals import Principals

_MOST_NAMED = 20

_STANDSTILL_SECONDS = 60.0
_QUIET_SECONDS = 1.0
_POLLS = "No notices of changes in so many folders (fs.inotify.max_user_watches). They are looked at in turn."


def import_command(
    data: DataFolder,
    repository_name: str,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER")],
    cabinet: Annotated[str, typer.Option(help="Name of the cabinet; otherwise the folder's.")] = "",
    acl: Annotated[
        str,
        typer.Option(
            help="ACL of the cabinet and, through it, of all in it: name, id or owner/name; otherwise that "
            "of the import before, at first 'private'."
        ),
    ] = "",
    owner: Annotated[
        str, typer.Option(metavar="NAME@PARTITION", help="Owner of the new objects; otherwise the cabinet's.")
    ] = "",
    type_name: Annotated[
        str,
        typer.Option(
            "--type", help="Object type of the documents; otherwise that of the import before, at first 'document'."
        ),
    ] = "",
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Also import files and folders whose names begin with a dot.")
    ] = False,
    mirrors: Annotated[
        bool,
        typer.Option("--mirror", help="Follow renames, and delete the objects of files that are gone from the folder."),
    ] = False,
    deletes_most: Annotated[
        bool, typer.Option("--force", help="With --mirror: also delete more than half of what was imported.")
    ] = False,
    watches: Annotated[bool, typer.Option("--watch", help="After the import, follow the folder until Ctrl-C.")] = False,
    quiet: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=86_400,
            help="With --watch: take a file when it was not written for so many seconds, at first 1. A network disk, "
            "where nobody says that a file is closed, needs more.",
        ),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, max=64, help="Files at one time.")] = 4,
    limit: Annotated[int | None, typer.Option(min=1, help="Import no more files than this.")] = None,
    checksums: Annotated[
        bool, typer.Option("--checksums", help="Also read files whose size and time have not changed.")
    ] = False,
    wait_for: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until all is searchable.")] = True,
) -> int:
    """Import a folder: the folder as a cabinet, its folders as folders, its files as documents.

    Run the command again, and it goes on where it stopped and replaces what has changed. The server may run meanwhile.
    """
    if not folder.is_dir():
        raise Failure(f"{folder} is no folder.", Exit.USAGE)
    if deletes_most and not mirrors:
        raise Failure("--force belongs to --mirror: without it, nothing is deleted.", Exit.USAGE)
    if quiet is not None and not watches:
        raise Failure("--quiet belongs to --watch: without it, each file is taken as it is.", Exit.USAGE)
    with data.database("repository") as database:
        with database.read() as cx:
            repository = repositories.find(cx, repository_name)
            earlier = record.earlier_cabinet(cx, repository, folder)

        def one_pass(quiet_seconds: float = 0.0) -> ImportReport:
            work = Import(
                database,
                repository,
                store,
                backends.reader(data.installation, repository),
                data.settings.repository,
                clock.now,
                data.installation.imports,
                folder,
                principals=principals,
                cabinet=cabinet,
                acl=acl,
                type_name=type_name,
                hidden=hidden,
                mirrors=mirrors,
                deletes_most=deletes_most,
                quiet_seconds=quiet_seconds,
                limit=limit,
                checksums=checksums,
            )
            with terminal.Counting("Importing", None) as bar:
                return work.run(threads, bar.advance)

        principals, store = _importer(data, owner, earlier), backends.content(data.installation)
        if watches:
            return _follow(folder, lambda: one_pass(quiet or _QUIET_SECONDS))
        began = time.monotonic()
        report = one_pass()
        _print_report(report, time.monotonic() - began)
        if wait_for:
            with terminal.Counting("Making searchable", None) as bar:
                searchable = until_searchable(data, database, repository, bar.reach)
            print_texts(database, repository, report)
            if not searchable:
                return Exit.NOT_READY
    if report.withheld:
        return Exit.REFUSED
    return Exit.FAILED if report.failed else Exit.OK


def _importer(data: DataFolder, owner: str, earlier: StoredObject | None) -> Principals:
    """Whose are the new objects? ``owner``, else the owner of the earlier cabinet, else the administrator: also if
    another user now has that owner's name.

    Raises Failure if ``owner`` does not own the earlier cabinet.
    """
    if earlier is None:
        return owners.find_owner(data, owner)
    principals = data.acting_as(owner or earlier.owner)
    if principals.is_(earlier.owner_key):
        return principals
    if not owner:
        return initialise.administrator(data)
    raise Failure(
        f"This folder was imported before, and its cabinet {earlier.id} belongs to {earlier.owner}: leave out --owner, "
        "or first give the objects to the other owner with 'muniment repository give'.",
        Exit.REFUSED,
    )


def _follow(folder: Path, one_pass: Callable[[], ImportReport]) -> int:
    """Try again after a failure, but raise WrongValue, UnknownAcl and bugs, and Failure if the folder is gone."""
    due = threading.Event()
    last_facts: tuple[object, ...] = ()
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for _ in watching.passes(folder, due.is_set, partial(terminal.errors.print, _POLLS)):
            began = time.monotonic()
            try:
                report = one_pass()
            except Exception as error:
                failure = as_failure(error)
                if failure is None or isinstance(error, WrongValue | UnknownAcl):
                    raise
                due.set()
                if last_facts != (failure.sentence,):
                    terminal.errors.print(terminal.harmless(f"{failure.sentence} It is tried again."))
                last_facts = (failure.sentence,)
                continue
            if report.unsettled:
                due.set()
            else:
                due.clear()
            news = (report.created, report.replaced, report.moved, report.deleted, report.reassigned)
            facts = (report.failed, report.withheld)
            if any(news) or facts != last_facts:
                _print_report(report, time.monotonic() - began)
            last_facts = facts
    except KeyboardInterrupt:
        terminal.line("Stopped.")
    except watching.FolderGone as gone:
        raise Failure(f"{gone}; nothing was deleted. Mount or make it, then start again.", Exit.NOT_READY) from gone
    finally:
        signal.signal(signal.SIGTERM, former)
    return Exit.OK


def until_searchable(
    data: DataFolder, database: Database, repository: repositories.Repository, progress: Callable[[int, int], None]
) -> bool:
    """False if for a minute neither the extraction nor the index makes progress."""
    with closing(backends.reader(data.installation, repository)) as reader:
        last_state: object = None
        moved_at = time.monotonic()
        while time.monotonic() - moved_at < _STANDSTILL_SECONDS:
            try:
                position = reader.snapshot().position
            except IndexUnavailable:
                position = changes.START
            with database.read() as cx:
                counts, latest = queue.counts(cx, repository.id), changes.latest(cx, repository.id)
                # A file that waits for a Tika server which is away may do so for long.
                waiting = counts["waiting"]
                if waiting and data.settings.repository.extraction.tika:
                    waiting -= queue.count_of_tika(cx, repository.id)
            total = sum(counts.values())
            progress(total - waiting, total)
            if not waiting and position >= latest:
                return True
            if (position, waiting) != last_state:
                last_state, moved_at = (position, waiting), time.monotonic()
            time.sleep(0.1)
    terminal.errors.print(
        "Nothing is being indexed: start 'muniment serve' or 'muniment agent'. Everything imported is stored."
    )
    return False


def print_texts(database: Database, repository: repositories.Repository, report: ImportReport) -> None:
    with database.read() as cx:
        statuses = queue.statuses(cx, report.object_ids)
        present = {each: status for each, status in statuses.items() if status != queue.EMPTY}
        unread = [(each, status) for each, status in present.items() if status.state != "done" or status.reason]
        named = texts.with_paths(cx, repository, unread[:_MOST_NAMED])
    texts.print_counts(Counter(status.state for status in present.values()))
    reasons = Counter((status.state, status.reason) for _, status in unread)
    texts.print_reasons([(state, reason, count) for (state, reason), count in reasons.most_common()])
    texts.print_files(named)
    if len(unread) > len(named):
        terminal.line(
            f"  and {len(unread) - len(named)} more: 'muniment index report --files -r {repository.name}' lists all"
        )


def _print_report(report: ImportReport, seconds: float) -> None:
    terminal.line(
        f"{report.created} imported, {report.replaced} replaced, {report.unchanged} unchanged, "
        f"{len(report.failed)} failed, {report.links} links not followed, in {seconds:.1f} s"
    )
    for count, what in (
        (report.moved, "moved"),
        (report.deleted, "deleted, because their files are gone"),
        (report.reassigned, "objects carry the other ACL now"),
        (report.hidden, "hidden names left out: --hidden takes them"),
        (report.unsettled, "still being written: they are taken later"),
    ):
        if count:
            terminal.line(f"  {count} {what}")
    if report.withheld:
        terminal.line(
            f"  {report.withheld} not deleted: more than half of all files are gone. Is the folder mounted? "
            "If they are to be deleted, add --force."
        )
    for path, reason in report.failed[:20]:
        terminal.line(terminal.harmless(f"  {path}: {reason}"))
    if len(report.failed) > 20:
        terminal.line(f"  and {len(report.failed) - 20} more")
