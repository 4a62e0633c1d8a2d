"""What did the last check of an index find, how far has the current check come, and which check is wanted?"""

from collections import defaultdict

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import repository_column, repository_tables, required
from muniment.ground.clock import Instant
from muniment.repository.search.agent.checking import Course, Report

FORMAT = 1
"""Rows of another format are not read: the next check replaces them."""

index_checks = sa.Table(
    "index_checks",
    repository_tables,
    repository_column(primary_key=True),
    required("wanted", sa.BigInteger),
    required("repairs", sa.Boolean),
)

index_reports = sa.Table(
    "index_reports",
    repository_tables,
    repository_column(primary_key=True),
    sa.Column("follower", sa.String(32), primary_key=True),
    required("format", sa.Integer),
    sa.Column("report", sa.Text),
    sa.Column("course", sa.Text),
)


class WantedCheck(msgspec.Struct, frozen=True):
    """A request for a check, and whether it shall repair."""

    wanted: Instant
    repairs: bool


class KeptReport(msgspec.Struct, frozen=True):
    """What one agent stores for one repository: the last report, and the course of the current check."""

    report: Report | None = None
    course: Course | None = None


def began(report: KeptReport) -> Instant:
    """Return when the current check, or else the last one, began; 0 if there was none."""
    if report.course is not None:
        return report.course.report.began
    return 0 if report.report is None else report.report.began


def is_done(check: WantedCheck, report: KeptReport) -> bool:
    """Return whether an agent has ended a check begun after this request."""
    return report.report is not None and report.report.began >= check.wanted


def want(cx: Connection, repository_id: int, now: Instant, *, repairs: bool) -> None:
    cx.execute(_WANT, {"repository_id": repository_id, "wanted": now, "repairs": repairs})


def wanted_checks(cx: Connection) -> dict[int, WantedCheck]:
    return {row.repository_id: WantedCheck(row.wanted, row.repairs) for row in cx.execute(sa.select(index_checks))}


def keep_report(cx: Connection, repository_id: int, follower: str, state: KeptReport) -> None:
    texts = {
        "report": None if state.report is None else msgspec.json.encode(state.report).decode(),
        "course": None if state.course is None else msgspec.json.encode(state.course).decode(),
    }
    cx.execute(_KEEP, {"repository_id": repository_id, "follower": follower, "format": FORMAT, **texts})


def of_repository(cx: Connection, repository_id: int) -> dict[str, KeptReport]:
    """A key is the name of the agent."""
    rows = cx.execute(sa.select(index_reports).where(index_reports.c.repository_id == repository_id))
    return {row.follower: _read(row._mapping) for row in rows}


def of_follower(cx: Connection, follower: str) -> defaultdict[int, KeptReport]:
    rows = cx.execute(sa.select(index_reports).where(index_reports.c.follower == follower))
    return defaultdict(KeptReport, {row.repository_id: _read(row._mapping) for row in rows})


def forget(cx: Connection) -> None:
    """Delete all after a restore: the indexes are other ones then."""
    for table in (index_checks, index_reports):
        cx.execute(table.delete())


def _read(row: sa.RowMapping) -> KeptReport:
    if row["format"] != FORMAT:
        return KeptReport()
    return KeptReport(
        msgspec.json.decode(row["report"] or "null", type=Report | None),
        msgspec.json.decode(row["course"] or "null", type=Course | None),
    )


_WANT = sa.text(
    "INSERT INTO index_checks (repository_id, wanted, repairs) VALUES (:repository_id, :wanted, :repairs) "
    "ON CONFLICT (repository_id) DO UPDATE SET wanted = excluded.wanted, repairs = excluded.repairs"
)
_KEEP = sa.text(
    "INSERT INTO index_reports (repository_id, follower, format, report, course) "
    "VALUES (:repository_id, :follower, :format, :report, :course) ON CONFLICT (repository_id, follower) "
    "DO UPDATE SET format = excluded.format, report = excluded.report, course = excluded.course"
)
