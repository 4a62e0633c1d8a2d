"""Commands about the index of a repository."""

from contextlib import closing
from functools import partial
from typing import Annotated

import msgspec
import typer
from sqlalchemy.engine import Connection

from muniment.cli import terminal
from muniment.cli.repository import texts
from muniment.cli.repository.repositories import select_repositories
from muniment.cli.running import Group, RepositoryOption, Rows
from muniment.cli.terminal import AsJson
from muniment.ground import clock
from muniment.ground.clock import timestamp
from muniment.installation import backends
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit
from muniment.repository.refusals import IndexUnavailable
from muniment.repository.search.agent import agent, checking, reports
from muniment.repository.search.agent.checking import Report
from muniment.repository.search.meaning import embedder
from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes, followers
from muniment.repository.store.extraction import queue
from muniment.repository.store.repositories import Repository

index_commands = Group(help="The index of a repository.")

_STATUS_HEADS = ("Repository", "Index", "Position", "Last change", "Waiting", "Failed", "Unsupported", "Embedding")


@index_commands.reads("status", *_STATUS_HEADS)
def index_status(data: DataFolder, cx: Connection) -> Rows:
    """Show for each repository how far its index has come, and how many files wait for text extraction.

    For repositories that are searched by meaning, it also shows whether every text is embedded.
    """
    for repository in repositories.all_repositories(cx):
        latest, counts = changes.latest(cx, repository.id), queue.counts(cx, repository.id)
        files = counts["waiting"], counts["failed"], counts["unsupported"]
        embedding = _embedding(data, cx, repository, latest)
        with closing(backends.reader(data.installation, repository)) as reader:
            try:
                position = reader.snapshot().position
                state = "current" if position >= latest else "behind"
                yield repository.name, state, str(position), str(latest), *files, embedding
            except IndexUnavailable:
                yield repository.name, "no index yet", None, str(latest), *files, embedding


def _embedding(data: DataFolder, cx: Connection, repository: Repository, latest: changes.Position) -> str:
    if not data.settings.repository.meaning:
        return "off"
    position = followers.position(cx, repository.id, embedder.FOLLOWER)
    return "current" if position is not None and position >= latest else "behind"


@index_commands.acts("check", recorded=False)
def index_check(
    data: DataFolder,
    repository_name: RepositoryOption = "",
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Have the index agent index differing objects again, and check them once more."),
    ] = False,
    wait: Annotated[
        float,
        typer.Option(
            help="Seconds without progress of the index after which the changes that it lacks count as differences."
        ),
    ] = 5.0,
    as_json: AsJson = False,
) -> int:
    """Compare the index with the repository, range by range. The exit code is 1 if they differ."""
    findings = list[tuple[Repository, Report]]()
    with data.database("repository") as database:
        for repository in select_repositories(database, repository_name):
            with closing(backends.reader(data.installation, repository)) as reader:
                reader.snapshot()  # raises if there is none, before anything is shown
                with terminal.Counting(f"Checking {repository.name}", None) as bar:
                    report = checking.check(
                        database,
                        repository,
                        reader,
                        clock.now,
                        repairs=repair,
                        patience=wait,
                        progress=partial(_show, bar),
                    )
            findings.append((repository, report))
            if not as_json:
                _print_report(repository, report)
                if not report.sound:
                    terminal.line(f"  {_advice(data, repository, report)}")
    if as_json:
        terminal.print_json([{"repository": repository.name, **_as_values(report)} for repository, report in findings])
    return Exit.OK if all(report.sound for _, report in findings) else Exit.FAILED


