"""Is this process alive, and can it do its work?"""

import asyncio

from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request
from starlette.responses import Response

from muniment.database.connections import Busy
from muniment.database.transactions import Transactions
from muniment.front.halves import Halves
from muniment.ground import certificates
from muniment.ground.clock import SECOND, Instant
from muniment.installation import backends
from muniment.repository.refusals import IndexUnavailable
from muniment.repository.search.agent import reports
from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes
from muniment.repository.store.extraction.tika.tika import TikaServer
from muniment.web.answers.responses import json_response

_LATE: Instant = 60 * SECOND
_TIKA_SECONDS = 1.0


async def live(_request: Request, _halves: Halves) -> Response:
    """Say that this process is alive."""
    return json_response({"status": "alive"})


async def ready(_request: Request, halves: Halves) -> Response:
    """Say for each part whether it works. Answer 503 if a database cannot be read, or if none of the indexes can.

    A disk below its reserve does not count: all but new content is served.
    """
    parts: dict[str, object] = {}
    faults: list[str] = []
    for name, half in (("directory", halves.directory), ("repository", halves.repository)):
        if half is None:
            continue
        fault = await _fault_of(half.transactions)
        parts[name] = fault or "ready"
        faults += [fault] if fault else []
    if halves.repository is not None and not faults:
        parts["indexes"] = states = await halves.repository.transactions.read(indexes, halves, halves.clock())
        # One repository without an index, such as a new one, does not keep the others from their callers.
        if states and all("fault" in state for state in states.values()):
            faults.append("no index can be read")
    if halves.repository is not None and halves.tika is not None:
        # Files wait for it, and nothing else does: a server without it is ready.
        parts["tika"] = await _tika_state(halves.tika)
    days = certificates.days_left(halves.installation.certificate, halves.clock())
    if days is not None:
        parts["certificate"] = {"days_left": days, "late": days < certificates.RENEW_DAYS}
    if backends.reserve(halves.installation).is_used():
        parts["disk"] = "less is free than the reserve: new content is refused"
    status = "not ready" if faults else "short of room" if "disk" in parts else "ready"
    body = {"status": status, **parts}
    if faults:
        return json_response(body, 503, {"Cache-Control": "no-store", "Retry-After": "1"})
    return json_response(body, headers={"Cache-Control": "no-store"})


async def _tika_state(tika: TikaServer) -> str:
    try:
        async with asyncio.timeout(_TIKA_SECONDS):
            return await asyncio.to_thread(tika.fault) or "ready"
    except TimeoutError:
        return "It does not answer in time."


async def _fault_of(transactions: Transactions) -> str:
    try:
        await transactions.read(lambda cx: cx.exec_driver_sql("SELECT 1").scalar())
    except (Busy, SQLAlchemyError):
        return "the database cannot be read"
    return ""


def indexes(cx: Connection, halves: Halves, at: Instant) -> dict[str, dict[str, object]]:
    """For each repository: the seconds its index is behind, whether that is late, its fault if any.

    ``differences`` counts objects that the last checks found wrong and that were not repaired, if any.
    """
    return {
        repository.name: _index_state(cx, halves, repository, at) | _differences(cx, repository)
        for repository in repositories.all_repositories(cx)
    }


def _differences(cx: Connection, repository: repositories.Repository) -> dict[str, int]:
    agent_reports = reports.of_repository(cx, repository.id).values()
    count = sum(each.report.remaining for each in agent_reports if each.report is not None)
    return {"differences": count} if count else {}


def _index_state(cx: Connection, halves: Halves, repository: repositories.Repository, at: Instant) -> dict[str, object]:
    try:
        position = halves.index(repository).snapshot().position
        waiting = changes.after(cx, repository.id, position, 1)
    except IndexUnavailable as refusal:
        return {"seconds_behind": None, "late": True, "fault": refusal.sentence}
    except changes.LinesGone:
        # The index agent rebuilds this index: nobody can say how far it is behind.
        return {"seconds_behind": None, "late": True}
    delay = max(0, at - waiting[0].noted) if waiting else 0
    return {"seconds_behind": round(delay / SECOND, 1), "late": delay > _LATE}
