"""Which index does the agent check next, and when?"""

import time
from collections.abc import Mapping

import sqlalchemy as sa
import structlog

from muniment.database.connections import Database
from muniment.ground.clock import SECOND, Instant
from muniment.ground.refusals import Refusal
from muniment.repository.search.agent import checking, reports
from muniment.repository.search.agent.checking import Checker, Course, Report
from muniment.repository.search.agent.reports import KeptReport
from muniment.repository.search.index.contract import Engine
from muniment.repository.store import repositories

log = structlog.get_logger("muniment.agent")

_LOOK_SECONDS = 1.0
_KEEP_SECONDS, _KEEP_SECONDS_IF_WANTED = 60.0, 2.0
_PATIENCE_SECONDS = 30.0
_AFTER_A_FAILURE_SECONDS = 30.0
_REST: Instant = 3600 * SECOND
"""Only on request is an index checked again sooner."""


class BackgroundChecks:
    """Checks the indexes of one agent, one after the other, and repairs what differs.

    It waits ``seconds`` before each range; with 0, it only does the checks that somebody asks for. Such a check does
    not wait, and repairs only on request. The caller must be the agent of these indexes.
    """

    def __init__(self, database: Database, engine: Engine, seconds: float) -> None:
        self._database, self._engine, self._seconds = database, engine, seconds
        self._current: _Current | None = None
        self._left_alone: dict[int, float] = {}
        self._look_at = 0.0
        self._due = time.monotonic() + seconds

    def advance(self, now: Instant) -> bool:
        """Take a step if one is due; return whether the next should follow at once.

        Raises Busy, DBAPIError.
        """
        if time.monotonic() >= self._look_at:
            self._look(now)
            self._look_at = time.monotonic() + _LOOK_SECONDS
        current = self._current
        if current is None or (not current.is_wanted and time.monotonic() < self._due):
            return False
        self._due = time.monotonic() + self._seconds
        try:
            has_moved = current.step(now)
        except (Refusal, OSError, sa.exc.IntegrityError) as error:
            log.warning("the check of an index is given up", repository=current.name, reason=str(error)[:300])
            self._fail(current)
        except sa.exc.DBAPIError:
            raise
        except Exception:
            log.exception("the check of an index failed", repository=current.name)
            self._fail(current)
        else:
            if current.checker.course.over:
                self.close()
            return has_moved and current.is_wanted
        return False

    def close(self) -> None:
        if self._current is not None:
            self._current.close()
        self._current = None

    def _fail(self, current: "_Current") -> None:
        self._left_alone[current.repository_id] = time.monotonic() + _AFTER_A_FAILURE_SECONDS
        self.close()

    def _look(self, now: Instant) -> None:
        """Choose a check: one that somebody asks for, or else the index checked longest ago.

        The former replaces a background check, and goes on from its stored course if it was interrupted.
        """
        if self._current is not None and self._current.is_wanted:
            return
        with self._database.read() as cx:
            checks = reports.wanted_checks(cx)
            if not checks and self._current is not None:
                return
            repositories_by_id = {
                repository.id: repository
                for repository in repositories.all_repositories(cx)
                if self._left_alone.get(repository.id, 0.0) <= time.monotonic()
            }
            kept_reports = reports.of_follower(cx, self._engine.follower())
        due_checks = {
            repository_id: check
            for repository_id, check in checks.items()
            if repository_id in repositories_by_id and not reports.is_done(check, kept_reports[repository_id])
        }
        if due_checks:
            repository_id = min(due_checks, key=lambda each: due_checks[each].wanted)
            check = due_checks[repository_id]
            course = kept_reports[repository_id].course
            if course is None or course.report.began < check.wanted:
                course = Course(Report(now), check.repairs)
            self._begin(repositories_by_id[repository_id], kept_reports, course, is_wanted=True)
        elif self._current is None and self._seconds and repositories_by_id:
            repository_id = min(repositories_by_id, key=lambda each: reports.began(kept_reports[each]))
            of_repository = kept_reports[repository_id]
            course = of_repository.course
            if course is None and (of_repository.report is None or now - of_repository.report.began > _REST):
                course = Course(Report(now), repairs=True)
            if course is not None:
                self._begin(repositories_by_id[repository_id], kept_reports, course, is_wanted=False)

    def _begin(
        self,
        repository: repositories.Repository,
        kept_reports: Mapping[int, KeptReport],
        course: Course,
        *,
        is_wanted: bool,
    ) -> None:
        self.close()
        last = kept_reports[repository.id].report
        self._current = _Current(self._database, self._engine, repository, course, last, is_wanted=is_wanted)


class _Current:
    """The check that is under way."""

    def __init__(
        self,
        database: Database,
        engine: Engine,
        repository: repositories.Repository,
        course: Course,
        last: Report | None,
        *,
        is_wanted: bool,
    ) -> None:
        self.name, self.is_wanted = repository.name, is_wanted
        self._database, self.repository_id = database, repository.id
        self._follower, self._last = engine.follower(), last
        self._index = engine.index(repository).reader()
        self.checker = Checker(database, repository, self._index, course)
        self._moved_at = time.monotonic()
        self._keep_at = 0.0

    def step(self, now: Instant) -> bool:
        has_moved = self.checker.step(now)
        if has_moved:
            self._moved_at = time.monotonic()
        elif time.monotonic() - self._moved_at > _PATIENCE_SECONDS:
            self.checker.give_up()
        if self.checker.course.over:
            report = self.checker.finish(now)
            tell = log.info if report.sound else log.error
            tell("index checked", repository=self.name, **{name: getattr(report, name) for name in checking.COUNTS})
            self._keep(KeptReport(report))
        elif time.monotonic() >= self._keep_at:
            self._keep(KeptReport(self._last, self.checker.course))
            self._keep_at = time.monotonic() + (_KEEP_SECONDS_IF_WANTED if self.is_wanted else _KEEP_SECONDS)
        return has_moved

    def close(self) -> None:
        self._index.close()

    def _keep(self, state: KeptReport) -> None:
        with self._database.begin() as cx:
            reports.keep_report(cx, self.repository_id, self._follower, state)