@index_commands.acts("report", recorded=False)
def index_report(
    data: DataFolder,
    repository_name: RepositoryOption = "",
    with_files: Annotated[
        bool, typer.Option("--files", help="List every file that was not read, or not wholly, with the reason.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Show what was not read, and the last report of each index agent's own checks.

    Files that were not read, or not wholly, are counted by reason. The exit code is 1 if a check found faults that were
    left unrepaired.
    """
    documents, sound = list[dict[str, object]](), True
    with data.database("repository") as database:
        for repository in select_repositories(database, repository_name):
            with database.read() as cx:
                kept_reports = reports.of_repository(cx, repository.id)
                counts, reasons = queue.counts(cx, repository.id), queue.reasons(cx, repository.id)
                files = texts.files_not_read(cx, repository) if with_files else []
            of_texts: dict[str, object] = {
                "counts": counts,
                "reasons": [{"status": state, "reason": reason, "files": number} for state, reason, number in reasons],
            }
            if with_files:
                of_texts["files"] = [each._asdict() for each in files]
            for follower, last in kept_reports.items() or [(None, reports.KeptReport())]:
                sound = sound and (last.report is None or last.report.sound)
                documents.append(
                    {
                        "repository": repository.name,
                        "agent": follower,
                        "report": last.report and _as_values(last.report),
                        "under_way": last.course and _as_values(last.course.report),
                        "texts": of_texts,
                    }
                )
                if not as_json:
                    _print_kept(repository, last)
            if as_json:
                continue
            if not kept_reports:
                terminal.line(f"{repository.name}: no index agent has checked the index yet")
            texts.print_counts(counts)
            texts.print_reasons(reasons)
            texts.print_files(files)
    if as_json:
        terminal.print_json(documents)
    return Exit.OK if sound else Exit.FAILED


@index_commands.acts("rebuild")
def index_rebuild(data: DataFolder, repository_name: str) -> None:
    """Build the index again from the database while searches go on, then switch to the new one."""
    with data.database("repository") as database:
        with database.read() as cx:
            repository = repositories.find(cx, repository_name)
        with terminal.Counting("Rebuilding", None) as progress:
            position = agent.rebuild(
                database,
                repository,
                backends.engine(data.installation),
                clock.now,
                progress.reach,
            )
    terminal.line(f"{repository.name}: rebuilt, true to position {position}")


@index_commands.acts("read-again")
def index_read_again(data: DataFolder, repository_name: str) -> None:
    """Have the files read again that have no text: this release or a Tika server may read what was not read before."""
    total, last = 0, -1
    with data.database("repository") as database:
        with database.read() as cx:
            repository = repositories.find(cx, repository_name)
        while True:
            with database.begin() as cx:
                count, last = queue.read_again(cx, repository.id, last, clock.now())
            if not count:
                break
            total += count
    terminal.line(f"{repository.name}: {total} files wait to be read")


def _show(bar: terminal.Counting, report: Report) -> None:
    bar.reach(report.objects)


def _print_report(repository: Repository, report: Report) -> None:
    verdict = "sound" if report.sound else "NOT SOUND"
    repairs = f", {report.noted} noted to be indexed again, {report.repaired} repaired" if report.noted else ""
    terminal.line(
        f"{repository.name}: {verdict} at position {report.position}: {report.objects} objects, "
        f"{report.documents} documents, {report.missing} missing, {report.extra} extra, {report.stale} stale, "
        f"{report.doubled} doubled, {report.waiting} waiting, {report.unindexed} not indexable{repairs}"
    )
    for difference in report.differences:
        parts = f" ({', '.join(map(terminal.harmless, difference.parts))})" if difference.parts else ""
        after = ", repaired" if difference.repaired else ""
        terminal.line(f"  {difference.fault}: {terminal.harmless(difference.object_id)}{parts}{after}")
    other_count = report.remaining + report.repaired - len(report.differences)
    if other_count > 0:
        terminal.line(f"  and {other_count} more")


def _print_kept(repository: Repository, last: reports.KeptReport) -> None:
    if last.report is not None:
        end = last.report.ended or last.report.began
        terminal.line(f"{repository.name}: checked from {timestamp(last.report.began)} to {timestamp(end)}")
        _print_report(repository, last.report)
    if last.course is not None:
        report = last.course.report
        terminal.line(
            f"{repository.name}: under way since {timestamp(report.began)}: {report.objects} objects in "
            f"{report.ranges} ranges, {report.remaining} differ"
        )


def _advice(data: DataFolder, repository: Repository, report: Report) -> str:
    command = f"muniment --data {data.path} index"
    if not report.noted:
        return f"Mend it with: {command} check --repair -r {repository.name}"
    if report.repaired < report.noted:
        return f"The index agent has not indexed all of them again: is it running? Then: {command} check"
    return f"Mend the rest with: {command} rebuild -r {repository.name}"


def _as_values(report: Report) -> dict[str, object]:
    return {
        "sound": report.sound,
        "began": timestamp(report.began),
        "ended": None if report.ended is None else timestamp(report.ended),
        "position": str(report.position),
        **{name: getattr(report, name) for name in checking.COUNTS},
        "differences": [msgspec.to_builtins(difference) for difference in report.differences],
    }
