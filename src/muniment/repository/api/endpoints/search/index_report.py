"""What did the checks of the index find?

Source: docs/interface.md, ours 14.
"""

from collections.abc import Iterable

from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.ground.clock import timestamp
from muniment.repository.api.context import Caller, RepositoryContext, enter_for_thing
from muniment.repository.api.wire import parameters, spelling
from muniment.repository.api.wire.spelling import Written
from muniment.repository.refusals import NotPermitted
from muniment.repository.search.agent import checking, reports
from muniment.repository.search.agent.checking import Report
from muniment.repository.search.agent.reports import KeptReport, WantedCheck
from muniment.repository.store.permissions.principals import Principals


async def read(request: Request, context: RepositoryContext) -> Response:
    """Show the results of the checks of the index."""
    caller, media_type = await enter_for_thing(request, context)
    repository_id = caller.repository.id

    def decide(cx: Connection, principals: Principals) -> dict[str, Written]:
        _check_administrator(principals)
        return _document(cx, repository_id)

    return _answer(caller, media_type, await caller.read(decide), 200)


@events.tells()
async def want(request: Request, context: RepositoryContext) -> Response:
    """Start a check of the index."""
    caller, media_type = await enter_for_thing(request, context)
    repairs = parameters.truth(parameters.read(request), parameters.REPAIR.name)
    repository_id = caller.repository.id

    def decide(cx: Connection, principals: Principals) -> dict[str, Written]:
        _check_administrator(principals)
        reports.want(cx, repository_id, context.clock(), repairs=repairs)
        return _document(cx, repository_id)

    return _answer(caller, media_type, await caller.write(decide), 202)


def _check_administrator(principals: Principals) -> None:
    if not principals.administrator:
        raise NotPermitted("Only an administrator may see or start a check of the index.")


def _document(cx: Connection, repository_id: int) -> dict[str, Written]:
    check, kept_reports = reports.wanted_checks(cx).get(repository_id), reports.of_repository(cx, repository_id)
    return {
        "wanted": None if check is None or _is_begun(check, kept_reports.values()) else timestamp(check.wanted),
        "agents": [
            {
                "agent": follower,
                "report": None if last.report is None else _report(last.report),
                "under-way": None if last.course is None else _report(last.course.report),
            }
            for follower, last in kept_reports.items()
        ],
    }


def _is_begun(check: WantedCheck, kept_reports: Iterable[KeptReport]) -> bool:
    beginnings = [reports.began(each) for each in kept_reports]
    return bool(beginnings) and min(beginnings) >= check.wanted


def _report(report: Report) -> dict[str, Written]:
    return {
        "sound": report.sound,
        "began": timestamp(report.began),
        "ended": None if report.ended is None else timestamp(report.ended),
        **{name: getattr(report, name) for name in checking.COUNTS},
        "differences": [
            {"id": each.object_id, "fault": each.fault, "parts": list(each.parts), "repaired": each.repaired}
            for each in report.differences
        ],
    }


def _answer(
    caller: Caller,
    media_type: str,
    document: dict[str, Written],
    status: int,
) -> Response:
    own = caller.here
    links: Written = [{"rel": "self", "href": f"{own}/index-report"}, {"rel": "parent", "href": own}]
    return spelling.reply(media_type, "index-report", {**document, "links": links}, caller.names, status)
