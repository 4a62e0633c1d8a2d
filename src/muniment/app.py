"""Both halves, or either one, as one ASGI application: the only room that knows both."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import jinja2
import msgspec
import structlog
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from muniment.db import SECOND, Busy, Database, Instant, check_schema
from muniment.directory import grants, system, tickets
from muniment.directory.endpoints import routes as directory_routes
from muniment.directory.endpoints import spelling as directory_spelling
from muniment.directory.half import Directory
from muniment.directory.passwords import Gate
from muniment.directory.refusals import AccessEnded, DeadToken, UnknownResource, UnparseableToken, WrongResource
from muniment.installation import Installation
from muniment.repository import changes, repositories
from muniment.repository.callers import Callers, Verify
from muniment.repository.content import ContentStore
from muniment.repository.endpoints import routes as repository_routes
from muniment.repository.endpoints import spelling as repository_spelling
from muniment.repository.endpoints.half import RepositoryHalf
from muniment.repository.fulltext.embedded import Embedded, EmbeddedWriter
from muniment.repository.fulltext.generations import Following
from muniment.repository.fulltext.index import Index, IndexWriter
from muniment.repository.refusals import DirectoryUnavailable, IndexUnavailable, NotSignedIn
from muniment.repository.repositories import Repository
from muniment.settings import Settings
from muniment.web import certificates
from muniment.web.addresses import Addresses
from muniment.web.answers import Endpoint, Said, json_response
from muniment.web.decisions import Desk
from muniment.web.refusals import UnknownAddress
from muniment.web.transport import Transport

log = structlog.get_logger("muniment.app")

_PURGE_SECONDS = 30
_PURGE_ROWS = 50
_PURGE_PAUSE = 0.05
_DAY_SECONDS = 86_400
_LATE: Instant = 60 * SECOND
_DOCUMENT = re.compile(r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*\.md")


@dataclass
class _Halves:
    """The halves as this process holds them; the lifespan fills them in."""

    installation: Installation
    clock: Callable[[], Instant]
    directory: Directory | None = None
    repository: RepositoryHalf | None = None
    indexes: dict[int, Index] = field(default_factory=dict)

    def index(self, repository: Repository) -> Index:
        """Give this process's reader of the repository's index."""
        if repository.id not in self.indexes:
            self.indexes[repository.id] = reader(self.installation, repository)
        return self.indexes[repository.id]

    def close_indexes(self) -> None:
        """Let the indexes' files go."""
        for index in self.indexes.values():
            index.close()


def now() -> Instant:
    """Read the clock, in microseconds since 1970."""
    return time.time_ns() // 1000


def build(settings: Settings, data: Path, *, clock: Callable[[], Instant] = now) -> ASGIApp:
    """Build the application over a data folder whose databases are migrated.

    Its lifespan opens this process's databases, password gate and index readers, and closes them. Raises SchemaMismatch
    there when a database is not at this release's schema.
    """
    halves = _Halves(Installation(data, settings), clock)

    @asynccontextmanager
    async def lifespan(application: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as closing:
            application.state.addresses = Addresses(await _open(halves, closing))
            yield

    opened = Starlette(lifespan=lifespan)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await opened(scope, receive, send)
        else:
            await opened.state.addresses(scope, receive, send)

    async def enforced() -> bool:
        # A repository without the directory beside it cannot ask whether TLS is enforced: then it is.
        return halves.directory is None or await halves.directory.desk.read(system.enforce_ssl)

    return Transport(
        answer,
        settings.web,
        guarded=[f"/{settings.directory.names.prefix}"] if "directory" in settings.halves else [],
        enforced=enforced,
        shape=_shape(settings),
    )


def reader(installation: Installation, repository: Repository) -> Index:
    """Open a repository's index for reading, whichever generation of it is the current one."""
    language = installation.settings.repository.language
    return Following(installation.indexes / str(repository.id), lambda folder: Embedded(folder, language))


def writer(settings: Settings) -> Callable[[Path], IndexWriter]:
    """Give what opens an index for writing, as the index agent needs it."""
    language = settings.repository.language
    return lambda folder: EmbeddedWriter(folder, language)


def gate(installation: Installation) -> Gate:
    """Open this process's gate before password checks."""
    options = installation.settings.directory
    return Gate(installation.gate, options.hash_slots, options.hash_queue, options.hash_memory_kib, options.hash_passes)


async def _open(halves: _Halves, closing: AsyncExitStack) -> list[Route]:
    installation = halves.installation
    routes: list[Route] = [
        Route("/health/live", Endpoint(halves, {"GET": _live}, {}, _plain)),
        Route("/health/ready", Endpoint(halves, {"GET": _ready}, {}, _plain)),
        Route("/", Endpoint(halves, {"GET": _front_page}, {}, _plain)),
        *(Route(f"/{name}", Endpoint(halves, {"GET": _asset}, {}, _plain)) for name in _ASSETS),
        Route("/docs/{page:path}", Endpoint(halves, {"GET": _document}, {}, _plain)),
    ]
    _meanwhile(_watch_certificate(halves), closing)
    if "directory" in installation.settings.halves:
        halves.directory = _open_directory(halves, closing)
        routes += directory_routes.routes(halves.directory)
        _meanwhile(_purge(halves.directory), closing)
    if "repository" in installation.settings.halves:
        halves.repository = _open_repository(halves, closing)
        routes += repository_routes.routes(halves.repository)
    return [*routes, Route("/{rest:path}", Endpoint(halves, _EVERY_METHOD, {}, _shape(installation.settings)))]


def _open_directory(halves: _Halves, closing: AsyncExitStack) -> Directory:
    database = Database(halves.installation.database_url("directory"))
    desk = Desk(database, inline=True)
    closing.callback(desk.close)
    check_schema(database, "directory")
    entrance = gate(halves.installation)
    closing.callback(entrance.close)
    return Directory(desk, halves.installation.settings.directory, entrance, halves.clock)


def _open_repository(halves: _Halves, closing: AsyncExitStack) -> RepositoryHalf:
    installation = halves.installation
    options = installation.settings.repository
    database = Database(installation.database_url("repository"))
    desk = Desk(database)
    closing.callback(desk.close)
    check_schema(database, "repository")
    closing.callback(halves.close_indexes)
    callers = _callers(halves)
    closing.push_async_callback(callers.close)
    return RepositoryHalf(desk, options, callers, ContentStore(installation.content), halves.index, halves.clock)


def _callers(halves: _Halves) -> Callers:
    settings = halves.installation.settings
    names, options = settings.directory.names, settings.repository
    member_of = names.attributes.get("memberOf", "memberOf")
    if options.tokeninfo_url or halves.directory is None:
        return Callers.over_http(
            options.tokeninfo_url, options.tokeninfo_ca_file, options.administrators, names.dn_suffix, member_of
        )
    return Callers.in_process(in_process(halves.directory), options.administrators, names.dn_suffix, member_of)


def in_process(directory: Directory) -> Verify:
    """Make tokeninfo of the directory in this process the way callers are verified: no socket, the same document."""

    async def verify(token: str, resource_id: str) -> bytes:
        try:
            info = await directory.desk.read(
                grants.tokeninfo, directory.options, directory.memory, token, resource_id, directory.clock()
            )
        except DeadToken as refusal:
            raise NotSignedIn("The token has expired or was revoked.") from refusal
        except (UnparseableToken, WrongResource, AccessEnded) as refusal:
            raise NotSignedIn("The token does not give access to this repository.") from refusal
        except UnknownResource as refusal:
            raise DirectoryUnavailable(
                "The directory that knows the callers cannot say whose token this is."
            ) from refusal
        return msgspec.json.encode(info)

    return verify


def _shape(settings: Settings) -> Callable[[Request, Said, str], Response]:
    directory_prefix, repository_prefix = settings.directory.names.prefix, settings.repository.names.prefix
    shapes = {}
    if "directory" in settings.halves:
        shapes[f"/{directory_prefix}/"] = directory_spelling.shape(settings.directory.names)
    if "repository" in settings.halves:
        shapes[f"/{repository_prefix}/"] = repository_spelling.error_shape(settings.repository.names)

    def write(request: Request, said: Said, sentence: str) -> Response:
        path = request.scope["path"] + "/"
        for prefix, shape in shapes.items():
            if path.startswith(prefix):
                return shape(request, said, sentence)
        return _plain(request, said, sentence)

    return write


def _plain(request: Request, said: Said, sentence: str) -> Response:
    if "text/html" in request.headers.get("accept", ""):
        return _drawn(request, "problem.html", {"sentence": sentence}, said.status)
    return json_response({"status": said.status, "code": said.code, "message": sentence}, said.status)


async def _purge(directory: Directory) -> None:
    """Drop what has expired, a few rows at a time, so that no table grows without bound and no write waits long."""
    while True:
        await asyncio.sleep(_PURGE_SECONDS)
        try:
            while await directory.desk.write(_purge_some, directory.clock()) >= _PURGE_ROWS:
                await asyncio.sleep(_PURGE_PAUSE)
        except (Busy, SQLAlchemyError) as error:
            log.warning("purge put off", reason=type(error).__name__)


def _purge_some(cx: Connection, at: Instant) -> int:
    return max(grants.forget(cx, at, _PURGE_ROWS), tickets.purge(cx, at, _PURGE_ROWS))


async def _watch_certificate(halves: _Halves) -> None:
    """Say in the log, once a day, that the listener's certificate ends soon."""
    while True:
        left = certificates.days_left(halves.installation.certificate, halves.clock())
        if left is not None and left < certificates.RENEW_DAYS:
            own = not halves.installation.settings.web.certificate_file
            log.warning(
                "the certificate is over" if left < 0 else "the certificate ends soon",
                days_left=left,
                file=str(halves.installation.certificate),
                to_do="start the server anew: that renews it" if own else "renew it, then start the server anew",
            )
        await asyncio.sleep(_DAY_SECONDS)


def _meanwhile(work: Coroutine[None, None, None], closing: AsyncExitStack) -> None:
    closing.push_async_callback(_ended, asyncio.create_task(work))


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _live(_request: Request, _halves: _Halves) -> Response:
    return json_response({"status": "alive"})


async def _ready(_request: Request, halves: _Halves) -> Response:
    """Say part by part whether this process can do its work; 503 when one cannot."""
    parts: dict[str, object] = {}
    faults: list[str] = []
    for name, half in (("directory", halves.directory), ("repository", halves.repository)):
        if half is None:
            continue
        fault = await _fault_of(half.desk)
        parts[name] = fault or "ready"
        faults += [fault] if fault else []
    if halves.repository is not None and not faults:
        try:
            indexes = await halves.repository.desk.read(_indexes, halves, halves.clock())
        except IndexUnavailable as refusal:
            indexes, faults = {"fault": refusal.sentence}, [refusal.sentence]
        parts["indexes"] = indexes
    left = certificates.days_left(halves.installation.certificate, halves.clock())
    if left is not None:
        parts["certificate"] = {"days_left": left, "late": left < certificates.RENEW_DAYS}
    body = {"status": "not ready" if faults else "ready", **parts}
    if faults:
        return json_response(body, 503, {"Cache-Control": "no-store", "Retry-After": "1"})
    return json_response(body, headers={"Cache-Control": "no-store"})


async def _fault_of(desk: Desk) -> str:
    try:
        await desk.read(lambda cx: cx.exec_driver_sql("SELECT 1").scalar())
    except (Busy, SQLAlchemyError):
        return "the database cannot be read"
    return ""


def _indexes(cx: Connection, halves: _Halves, at: Instant) -> dict[str, object]:
    found: dict[str, object] = {}
    for repository in repositories.every(cx):
        position = halves.index(repository).snapshot().position
        waiting = changes.after(cx, repository.id, position, 1)
        behind = max(0, at - waiting[0].noted) if waiting else 0
        found[repository.name] = {
            "position": str(position),
            "seconds_behind": round(behind / SECOND, 1),
            "late": behind > _LATE,
        }
    return found


async def _front_page(request: Request, halves: _Halves) -> Response:
    """Link everything there is."""
    settings = halves.installation.settings
    known = await halves.repository.desk.read(repositories.every) if halves.repository else []
    values = {
        "directory": settings.directory.names if halves.directory else None,
        "repository": settings.repository.names if halves.repository else None,
        "repositories": [repository.name for repository in known],
        "documents": _documents(),
    }
    return _drawn(request, "index.html", values)


def _drawn(request: Request, template: str, values: Mapping[str, object], status: int = 200) -> Response:
    base = request.scope["muniment.base"]
    # A page over plain HTTP may use its own style, not that of the https address.
    text = _templates().get_template(template).render(base=base, at=urlsplit(base).path.rstrip("/"), **values)
    return HTMLResponse(text, status)


async def _asset(request: Request, _halves: _Halves) -> Response:
    name = request.scope["path"].rpartition("/")[2]
    return Response((_FRONT / name).read_bytes(), media_type=_ASSETS[name])


async def _document(request: Request, _halves: _Halves) -> Response:
    page = request.path_params["page"]
    folder = _documents_folder()
    if folder is None or not _DOCUMENT.fullmatch(page) or not (folder / page).is_file():
        raise UnknownAddress("There is no such page; / links those there are.")
    return PlainTextResponse((folder / page).read_text("utf-8"))


async def _unknown(_request: Request, _halves: _Halves) -> Response:
    raise UnknownAddress("Nothing answers at this address; / links what does.")


_EVERY_METHOD: dict[str, Callable[[Request, _Halves], Awaitable[Response]]] = dict.fromkeys(
    ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"), _unknown
)

_FRONT = Path(__file__).parent / "front"
_ASSETS = {"style.css": "text/css", "icon.svg": "image/svg+xml"}


def _templates() -> jinja2.Environment:
    return jinja2.Environment(loader=jinja2.FileSystemLoader(_FRONT), autoescape=True, trim_blocks=True)


def _documents_folder() -> Path | None:
    for folder in (Path(__file__).parent / "docs", Path(__file__).parents[2] / "docs"):
        if (folder / "settings.md").is_file():
            return folder
    return None


def _documents() -> dict[str, str]:
    """Name every page of the documentation by its heading, the decisions last."""
    folder = _documents_folder()
    if folder is None:
        return {}
    pages = {
        str(page.relative_to(folder)): page for page in sorted(folder.rglob("*.md"), key=lambda p: (len(p.parts), p))
    }
    return {
        name: page.read_text("utf-8").partition("\n")[0].lstrip("# ")
        for name, page in pages.items()
        if _DOCUMENT.fullmatch(name)
    }
